"""Votes against length: a judge that likes long texts is told from one that knows that these are alike."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import rankdata

from stscurate.audit.size_bias.judges import judge_rows, partial
from stscurate.errors import InputError
from stscurate.records import VOTES, from_rows
from stscurate.tables import pairs_source
from tests.conftest import Command


def pairs_of(folder: Path, lengths: np.ndarray, gold: np.ndarray | None) -> pa.Table:
    rows = [
        {"pair_id": f"p{n}", "text1": " ".join(["word"] * a), "text2": " ".join(["term"] * b)}
        | ({} if gold is None else {"score": float(gold[n])})
        for n, (a, b) in enumerate(lengths.tolist())
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return pairs_source(folder / "pairs.jsonl").table


def votes_of(**judges: np.ndarray) -> pa.Table:
    empty = dict.fromkeys(VOTES.names)
    rows = [
        {
            **empty,
            "pair_id": f"p{n}",
            "annotator": name,
            "scoring": "cosine",
            "prompt": "",
            "order": "both",
            "sample": 0,
        }
        | {"raw": float(value), "scale": "relative", "cut": 0}
        for name, values in judges.items()
        for n, value in enumerate(values)
        if np.isfinite(value)
    ]
    return from_rows(rows, "votes")


def made(folder: Path, *, with_gold: bool = True) -> list[dict[str, Any]]:
    generator = np.random.default_rng(3)
    lengths = generator.integers(2, 60, (400, 2))
    mean = np.log2(lengths).mean(axis=1)
    gold = np.clip(0.12 * mean + generator.normal(0, 0.2, 400), 0, 1)  # long pairs are more alike in truth
    fair = gold + generator.normal(0, 0.1, 400)
    biased = gold + 0.3 * mean + generator.normal(0, 0.1, 400)
    table = pairs_of(folder, lengths, gold if with_gold else None)
    return judge_rows(table, votes_of(fair=fair, biased=biased))


def test_given_gold_the_judge_that_likes_length_is_told_from_the_fair_one(tmp_path: Path) -> None:
    fair, biased = made(tmp_path)
    assert (fair["annotator"], biased["annotator"]) == ("fair", "biased")
    assert fair["with_length"] > 0.3  # the bare correlation accuses both
    assert biased["given"] == fair["given"] == "gold"
    assert biased["own"] > 0.7
    assert abs(fair["own"]) < 0.12
    low, high = biased["interval"]
    assert low < biased["with_length"] < high
    assert biased["short"] < biased["middle"] < biased["long"]


def test_without_gold_the_other_annotators_stand_for_it(tmp_path: Path) -> None:
    fair, biased = made(tmp_path, with_gold=False)
    assert biased["given"] == fair["given"] == "other annotators"
    assert biased["own"] > 0.5 > 0 > fair["own"]


def test_partial_correlation_is_that_of_the_residuals_of_ranks() -> None:
    generator = np.random.default_rng(0)
    given = generator.normal(size=200)
    x, y = given + generator.normal(size=200), given - 0.5 * generator.normal(size=200)
    ranks = [rankdata(values) for values in (x, y, given)]
    design = np.column_stack([np.ones(200), ranks[2]])
    left = [values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in ranks[:2]]
    assert partial(x, y, given) == pytest.approx(np.corrcoef(*left)[0, 1])
    assert np.isnan(partial(given, y, given))


def test_few_votes_say_nothing(tmp_path: Path) -> None:
    table = pairs_of(tmp_path, np.full((20, 2), 3), None)
    with pytest.raises(InputError, match="No annotator has 30 votes"):
        judge_rows(table, votes_of(few=np.arange(20.0)))


def test_a_folder_is_refused_where_none_would_be_written(tmp_path: Path, command: Command) -> None:
    refused = command("audit", "size-bias", tmp_path / "run", "--votes", "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert "--votes writes no folder: leave --out away" in refused.stderr
