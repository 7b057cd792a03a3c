from __future__ import annotations

import random
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from stscurate.ensemble import aggregate
from stscurate.errors import InputError, SchemaError
from stscurate.records import VOTES, from_rows
from tests.ensemble.made import vote


def scored(rows: list[dict[str, Any]], method: str = "mean") -> dict[str, dict[str, Any]]:
    return {row["pair_id"]: row for row in aggregate(from_rows(rows, "votes"), method=method).to_pylist()}


def test_absolute_numbers_are_divided_by_their_range() -> None:
    found = scored([vote("p", "a", 4.0), vote("p", "b", 0.5, "0..1"), vote("p", "c", 2.0, "1..5")])
    assert found["p"]["score"] == pytest.approx((0.8 + 0.5 + 0.25) / 3)
    assert found["p"]["annotators"] == 3
    assert found["p"]["spread"] == pytest.approx(statistics.pstdev([0.8, 0.5, 0.25]))
    assert found["p"]["agreement"] == pytest.approx(1 - statistics.pstdev([0.8, 0.5, 0.25]) / 0.5)
    assert found["p"]["method"] == "mean"


def test_an_annotators_orders_and_samples_are_averaged_first() -> None:
    rows = [vote("p", "a", 5.0), vote("p", "a", 3.0, order="ba"), vote("p", "a", 1.0, sample=1), vote("p", "b", 0.0)]
    found = scored(rows)
    assert found["p"]["score"] == pytest.approx((3 / 5 + 0) / 2)
    assert found["p"]["annotators"] == 2


def test_one_annotator_has_no_spread() -> None:
    found = scored([vote("p", "a", 5.0)])
    assert (found["p"]["score"], found["p"]["spread"], found["p"]["agreement"]) == (1.0, None, None)


def test_where_one_is_relative_all_are_put_on_mid_ranks() -> None:
    rows = [vote(pair, "digit", raw) for pair, raw in zip("pqrs", (5.0, 3.0, 3.0, 0.0), strict=True)]
    rows += [vote(pair, "gain", raw, "relative") for pair, raw in zip("pqrs", (0.4, 0.9, 0.1, -3.0), strict=True)]
    found = scored(rows)
    # digit: ranks 4, 2.5, 2.5, 1; gain: ranks 3, 4, 2, 1; each minus a half, by 4
    assert [found[pair]["score"] for pair in "pqrs"] == pytest.approx([0.75, 0.6875, 0.4375, 0.125])
    assert found["p"]["spread"] == pytest.approx(0.125)
    assert found["p"]["agreement"] == pytest.approx(0.75)
    assert found["s"]["agreement"] == 1.0
    assert found["p"]["method"] == "mean of ranks"


def test_a_relative_annotator_alone_is_ranked_too() -> None:
    found = scored([vote(pair, "gain", raw, "relative") for pair, raw in zip("pqr", (7.0, -1.0, 7.0), strict=True)])
    assert [found[pair]["score"] for pair in "pqr"] == pytest.approx([2 / 3, 1 / 6, 2 / 3])


def test_the_median_stands_against_one_who_is_far_off() -> None:
    rows = [vote("p", name, raw) for name, raw in zip("abc", (5.0, 4.0, 0.0), strict=True)]
    rows += [vote("q", name, raw) for name, raw in zip("ab", (1.0, 4.0), strict=True)]
    found = scored(rows, "median")
    assert found["p"]["score"] == pytest.approx(0.8)
    assert found["q"]["score"] == pytest.approx(0.5)
    assert found["p"]["method"] == "median"


def test_failed_votes_count_for_nothing_and_pairs_without_any_are_absent() -> None:
    rows = [vote("p", "a", None), vote("p", "b", 2.0), vote("q", "a", None), vote("q", "b", None), vote("r", "a", 1.0)]
    found = scored(rows)
    assert list(found) == ["p", "r"]
    assert found["p"]["score"] == pytest.approx(0.4)
    assert found["p"]["annotators"] == 1
    assert scored([vote("p", "a", None)]) == {}
    assert aggregate(VOTES.empty_table()).num_rows == 0


def test_an_annotator_of_a_part_is_placed_among_the_others_ranks_of_that_part() -> None:
    rows = [vote(f"p{number:02}", "cheap", number, "relative") for number in range(20)]
    rows += [vote(f"p{number:02}", "dear", raw, "relative") for number, raw in ((8, 3.0), (10, 1.0), (12, 2.0))]
    found = scored(rows)
    # cheap's mid-ranks of the three: .425, .525, .625; dear puts 10 before 12 before 8, at ranks 1/6, 1/2, 5/6
    assert found["p10"]["score"] == pytest.approx((0.525 + 0.425) / 2)
    assert found["p12"]["score"] == pytest.approx((0.625 + 0.525) / 2)
    assert found["p08"]["score"] == pytest.approx((0.425 + 0.625) / 2)
    assert found["p00"]["score"] == pytest.approx(0.025)


