"""What votes tell of doubt about each pair, besides how far their annotators differ."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stscurate.methods.numbers import Floats
from stscurate.methods.orders import order_gaps


class OwnDoubt(NamedTuple):
    """Of each pair, (pairs,), 0 where nobody doubts.

    missing_mass: the most probability that a vote lacks. entropy: the widest of a vote, in parts of that of a guess
    over its scale's whole numbers. order_gap: the widest between an annotator's two orders, in parts of its scale (of
    all that it says where that is relative).
    """

    missing_mass: Floats
    entropy: Floats
    order_gap: Floats

    @property
    def total(self) -> Floats:
        """The sum, of the entropy half: a vote spread over all of its scale is as doubtful as two at the scale's ends.

        Two such have a standard deviation of .5, which is what the differing of annotators adds.
        """
        return np.asarray(self.missing_mass + 0.5 * self.entropy + self.order_gap)


def own_doubt(votes: pa.Table, pair_ids: Sequence[str]) -> OwnDoubt:
    """The doubt of each of the pairs, in their order; votes, of schema VOTES, on other pairs count for nothing."""
    place = {pair_id: number for number, pair_id in enumerate(pair_ids)}
    gaps = np.zeros(len(place))
    for gap in order_gaps(votes):
        if gap.pair_id in place:
            gaps[place[gap.pair_id]] = max(gaps[place[gap.pair_id]], gap.gap)
    return OwnDoubt(_widest(votes, "missing_mass", place), _widest(_unsure(votes), "entropy", place), gaps)


def _unsure(votes: pa.Table) -> pa.Table:
    """The votes with their entropy in parts of that of a guess: over 0..5 that of six numbers."""
    scales = votes["scale"].to_pylist()
    most = {scale: _guess(scale) for scale in set(scales)}
    share = pc.divide(votes["entropy"], pa.array([most[scale] for scale in scales], pa.float64()))
    return votes.set_column(
        votes.schema.get_field_index("entropy"), "entropy", pc.min_element_wise(share, 1.0, skip_nulls=False)
    )


def _guess(scale: str) -> float:
    if scale == "relative":
        return 1.0
    low, high = map(float, scale.split(".."))
    return float(np.log(max(high - low, 1.0) + 1))


def _widest(votes: pa.Table, column: str, place: dict[str, int]) -> Floats:
    found = np.zeros(len(place))
    for row in votes.group_by("pair_id").aggregate([(column, "max")]).to_pylist():
        if row["pair_id"] in place:
            found[place[row["pair_id"]]] = row[f"{column}_max"] or 0.0
    return found
