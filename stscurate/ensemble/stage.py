"""The stage `scores` of a run: its votes aggregated."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.ensemble.aggregation import aggregate, weights
from stscurate.ensemble.agreement import Agreement, agreement
from stscurate.ensemble.calibration import FOLDS, Curve
from stscurate.ensemble.categorical import BINS
from stscurate.errors import InputError, StscurateError
from stscurate.manifest import Entry
from stscurate.methods.overlap import overlap
from stscurate.progress import Progress, silent
from stscurate.ratings import Ratings
from stscurate.records import Tally
from stscurate.store import Run


def score_votes(
    run: Run,
    *,
    method: str = "weighted",
    gold: Ratings | None = None,
    curve: Curve = "linear",
    folds: int = FOLDS,
    bins: int = BINS,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """Aggregate the run's votes (see `aggregate`): stage and table "scores".

    gold: ratings of pairs, of which those that stand in the run calibrate each annotator; how many do is counted under
    "gold". Pairs without a valid vote are dropped and counted; annotators that say the same of every pair are counted
    under "constant". InputError where gold rates no pair of the run; StscurateError where no vote is valid at all.
    """
    inputs = {"votes": run.fingerprint("votes")}
    settings: dict[str, Any] = {"method": method}
    if gold:
        inputs |= {"pairs": run.fingerprint("pairs"), f"gold:{gold.name}": gold.fingerprint}
        settings |= {"curve": curve, "folds": folds, "gold_scale": gold.scale}
    if method in ("dawid-skene", "mace"):
        settings |= {"bins": bins}
    words = method == "weighted" and gold is None and run.has("pairs")
    if words:
        inputs |= {"pairs": run.fingerprint("pairs")}
    if dear := _dear(run):
        settings |= {"dear": dear}
    stage = run.stage("scores", tables=["scores"], inputs=inputs, settings=settings, seed=seed if gold else 0)
    if stage.entry:
        return stage.entry
    votes = run.table("votes")
    tally = Tally(rows_in=len(pc.unique(votes["pair_id"])))
    known = _known(run.table("pairs"), gold, tally) if gold else None
    shared = _overlap(run.table("pairs")) if words else None
    options: dict[str, Any] = {"curve": curve, "folds": folds, "bins": bins, "seed": seed}
    scores = aggregate(votes, method=method, gold=known, dear=dear, overlap=shared, **options)
    _check(votes, tally)
    tally.drop("no_valid_vote", tally.rows_in - scores.num_rows)
    for count in scores["annotators"].to_pylist():
        tally.count("annotators", count)
    progress("scores", scores.num_rows, scores.num_rows)
    stage.write(0, {"scores": scores}, tally)
    return stage.commit()


def agreement_of(
    run: Run,
    *,
    method: str = "weighted",
    gold: Ratings | None = None,
    curve: Curve = "linear",
    folds: int = FOLDS,
    seed: int = 0,
) -> Agreement:
    """How the annotators of a run agree (`agreement`); with their weights in `score_votes` of the same arguments.

    There are weights by the method "weighted" alone. Errors as of `score_votes`.
    """
    votes, dear = run.table("votes"), _dear(run)
    lengths = shared = known = None
    if gold:
        known = _known(run.table("pairs"), gold, Tally())
    if run.has("pairs"):
        pairs = run.table("pairs")
        columns = (pairs[name].to_pylist() for name in ("pair_id", "text1", "text2"))
        lengths = {pair_id: (len(text1), len(text2)) for pair_id, text1, text2 in zip(*columns, strict=True)}
        shared = _overlap(pairs)
    of_method = None
    if method == "weighted":
        of_method = weights(votes, gold=known, curve=curve, folds=folds, seed=seed, dear=dear, overlap=shared)
    return agreement(votes, lengths=lengths, overlap=shared, dear=dear, weights=of_method)


def _overlap(pairs: pa.Table) -> dict[str, float]:
    columns = [pairs[name].to_pylist() for name in ("pair_id", "text1", "text2")]
    return {pair_id: overlap(text1, text2) for pair_id, text1, text2 in zip(*columns, strict=True)}


def _dear(run: Run) -> list[str]:
    """The annotators that a cascade has asked about a part of the pairs."""
    entry = run.entries.get("votes")
    return list(entry.key["settings"].get("cascade", {}).get("dear", [])) if entry else []


def _known(pairs: pa.Table, gold: Ratings, tally: Tally) -> dict[str, float]:
    """pair_id -> gold of 0..1."""
    columns = [pairs[name].to_pylist() for name in ("pair_id", "text1", "text2")]
    known = gold.gold(zip(*columns, strict=True))
    if not known:
        raise InputError(
            f"{gold.name}: none of its {len(gold.rows):,} ratings is of a pair of this run: name pairs by the run's "
            "pair_id, or by both texts as they stand there."
        )
    tally.count("gold", "pairs", len(known))
    tally.count("gold", "ratings_of_no_pair", gold.matched(zip(*columns, strict=True))[1])
    tally.count("gold", "empty_cells", gold.empty)
    return known


def _check(votes: pa.Table, tally: Tally) -> None:
    """A word on annotators that say nothing: none valid, or all the same."""
    seen = votes.group_by("annotator").aggregate([("raw", "count"), ("raw", "min"), ("raw", "max")]).to_pylist()
    if votes.num_rows and not any(row["raw_count"] for row in seen):
        errors = votes["error"].value_counts().to_pylist()
        told = ", ".join(f"{row['values']} {row['counts']:,}" for row in errors)
        raise StscurateError(
            f"None of the {votes.num_rows:,} votes is valid ({told}): look at them by `stscurate show`."
        )
    for row in seen:
        if row["raw_count"] > 1 and row["raw_min"] == row["raw_max"]:
            tally.count("constant", row["annotator"])
