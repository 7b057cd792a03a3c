"""From texts without any pair or label to a model, tested on gold that it never saw.

stscurate run texts_to_model --out runs/mine --set texts=mine.txt --set gold=mine-gold.csv
"""

from collections.abc import Iterator
from pathlib import Path

from stscurate.annotators import annotate
from stscurate.ensemble import score_votes
from stscurate.evaluation import Wanted, evaluate_into, gold_set
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.resources import definition
from stscurate.sampling import sample_pairs
from stscurate.store import Run
from stscurate.tables import texts_source
from stscurate.training import Schedule, pair_rows, train_angle


def recipe(
    run: Run,
    *,
    texts: Path = definition("texts/sample.txt"),  # noqa: B008 - the sample's place doesn't change
    gold: Path = definition("texts/sample-gold.csv"),  # noqa: B008
    scale: str = "0-5",
    model: str = "all-MiniLM-L6-v2",
    llm: tuple[str, ...] = ("local:SmolLM2-135M-Instruct", "embedding:all-MiniLM-L6-v2"),
    epochs: int = 2,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """Each stage in turn, in the run's folder; a stage that is finished is found, not made again."""
    folder = run.folder
    yield sample_pairs(run, texts_source(texts), model=model, seed=seed, progress=progress)
    yield annotate(run, llm, seed=seed, progress=progress)
    yield score_votes(run, progress=progress)

    inputs = {name: run.fingerprint(name) for name in ("pairs", "scores")}
    rows = pair_rows(run.table("pairs"), inputs=inputs, labels="pseudo", scores=run.table("scores"))
    schedule = Schedule(epochs=epochs, seed=seed)
    place, more = folder / "model", {"replace": run.replace, "progress": progress}
    yield train_angle(rows, place, model=model, schedule=schedule, **more)  # type: ignore[arg-type]

    models, sets = [model, str(place)], [gold_set(str(gold), scale=scale)]
    yield evaluate_into(folder / "evaluation", models, sets, Wanted(seed=seed), **more)  # type: ignore[arg-type]
