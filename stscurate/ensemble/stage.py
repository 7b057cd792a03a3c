"""The stage `scores` of a run: its votes aggregated."""

import pyarrow.compute as pc

from stscurate.ensemble.aggregation import aggregate
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.store import Run


def score_votes(run: Run, *, method: str = "mean", progress: Progress = silent) -> Entry:
    """Aggregate the run's votes: stage and table "scores". Pairs without a valid vote are dropped and counted."""
    inputs, settings = {"votes": run.fingerprint("votes")}, {"method": method}
    stage = run.stage("scores", tables=["scores"], inputs=inputs, settings=settings)
    if stage.entry:
        return stage.entry
    votes = run.table("votes")
    scores = aggregate(votes, method=method)
    tally = Tally(rows_in=len(pc.unique(votes["pair_id"])))
    tally.drop("no_valid_vote", tally.rows_in - scores.num_rows)
    for count in scores["annotators"].to_pylist():
        tally.count("annotators", count)
    progress("scores", scores.num_rows, scores.num_rows)
    stage.write(0, {"scores": scores}, tally)
    return stage.commit()
