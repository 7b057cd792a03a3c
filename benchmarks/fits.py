"""Trainings on STS-B that several benchmarks share; what a model says of a set is kept and not made twice."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from benchmarks.local_annotators import Rows
from stscurate.methods.correlation import spearman
from stscurate.methods.texts import normalise
from stscurate.progress import silent
from stscurate.records import Tally
from stscurate.services.encoder import quiet
from stscurate.services.models import locate
from stscurate.training.data import TrainingRows
from stscurate.training.fitting import fit
from stscurate.training.network import load_backbone
from stscurate.training.objectives import angle_objective
from stscurate.training.parts import Mix, Part
from stscurate.training.schedule import Backbone, Schedule

START = "all-MiniLM-L6-v2"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """AnglE's objective and how it is gone through; frozen: lower layers that keep their weights."""

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    taus: tuple[float, float, float] = (0.05, 0.05, 0.05)  # the papers'
    variant: Literal["code", "symmetric"] = "code"
    threshold: float = 0.8
    learning_rate: float = 2e-5
    epochs: int = 1
    batch_size: int = 32
    frozen: int = 0
    precision: Literal["fp32", "bf16"] = "fp32"


def fitted(rows: Rows, recipe: Recipe, *, seed: int, weights: Sequence[float] | None = None) -> SentenceTransformer:
    """all-MiniLM-L6-v2 trained on rows of scores 0..1, with the trainer of the package, 128 tokens."""
    labels = [[row[2], weight] for row, weight in zip(rows, weights or [1.0] * len(rows), strict=True)]
    columns: dict[str, list[Any]] = {
        "sentence1": [row[0] for row in rows],
        "sentence2": [row[1] for row in rows],
        "label": labels,
    }
    given = TrainingRows([str(number) for number in range(len(rows))], columns, {}, {}, Tally(rows_in=len(rows)))
    schedule = Schedule(
        recipe.epochs, recipe.batch_size, recipe.learning_rate, seed=seed, save_steps=10**6, precision=recipe.precision
    )
    torch.manual_seed(seed)
    encoder = load_backbone(locate(START), Backbone())
    encoder.max_seq_length = schedule.max_tokens
    freeze(encoder, recipe.frozen)
    lengths = [len(row[0]) + len(row[1]) for row in rows]  # random batches don't read them
    objective = angle_objective(recipe.weights, recipe.taus, recipe.variant, recipe.threshold)
    with TemporaryDirectory() as folder, quiet():
        fit(encoder, Mix([Part(given, objective)]), lengths, schedule, None, Path(folder), silent)
    return encoder


def freeze(encoder: SentenceTransformer, layers: int) -> None:
    """Keep the embeddings and so many layers above them as they are."""
    if layers:
        network = encoder[0].model
        for part in (network.embeddings, *network.encoder.layer[:layers]):
            part.requires_grad_(False)


@torch.inference_mode()
def cosines(model: SentenceTransformer, rows: Rows) -> Floats:
    """(rows,) cosine of the two texts of each."""
    model.eval()
    texts = list(dict.fromkeys(text for one, two, _ in rows for text in (one, two)))
    vectors = model.encode(texts, batch_size=32, show_progress_bar=False, normalize_embeddings=True).astype(np.float64)
    place = {text: number for number, text in enumerate(texts)}
    left, right = [place[row[0]] for row in rows], [place[row[1]] for row in rows]
    return np.asarray((vectors[left] * vectors[right]).sum(axis=1))


def kept(work: Path, key: object, make: Callable[[], Floats]) -> Floats:
    """What `make` gives, from the folder where it has been made before."""
    name = hashlib.sha256(json.dumps(key, sort_keys=True, default=asdict).encode()).hexdigest()[:24]
    path = work / f"{name}.npy"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        found = make()
        partial = path.with_suffix(".part.npy")
        np.save(partial, found)
        partial.rename(path)
    return np.asarray(np.load(path), dtype=np.float64)


def said(
    work: Path, rows: Rows, recipe: Recipe, *, seed: int, read: Rows, weights: Sequence[float] | None = None
) -> Floats:
    """The cosines of the rows that are read, by the model that `fitted` trains on the first ones; kept in `work`."""
    key = [rows, recipe, seed, read, weights]
    return kept(work, key, lambda: cosines(fitted(rows, recipe, seed=seed, weights=weights), read))


def unit(rows: Rows) -> Rows:
    """Scores of 0 to 5 as 0 to 1."""
    return [(one, two, gold / 5) for one, two, gold in rows]


def unseen(test: Rows, before: Rows) -> NDArray[np.bool_]:
    """Which rows hold no text of `before`, case and spaces aside."""
    known = {normalise(text) for one, two, _ in before for text in (one, two)}
    return np.array([not {normalise(one), normalise(two)} & known for one, two, _ in test])


def interval(made: Floats, gold: Floats, *, minus: Floats | None = None, resamples: int = 1000) -> tuple[float, float]:
    """95 % bootstrap interval of the mean Spearman of (seeds, pairs), or of its difference to another such mean."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(resamples):
        at = rng.integers(0, len(gold), len(gold))
        number = np.mean([spearman(one[at], gold[at]) for one in made])
        found.append(number - (0.0 if minus is None else np.mean([spearman(one[at], gold[at]) for one in minus])))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)