def test_weighted_without_gold_goes_by_what_the_annotators_have_in_common() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(500)
    noise = {"good": 0.1, "fair": 0.3, "bad": 2.0}
    rows = [
        vote(f"p{number}", name, float(truth[number] + rng.normal(0, size)), "relative")
        for name, size in noise.items()
        for number in range(500)
    ]

    def spearman(method: str) -> float:
        return float(spearmanr([row["score"] for row in scored(rows, method).values()], truth).statistic)

    assert spearman("weighted") > spearman("mean") + 0.02
    assert scored(rows, "weighted")["p0"]["method"] == "weighted of ranks"
    two = [row for row in rows if row["annotator"] != "bad"]
    assert [row["score"] for row in scored(two, "weighted").values()] == pytest.approx(
        [row["score"] for row in scored(two, "mean").values()]
    )


def slowly(rows: list[dict[str, Any]], method: str) -> dict[str, tuple[float, float | None]]:
    """The same by plain loops."""
    by: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["raw"] is not None:
            by.setdefault(row["annotator"], {}).setdefault(row["pair_id"], []).append(row["raw"])
    values = {name: {pair: sum(v) / len(v) for pair, v in own.items()} for name, own in by.items()}
    scales = {row["annotator"]: row["scale"] for row in rows}
    placed: dict[str, list[float]] = {}
    for name, own in values.items():
        for pair, value in own.items():
            if "relative" in scales.values():
                below = sum(other < value for other in own.values())
                same = sum(other == value for other in own.values())
                place = (below + (same + 1) / 2 - 0.5) / len(own)
            else:
                low, high = map(float, scales[name].split(".."))
                place = (value - low) / (high - low)
            placed.setdefault(pair, []).append(place)
    average = statistics.mean if method == "mean" else statistics.median
    return {p: (average(v), statistics.pstdev(v) if len(v) > 1 else None) for p, v in placed.items()}


@pytest.mark.parametrize("method", ["mean", "median"])
@pytest.mark.parametrize("scales", [{"a": "0..5", "b": "0..1"}, {"a": "0..5", "b": "relative", "c": "relative"}])
def test_aggregate_equals_a_slow_loop(method: str, scales: dict[str, str]) -> None:
    rng = random.Random(1)
    rows = [
        vote(f"p{pair}", name, None if rng.random() < 0.2 else rng.choice([0.0, 0.25, 0.5, 1.0]), scale, order=order)
        for name, scale in scales.items()
        for pair in range(60)
        for order in ("ab", "ba")
    ]
    rng.shuffle(rows)
    found = scored(rows, method)
    oracle = slowly(rows, method)
    assert found.keys() == oracle.keys()
    for pair, (score, spread) in oracle.items():
        assert found[pair]["score"] == pytest.approx(score)
        assert found[pair]["spread"] == (None if spread is None else pytest.approx(spread, abs=1e-12))


def test_mistakes_are_named() -> None:
    with pytest.raises(
        InputError, match="no method mode of aggregation: take mean, median, weighted, dawid-skene or mace"
    ):
        scored([vote("p", "a", 1.0)], "mode")
    with pytest.raises(InputError, match="a votes on more than one scale"):
        scored([vote("p", "b", 1.0), vote("p", "a", 1.0), vote("q", "a", 1.0, "0..1")])
    with pytest.raises(SchemaError, match="raw is 7 in row 1, off the scale of a"):
        scored([vote("p", "b", 1.0), vote("p", "a", 7.0)])
    with pytest.raises(SchemaError, match="scale '5' is neither"):
        scored([vote("p", "a", 1.0, "5")])


def test_a_million_votes_take_seconds() -> None:
    n = 1_000_000
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {entry.name: pa.nulls(n, entry.type) for entry in VOTES}
    for name, value in {"scoring": "s", "prompt": "", "order": "ab", "scale": "relative"}.items():
        columns[name] = pa.array([value] * n)
    columns |= {
        "pair_id": pa.array([f"p{i // 4}" for i in range(n)]),
        "annotator": pa.array(["a", "b", "c", "d"] * (n // 4)),
        "sample": pa.array(np.zeros(n, np.int16)),
        "cut": pa.array(np.zeros(n, np.int32)),
        "raw": rng.random(n),
    }
    votes = pa.table(columns, schema=VOTES)
    began = time.process_time()
    scores = aggregate(votes)
    assert time.process_time() - began < 10
    assert scores.num_rows == n // 4
    assert np.mean(scores["score"].to_numpy()) == pytest.approx(0.5)
