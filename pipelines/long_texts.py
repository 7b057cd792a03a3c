"""Long texts: a model trained on issues at up to 512 tokens, and its start, by how long the pairs are.

    stscurate run long_texts --out runs/long --set source=issues.jsonl

Pairs of duplicates and negatives are made of the issues; the test split says what training brought in each band of
length, and which share of the tokens was cut off. `limit` trains on so many pairs, drawn by the seed (0: all).
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from stscurate.evaluation import Opening, Wanted, evaluate_into, gold_set
from stscurate.manifest import Entry
from stscurate.pairing import make_pairs
from stscurate.progress import Progress, silent
from stscurate.resources import definition
from stscurate.sources import collect_issues
from stscurate.store import Run
from stscurate.training import Schedule, pair_rows, train_angle


def recipe(
    run: Run,
    *,
    source: Path = definition("github-issues/sample.jsonl"),  # noqa: B008 - the sample's place doesn't change
    model: str = "all-MiniLM-L6-v2",
    max_tokens: int = 512,
    limit: int = 0,
    epochs: int = 1,
    batch_size: int = 16,
    learning_rate: float = 2e-5,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """Each stage in turn, in the run's folder; the evaluation also reads the start at `max_tokens`."""
    yield collect_issues(run, source, progress=progress)
    yield make_pairs(run, seed=seed, progress=progress)
    pairs = run.table("pairs")
    pairs = pairs.filter(pc.equal(pairs["split"], "train"))
    if 0 < limit < len(pairs):
        pairs = pairs.take(np.sort(np.random.default_rng(seed).permutation(len(pairs))[:limit]))
    rows = pair_rows(pairs, inputs={"pairs": run.fingerprint("pairs"), "limit": str(limit)}, labels="gold")
    schedule = Schedule(epochs, batch_size, learning_rate, max_tokens, seed=seed)
    place, more = run.folder / "model", {"replace": run.replace, "progress": progress}
    yield train_angle(rows, place, model=model, schedule=schedule, **more)  # type: ignore[arg-type]
    wanted = Wanted(seed=seed, bands=True, paired=True, opening=Opening(max_tokens=max_tokens))
    sets = [gold_set(str(run.folder))]
    yield evaluate_into(run.folder / "evaluation", [model, str(place)], sets, wanted, **more)  # type: ignore[arg-type]
