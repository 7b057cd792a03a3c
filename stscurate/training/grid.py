"""The weights and temperatures of AnglE's objective, chosen by grid search on the validation set."""

import itertools
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

from stscurate.artifacts import Artifact
from stscurate.disk import fingerprint, write_json
from stscurate.errors import InputError
from stscurate.manifest import Entry, stage_key
from stscurate.services.models import locate
from stscurate.training.losses.angle import Variant
from stscurate.training.objectives import TAUS, Rows, Three, angle_parts, train_angle
from stscurate.training.parts import Mix
from stscurate.training.trainer import Common, Options, tell_of_loss

GRID = "grid.json"
_FORM = "give it as weights, or weights/temperatures, as in 1,0|1,1/0.05,0.05,0.05|0.1"


@dataclass(frozen=True)
class Cell:
    """Weights and temperatures of the cosine, in-batch and angle objective."""

    weights: Three
    taus: Three = TAUS


def grid_cells(texts: Sequence[str]) -> list[Cell]:
    """All combinations that the texts name: "1,0|1,1/0.05,0.05,0.05|0.1" are four. Each cell once, in their order.

    InputError where a text isn't of that form.
    """
    cells = []
    for text in texts:
        weights, slash, taus = text.partition("/")
        for chosen in itertools.product(*_places(text, weights)):
            cells += (
                [
                    Cell((chosen[0], chosen[1], chosen[2]), (tau[0], tau[1], tau[2]))
                    for tau in itertools.product(*_places(text, taus))
                ]
                if slash
                else [Cell((chosen[0], chosen[1], chosen[2]))]
            )
    return list(dict.fromkeys(cells))


def train_grid(
    rows: Rows,
    out: Path,
    cells: Sequence[Cell],
    *,
    variant: Variant = "code",
    threshold: float = 0.8,
    **common: Unpack[Common],
) -> Entry:
    """Train once for each cell as `train_angle` does; the one that validates best becomes the folder `out`.

    `grid.json` there holds what each cell reached. Cells that are finished when it is killed are found. InputError
    without a validation set: a grid is never searched on a test set.
    """
    given = Options(**common)
    validation = given.validation
    if validation is None:
        raise InputError(
            "--grid chooses by a validation set: give --validate, or data with a split validation that has gold."
        )
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise InputError("--grid searches in one process: choose there, then train with torchrun on what it chose.")
    start = locate(given.model)
    # of every cell, since any may be one that the rows can't be trained by
    parts, *_ = [angle_parts(rows, cell.weights, cell.taus, variant, threshold) for cell in cells]
    mix = Mix([*parts, *given.also], given.turns)
    inputs = {**mix.rows.inputs, start.name: start.fingerprint, "validation": validation.fingerprint}
    settings: dict[str, Any] = {"method": "angle", "model": start.name, "grid": [asdict(cell) for cell in cells]}
    settings |= {"variant": variant, "threshold": threshold}
    settings |= mix.settings if mix.several else mix.rows.settings
    settings |= given.schedule.settings | given.backbone.settings
    settings |= {"held_out": [held.fingerprint for held in given.held_out]} if given.held_out else {}
    seed = given.schedule.seed
    tell_of_loss(out, stage_key(inputs, settings, seed), given.tell)
    with Artifact.open(
        out, stage="train", inputs=inputs, settings=settings, seed=seed, replace=given.replace
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        entries = []
        for place, cell in enumerate(cells):

            def progress(label: str, done: int, total: int | None, place: int = place) -> None:
                given.progress(f"cell {place + 1} of {len(cells)}, {label}", done, total)

            folder = artifact.work / "cells" / str(place)
            inner: Common = {**common, "replace": False, "progress": progress}
            entries.append(
                train_angle(
                    rows, folder, weights=cell.weights, taus=cell.taus, variant=variant, threshold=threshold, **inner
                )
            )
        reached = [entry.outputs["trained"]["best"] or {"step": None, "spearman": None} for entry in entries]
        best = max(range(len(cells)), key=lambda place: (_number(reached[place]["spearman"]), -place))
        result = artifact.clear_result()
        shutil.copytree(entries[best].place, result, dirs_exist_ok=True)
        table = [
            {**asdict(cell), **found, "chosen": place == best}
            for place, (cell, found) in enumerate(zip(cells, reached, strict=True))
        ]
        write_json(result / GRID, {"validation": validation.name, "cells": table})
        trained = {**entries[best].outputs["trained"], "cell": asdict(cells[best])}
        (result / "manifest.json").unlink()
        return artifact.commit({"trained": {**trained, "sha256": fingerprint(result)}}, entries[best].tally)


def _places(text: str, part: str) -> list[list[float]]:
    """The alternatives of each of three places."""
    try:
        places = [[float(value) for value in place.split("|")] for place in part.split(",")]
    except ValueError:
        places = []
    if len(places) != 3:
        raise InputError(f"--grid {text}: {_FORM}.")
    return places


def _number(value: float | None) -> float:
    return -2.0 if value is None else value
