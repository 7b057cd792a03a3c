"""What all losses share: vectors from a sentence-transformers model, and labels read in one way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from stscurate.errors import InputError

Features = dict[str, Any]
"""One column of a batch as the model's tokenizer gives it: ``input_ids`` (n, length) and so on."""


def embed(model: nn.Module, features: Iterable[Features]) -> list[Tensor]:
    """Encode each column: a list of (n, d) tensors, in float32 at least, not normalised.

    The model gets copies, since it writes its results into the dict it is given and the same column may
    be encoded twice. ``component`` (see InBatchNegativesLoss) is ours, not the model's.

    InputError names the rows of vectors that aren't finite, which would else pass for zero vectors (see ``unit``);
    not of a model that has ``watches_vectors``: it sees to that itself.
    """
    vectors = []
    watched = getattr(model, "watches_vectors", False)
    for column in features:
        given = {key: value for key, value in column.items() if key != "component"}
        vector: Tensor = model(given)["sentence_embedding"]
        vectors.append(vector.to(torch.promote_types(vector.dtype, torch.float32)))
        if not watched:
            _check_finite(vectors[-1], len(vectors))
    return vectors


def _check_finite(vectors: Tensor, column: int) -> None:
    # One sum for the common case: it is finite only where all its terms are.
    if bool(torch.isfinite(vectors.detach().sum())):
        return
    bad = ~torch.isfinite(vectors.detach()).all(dim=-1)
    if bool(bad.any()):
        raise InputError(
            f"A vector is NaN or infinite ({places(bad)} of the batch, column {column}). Look at these texts, lower "
            "the learning rate, or train in float32."
        )


def check_labels(score: Tensor, weight: Tensor | None) -> None:
    """Raise InputError with the rows of scores that are NaN or infinite, and of weights that are or are negative."""
    bad = ~torch.isfinite(score)
    if bool(bad.any()):
        raise InputError(f"A score is NaN or infinite ({places(bad)} of the batch). Drop rows without a score first.")
    if weight is not None:
        bad = ~(torch.isfinite(weight) & (weight >= 0))
        if bool(bad.any()):
            raise InputError(
                f"A weight is negative, NaN or infinite ({places(bad)} of the batch). Weights are 0 (leave out) or "
                "more."
            )


def places(bad: Tensor) -> str:
    """The first few rows where ``bad`` (n,) holds, counted from 0, in words."""
    rows = bad.reshape(-1).nonzero().reshape(-1).tolist()
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:5]))}{', ...' * (len(rows) > 5)}"


def embed_twins(model: nn.Module, features: Iterable[Features]) -> tuple[Tensor, Tensor]:
    """Encode one column twice (the model's dropout makes the difference), or two columns once each."""
    columns = list(features)
    if len(columns) not in (1, 2):
        raise InputError(f"This loss needs one column of texts, or two; the data set has {len(columns)}.")
    first, second = embed(model, columns * 2 if len(columns) == 1 else columns)
    return first, second


def columns_of(features: Iterable[Features], names: Sequence[str]) -> list[Features]:
    """Give the columns as a list, or InputError where there aren't as many as ``names``."""
    columns = list(features)
    if len(columns) != len(names):
        raise InputError(
            f"This loss needs the columns {', '.join(names)}, in that order; the data set has "
            f"{len(columns)} columns of texts."
        )
    return columns


@contextmanager
def dropout_off(model: nn.Module) -> Iterator[None]:
    """Put every module in evaluation mode, and each one back as it was, also after an error."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            # Not train(True), which would go down into children that were in evaluation mode.
            module.training = True


def unit(vectors: Tensor) -> Tensor:
    """Scale each row of (n, d) to length 1; a zero row stays zero and gets no gradient."""
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    some = length > 1e-12
    return torch.where(some, vectors / torch.where(some, length, 1.0), 0.0)


def pair_cosine(u: Tensor, v: Tensor) -> Tensor:
    """Give the cosine of row i of u with row i of v: (n, d) and (n, d) to (n,)."""
    return (unit(u) * unit(v)).sum(dim=-1)


def split_labels(labels: Tensor | None, count: int) -> tuple[Tensor, Tensor | None]:
    """Read labels of shape (n,) or (n, 1) as scores, of shape (n, 2) as [score, weight]; each (n,)."""
    if labels is None:
        raise InputError("This loss needs a score for each pair: give the data set a column 'score'.")
    if labels.shape == (count, 2):
        return labels[:, 0], labels[:, 1]
    if labels.shape in ((count,), (count, 1)):
        return labels.reshape(-1), None
    raise InputError(
        f"A batch of {count} pairs came with labels of shape {tuple(labels.shape)}; each pair needs one "
        "score, or [score, weight]."
    )


def check_tau(tau: float) -> float:
    """Give tau back if it is above 0, InputError otherwise."""
    if not 0 < tau < float("inf"):
        raise InputError(f"tau is {tau}; it must be above 0, such as 0.05.")
    return float(tau)
