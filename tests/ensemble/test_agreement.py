from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from stscurate.ensemble.agreement import agreement
from stscurate.methods.agreement import krippendorff_alpha
from tests.ensemble.made import table, vote


def test_each_annotators_oddities_are_told() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(400)
    lengths = {f"p{n}": (int(rng.integers(10, 100)), int(rng.integers(10, 100))) for n in range(400)}
    unlike = np.array([abs(math.log(a / b)) for a, b in lengths.values()])
    said = {
        "fair": 0.1 + 0.6 * truth,
        "high": 0.3 + 0.6 * truth,
        "length": np.clip(0.1 + 0.4 * truth + 0.1 * unlike, 0, 1),
        "noise": rng.random(400),
    }
    rows = [vote(f"p{n}", name, float(values[n]), "0..1") for name, values in said.items() for n in range(400)]
    rows.append(vote("q", "fair", None))
    rows[-1]["scale"] = "0..1"
    found = agreement(table(rows), lengths=lengths)
    by = {row["annotator"]: row for row in found.annotators}
    for name, values in said.items():
        others = np.mean([other for key, other in said.items() if key != name], axis=0)
        assert by[name]["bias"] == pytest.approx(np.mean(values - others))
        assert by[name]["leave_one_out"] == pytest.approx(spearmanr(values, others).statistic)
        assert by[name]["length_bias"] == pytest.approx(spearmanr(values - others, unlike).statistic)
        assert by[name]["pairs"] == 400
    assert by["length"]["length_bias"] > 0.3
    assert by["noise"]["loading"] < 0.2 < 0.8 < by["fair"]["loading"]
    assert [by[name]["failed"] for name in said] == [1, 0, 0, 0]
    unit = np.tile(np.arange(400), 4)
    interval = krippendorff_alpha(unit, np.concatenate(list(said.values())), level="interval")
    assert found.overall["alpha_interval"] == pytest.approx(interval)
    assert found.overall["pairs"] == 400
    couples = {(row["annotator1"], row["annotator2"]): row["spearman"] for row in found.couples}
    assert len(couples) == 6
    assert couples["fair", "high"] == pytest.approx(1)
    assert couples["fair", "noise"] == pytest.approx(spearmanr(said["fair"], said["noise"]).statistic)


def test_the_order_gap_is_a_part_of_the_scale() -> None:
    rows = [vote("p", "a", 4.0), vote("p", "a", 2.0, order="ba"), vote("q", "a", 1.0), vote("q", "a", 1.0, order="ba")]
    rows += [vote("r", "a", 5.0), vote("p", "b", 3.0), vote("p", "c", 7.0, "relative")]
    rows += [vote("q", "c", 1.0, "relative"), vote("q", "c", 4.0, "relative", order="ba")]
    found = {row["annotator"]: row["order_gap"] for row in agreement(table(rows)).annotators}
    assert found["a"] == pytest.approx((2 + 0) / 2 / 5)
    assert found["b"] is None
    assert found["c"] == pytest.approx(3 / 6)


def test_one_annotator_and_no_votes_have_nothing_to_agree_with() -> None:
    alone = agreement(table([vote("p", "a", 3.0), vote("q", "a", 1.0)]))
    assert math.isnan(alone.overall["alpha_interval"])
    assert math.isnan(alone.annotators[0]["leave_one_out"])
    assert alone.couples == []
    nothing = agreement(table([vote("p", "a", None), vote("p", "b", None)]))
    assert [row["pairs"] for row in nothing.annotators] == [0, 0]
    assert [row["failed"] for row in nothing.annotators] == [1, 1]
