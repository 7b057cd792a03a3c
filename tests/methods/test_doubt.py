"""Doubt that votes tell of themselves, by hand."""

import math

import pytest

from stscurate.methods.doubt import own_doubt
from tests.ensemble.made import table, vote


def test_doubt_is_the_widest_of_each_kind_and_counts_the_pairs_that_are_asked_for_alone() -> None:
    rows = [
        vote("p", "a", 1.0, missing_mass=0.1, entropy=math.log(6) / 4),
        vote("p", "a", 3.0, order="ba", missing_mass=0.3, entropy=math.log(6) / 2),
        vote("p", "b", 0.25, "0..1", entropy=2 * math.log(2)),  # wider than a guess between 0 and 1
        vote("q", "b", 0.5, "0..1"),
        vote("other", "a", 0.0, missing_mass=0.9),
        vote("other", "a", 5.0, order="ba"),
        vote("q", "c", 3.0, "relative"),
        vote("q", "c", 7.0, "relative", order="ba"),
        vote("p", "c", 13.0, "relative"),
    ]
    found = own_doubt(table(rows), ["q", "p", "nowhere"])
    assert found.missing_mass.tolist() == [0, 0.3, 0]
    assert found.entropy.tolist() == [0, 1, 0]
    assert found.order_gap == pytest.approx([4 / 10, 2 / 5, 0])  # c says 3 to 13
    assert found.total == pytest.approx([0.4, 0.3 + 0.5 + 0.4, 0])
