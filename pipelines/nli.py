"""The papers' transfer setting: trained on inference (SNLI, MultiNLI), tested on similarity that was never trained on.

    stscurate run nli --out runs/nli --set nli=snli.jsonl --set gold=stsb-test.csv

Entailment is label 1, contradiction 0; neutral pairs are left out, and counted. `limit` reads so many rows (0: all);
`columns` are those of a gold without a header line (sentence1,sentence2,score).
"""

from collections.abc import Iterator
from pathlib import Path

from stscurate.evaluation import Wanted, evaluate_into, gold_set
from stscurate.manifest import Entry
from stscurate.nli import nli_source
from stscurate.progress import Progress, silent
from stscurate.resources import definition
from stscurate.store import Run
from stscurate.tables import import_pairs
from stscurate.training import Schedule, pair_rows, train_angle


def recipe(
    run: Run,
    *,
    nli: Path = definition("texts/sample-nli.csv"),  # noqa: B008 - the sample's place doesn't change
    gold: Path = definition("texts/sample-gold.csv"),  # noqa: B008
    columns: str = "",
    scale: str = "0-5",
    model: str = "all-MiniLM-L6-v2",
    limit: int = 0,
    epochs: int = 1,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    max_tokens: int = 64,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """Each stage in turn, in the run's folder; a stage that is finished is found, not made again."""
    folder = run.folder
    yield import_pairs(run, nli_source(nli, limit=limit or None))
    rows = pair_rows(run.table("pairs"), inputs={"pairs": run.fingerprint("pairs")}, labels="gold")
    schedule = Schedule(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, max_tokens=max_tokens, seed=seed
    )
    yield train_angle(rows, folder / "model", model=model, schedule=schedule, replace=run.replace, progress=progress)

    models = [model, str(folder / "model")]
    sets = [gold_set(str(gold), columns=columns or None, scale=scale)]
    yield evaluate_into(folder / "evaluation", models, sets, Wanted(seed=seed), replace=run.replace, progress=progress)
