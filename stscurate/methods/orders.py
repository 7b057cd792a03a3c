"""What it does to an annotator's number when the two texts change places."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class Gap(NamedTuple):
    """|ab - ba| of an annotator on a pair, as a part of its scale."""

    annotator: str
    pair_id: str
    gap: float


def order_gaps(votes: pa.Table) -> list[Gap]:
    """The gap of each annotator and pair that was asked in both orders, samples averaged, in the votes' order.

    A part of the scale's range; where that is relative, of the range of all that the annotator says.
    """
    valid = votes.filter(pc.is_valid(votes["raw"]))
    said = valid.group_by(["annotator", "scale"]).aggregate([("raw", "min"), ("raw", "max")]).to_pylist()
    width = {row["annotator"]: _width(row["scale"], row["raw_min"], row["raw_max"]) for row in said}
    means = valid.group_by(["annotator", "pair_id", "order"]).aggregate([("raw", "mean")]).to_pylist()
    orders: dict[tuple[str, str], dict[str, float]] = {}
    for row in means:
        orders.setdefault((row["annotator"], row["pair_id"]), {})[row["order"]] = row["raw_mean"]
    return [
        Gap(annotator, pair_id, abs(both["ab"] - both["ba"]) / width[annotator] if width[annotator] > 0 else 0.0)
        for (annotator, pair_id), both in orders.items()
        if {"ab", "ba"} <= both.keys()
    ]


def _width(scale: str, least: float, most: float) -> float:
    if scale == "relative":
        return most - least
    low, high = map(float, scale.split(".."))
    return high - low
