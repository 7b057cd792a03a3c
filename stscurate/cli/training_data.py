"""What --data and --also of the trainings name: sources of rows, each with its loss, in the order given."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stscurate.cli.options import pair_of

if TYPE_CHECKING:
    from stscurate.progress import Progress
    from stscurate.training import Part, TrainingRows
    from stscurate.training.validation import Validation

LOSSES = ("angle", "cosent", "arccse", "simcse")


def scaled(path: Path, scale: str | None) -> tuple[Path, str | None]:
    """FILE#0-5 as a file and the scale of its scores; `scale` where the file names none."""
    name, mark, own = str(path).rpartition("#")
    return (Path(name), own) if mark and not path.exists() else (path, scale)


def pairs_of(
    path: Path, columns: str | None, scale: str | None, labels: Any, agreement_weights: bool, *, ranked: bool
) -> "tuple[TrainingRows, Validation | None]":
    """Pairs to train on, and the split validation beside them. ranked: positives alone are nothing to learn from."""
    from dataclasses import replace

    from stscurate.records import Tally
    from stscurate.tables import scores_of, training_source
    from stscurate.training import own_validation, pair_rows

    path, scale = scaled(path, scale)
    source = training_source(path, columns=columns, scale=scale)
    scores, inputs = scores_of(path)
    rows = pair_rows(
        source.table,
        inputs={**source.inputs, **inputs},
        labels=labels,
        scores=scores,
        agreement_weights=agreement_weights,
        positives=source.positives and not ranked,
    )
    unread = source.tally.dropped
    rows.tally.add(Tally(rows_in=unread.total(), dropped=unread))
    return replace(rows, given_name=path.name), own_validation(source.name, source.table)


def triplets_of(path: Path, columns: str | None, seed: int, progress: "Progress") -> "TrainingRows":
    """The triplets of a run or a file; of texts, triplets made on the spot, the same ones at every call."""
    from dataclasses import replace
    from tempfile import TemporaryDirectory

    from stscurate.store import Run, is_run
    from stscurate.tables import texts_source, triplets_source
    from stscurate.training import triplet_rows
    from stscurate.triplets import make_triplets

    if is_run(path) and Run(path).has("triplets"):
        rows = triplet_rows(Run(path).table("triplets"), inputs={"triplets": Run(path).fingerprint("triplets")})
        return replace(rows, given_name=path.name)
    given = triplets_source(path, columns=columns)
    if given:
        return triplet_rows(given.table, inputs=given.inputs, tally=given.tally)
    texts = texts_source(path, columns=columns)
    with TemporaryDirectory() as folder, Run.open(Path(folder) / "run") as run:
        entry = make_triplets(run, texts, seed=seed, progress=progress)
        inputs = {**texts.inputs, "triplets": run.fingerprint("triplets")}
        rows = triplet_rows(run.table("triplets"), inputs=inputs, tally=entry.tally)
        return replace(rows, given_name=path.name)


def texts_of(path: Path, columns: str | None) -> "TrainingRows":
    """The texts of a run or a file."""
    from dataclasses import replace

    from stscurate.tables import texts_source
    from stscurate.training import text_rows

    texts = texts_source(path, columns=columns)
    return replace(text_rows(texts.table, inputs=texts.inputs, tally=texts.tally), given_name=path.name)


def validation_of(paths: list[Path]) -> "Validation | None":
    """The split validation of the first run among the sources of texts or triplets that has one with gold."""
    from stscurate.store import Run, is_run
    from stscurate.training import own_validation

    for path in paths:
        if is_run(path) and Run(path).has("pairs"):
            found = own_validation("pairs", Run(path).table("pairs"))
            if found:
                return found
    return None


def also_parts(
    given: list[str], columns: str | None, scale: str | None, seed: int, progress: "Progress"
) -> "list[Part]":
    """The sources of --also, as in cosent=FILE, each with that loss as it is by default."""
    from stscurate import training
    from stscurate.errors import InputError

    parts: list[Part] = []
    for text in given:
        name, place = pair_of("--also", text)
        path = Path(place)
        if name == "angle":
            parts += training.angle_parts(pairs_of(path, columns, scale, "auto", False, ranked=False)[0])
        elif name == "cosent":
            rows = pairs_of(path, columns, scale, "auto", False, ranked=True)[0]
            parts.append(training.Part(rows, training.cosent_objective()))
        elif name == "arccse":
            parts.append(training.Part(triplets_of(path, columns, seed, progress), training.arccse_objective()))
        elif name == "simcse":
            parts.append(training.Part(texts_of(path, columns), training.simcse_objective()))
        else:
            raise InputError(
                f"--also {text}: there is no loss {name}; give one of {', '.join(LOSSES)}, as cosent=FILE."
            )
    return parts
