"""The loss of every training row at the end: the rows that the model can't learn first, for review."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional

from stscurate.services.encoder import prompt_of
from stscurate.training.data import TrainingRows
from stscurate.training.losses.arccon import with_margin
from stscurate.training.losses.features import pair_cosine, unit
from stscurate.training.losses.in_batch import in_batch_texts

Floats = NDArray[np.float64]
Terms = dict[str, Floats]

ROW_LOSSES = "row_losses.parquet"


class Ended:
    """A trained model and its rows, as a rule for the rows' losses reads them."""

    def __init__(self, encoder: SentenceTransformer, rows: TrainingRows, batch_size: int, seed: int):
        self.rows = rows
        self._encoder = encoder
        self._batch_size = batch_size
        self._seed = seed
        texts = rows.texts
        vectors = encoder.encode(texts, batch_size=64, show_progress_bar=False, convert_to_tensor=True).float().cpu()
        place = {text: at for at, text in enumerate(texts)}
        self.vectors: list[Tensor] = [
            vectors[[place[text] for text in rows.columns[name]]] for name in rows.text_columns
        ]

    @property
    def labels(self) -> Floats:
        """Scores and weights, (n, 2)."""
        return np.array(self.rows.columns["label"], dtype=np.float64)

    def cosines(self, first: int, second: int) -> Floats:
        """Cosines of two columns, (n,)."""
        return _numpy(pair_cosine(self.vectors[first], self.vectors[second]))

    def twins(self, *, tau: float, margin: float = 0.0) -> Floats:
        """Cross-entropy of each first text finding its twin under dropout, in batches in the rows' order, (n,).

        margin in radians. Drawn by the seed: another draw gives somewhat other numbers.
        """
        texts = self.rows.columns[self.rows.text_columns[0]]
        found = []
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(self._seed)
            for start in range(0, len(texts), self._batch_size):
                part = texts[start : start + self._batch_size]
                first, second = (self._with_dropout(part) for _ in range(2))
                cosine = unit(first) @ unit(second).T
                moved = with_margin(cosine.diagonal(), margin) if margin else cosine.diagonal()
                logits = cosine.diagonal_scatter(moved) / tau
                found.append(functional.cross_entropy(logits, torch.arange(len(part)), reduction="none"))
        return _numpy(torch.cat(found))

    def in_batch(self, *, tau: float) -> Floats:
        """Of each positive pair the mean in-batch loss of its two texts, in batches in the rows' order, (n,)."""
        found = []
        for start in range(0, len(self.rows), self._batch_size):
            part = slice(start, start + self._batch_size)
            u, v = (vectors[part] for vectors in self.vectors)
            texts = [text for name in self.rows.text_columns for text in self.rows.columns[name][part]]
            loss, _ = in_batch_texts(u, v, torch.ones(len(u), dtype=torch.bool), tau=tau, texts=texts)
            found.append(loss.reshape(2, -1).mean(dim=0))
        return _numpy(torch.cat(found))

    def _with_dropout(self, texts: Sequence[str]) -> Tensor:
        given = self._encoder.preprocess(list(texts), prompt=prompt_of(self._encoder))
        given = {
            key: value.to(self._encoder.device) if isinstance(value, Tensor) else value for key, value in given.items()
        }
        self._encoder.train()
        vectors: Tensor = self._encoder(given)["sentence_embedding"].float().cpu()
        self._encoder.eval()
        return vectors


def row_losses(ended: Ended, rule: Callable[[Ended], tuple[Floats, Terms]]) -> pa.Table:
    """A row each: its id, its loss, the terms, and score and weight where there are; the highest loss first."""
    loss, terms = rule(ended)
    columns: dict[str, Any] = {"row": ended.rows.ids, "loss": loss, **terms}
    if "label" in ended.rows.columns:
        columns |= {"score": ended.labels[:, 0], "weight": ended.labels[:, 1]}
    order = np.argsort(-loss, kind="stable")
    return pa.table(columns).take(pa.array(order))


def rank_row_losses(x: Floats, score: Floats, weight: Floats, *, tau: float) -> Floats:
    """Of each row log(1 + sum of w_i w_j exp((x_j - x_i) / tau)) over the comparisons that it takes part in; (n,).

    What the rank loss (losses.rank) adds up over a batch, here over all rows, s_i > s_j; i or j is the row. High
    where a row stands on the wrong side of others. O(n log n), by running log-sum-exps from either end.
    """
    order = np.argsort(score, kind="stable")
    sorted_score, exponent, log_weight = score[order], x[order] / tau, np.log(weight[order])
    below = np.searchsorted(sorted_score, sorted_score, side="left")
    above = np.searchsorted(sorted_score, sorted_score, side="right")
    from_low = np.concatenate([[-np.inf], np.logaddexp.accumulate(exponent + log_weight)])
    from_high = np.concatenate([np.logaddexp.accumulate((log_weight - exponent)[::-1])[::-1], [-np.inf]])
    beaten = from_low[below] - exponent + log_weight
    beating = from_high[above] + exponent + log_weight
    found = np.empty_like(exponent)
    found[order] = np.logaddexp(0.0, np.logaddexp(beaten, beating))
    return found


def _numpy(values: Tensor) -> Floats:
    return np.asarray(values.numpy(), dtype=np.float64)
