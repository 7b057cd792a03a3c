"""AnglE with each pooling of the tokens' vectors, told apart on a dev set (the paper found cls best for BERT).

    stscurate run ablate_pooling --out runs/pooling --set pairs=train.csv --set dev=dev.csv

`pairs` is trained on: a file or a run; `dev` chooses, never a test set: a file, or the split validation of a run.
Without them the written sample is both, which shows that it runs and no more.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from stscurate.evaluation import GoldSet, Wanted, evaluate_into
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.resources import definition
from stscurate.services.encoder import Pooling
from stscurate.store import Run
from stscurate.tables import scores_of, training_source
from stscurate.training import Backbone, Schedule, pair_rows, train_angle, validation_set

SAMPLE = definition("texts/sample-gold.csv")  # written for this project


def recipe(
    run: Run,
    *,
    pairs: Path = SAMPLE,
    dev: Path = SAMPLE,
    columns: str = "",
    scale: str = "0-5",
    model: str = "all-MiniLM-L6-v2",
    epochs: int = 1,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """A training for each pooling, then the table."""
    source = training_source(pairs, columns=columns or None, scale=scale)
    scores, inputs = scores_of(pairs)
    rows = pair_rows(source.table, inputs={**source.inputs, **inputs}, scores=scores)
    schedule = Schedule(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed)
    models = [model]
    for pooling in get_args(Pooling):
        place = run.folder / f"pooling-{pooling}"
        yield train_angle(
            rows,
            place,
            model=model,
            backbone=Backbone(pooling=pooling),
            schedule=schedule,
            replace=run.replace,
            progress=progress,
        )
        models.append(str(place))
    on = validation_set(dev, columns=columns or None, scale=scale)
    sets = [GoldSet(on.name, on.pairs, on.gold, {})]
    yield evaluate_into(run.folder / "dev", models, sets, Wanted(seed=seed), replace=run.replace, progress=progress)
