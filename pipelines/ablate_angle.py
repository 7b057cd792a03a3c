"""AnglE with other weights of its objectives and other temperatures, told apart on a dev set.

    stscurate run ablate_angle --out runs/weights --set pairs=train.csv --set dev=dev.csv

`cells` are weights/temperatures as of `train angle --grid`, alternatives with | between, repeatable. Unlike --grid it
keeps every model and gives each an interval. `pairs` and `dev` as in ablate_pooling.py.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from stscurate.evaluation import GoldSet, Wanted, evaluate_into
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.resources import definition
from stscurate.store import Run
from stscurate.tables import scores_of, training_source
from stscurate.training import TAUS, Schedule, grid_cells, pair_rows, train_angle, validation_set

SAMPLE = definition("texts/sample-gold.csv")  # written for this project


def recipe(
    run: Run,
    *,
    pairs: Path = SAMPLE,
    dev: Path = SAMPLE,
    columns: str = "",
    scale: str = "0-5",
    cells: tuple[str, ...] = ("1,0,0", "0,1,0", "0,0,1", "1,1,1", "1,0,1", "1,1,1/0.05,0.05,0.02|0.2", "1,30,1"),
    symmetric: int = 0,
    model: str = "all-MiniLM-L6-v2",
    epochs: int = 1,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """A training for each cell, then the table; symmetric=1 takes that variant of the angle."""
    source = training_source(pairs, columns=columns or None, scale=scale)
    scores, inputs = scores_of(pairs)
    rows = pair_rows(source.table, inputs={**source.inputs, **inputs}, scores=scores)
    schedule = Schedule(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed)
    variant: Literal["code", "symmetric"] = "symmetric" if symmetric else "code"
    models, more = [model], {"variant": variant, "schedule": schedule, "replace": run.replace, "progress": progress}
    for cell in grid_cells(cells):
        name = "-".join(f"{value:g}" for value in cell.weights)
        name += "-taus-" + "-".join(f"{value:g}" for value in cell.taus) if cell.taus != TAUS else ""
        place = run.folder / f"weights-{name}"
        yield train_angle(rows, place, model=model, weights=cell.weights, taus=cell.taus, **more)  # type: ignore[arg-type]
        models.append(str(place))
    on = validation_set(dev, columns=columns or None, scale=scale)
    sets = [GoldSet(on.name, on.pairs, on.gold, {})]
    yield evaluate_into(run.folder / "dev", models, sets, Wanted(seed=seed), replace=run.replace, progress=progress)
