"""The loss of every row at the end finds labels that were turned about."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer

from stscurate.records import from_rows
from stscurate.training import Schedule, text_rows, train_angle, train_arccse, train_simcse
from stscurate.training.row_losses import ROW_LOSSES, rank_row_losses
from tests.tiny_models import SENTENCES
from tests.training.test_trainer import pairs, triplets


def test_a_row_loss_sums_its_own_comparisons() -> None:
    generator = np.random.default_rng(0)
    n, tau = 40, 0.3
    x, score = generator.normal(size=n), generator.integers(0, 5, n) / 4
    weight = generator.uniform(0.5, 2, n)
    wanted = []
    for k in range(n):
        total = 0.0
        for i in range(n):
            for j in range(n):
                if score[i] > score[j] and k in (i, j):
                    total += weight[i] * weight[j] * np.exp((x[j] - x[i]) / tau)
        wanted.append(np.log1p(total))
    assert rank_row_losses(x, score, weight, tau=tau) == pytest.approx(wanted, rel=1e-12)


def test_rows_with_a_wrong_label_come_first(tiny_model: Path, tmp_path: Path) -> None:
    rows = pairs()
    model = SentenceTransformer(str(tiny_model), device="cpu")
    sides = (model.encode(rows.columns[name], normalize_embeddings=True) for name in ("sentence1", "sentence2"))
    order = np.argsort(np.einsum("ij,ij->i", *sides))
    ranks = np.argsort(order) / (len(order) - 1)
    wrong = [int(order[3]), int(order[-4])]  # else the scores are what the model says already
    rows.columns["label"] = [[float(1 - r if place in wrong else r), 1.0] for place, r in enumerate(ranks)]
    schedule = Schedule(learning_rate=1e-5)
    train_angle(rows, tmp_path / "model", model=str(tiny_model), schedule=schedule, weights=(1, 0, 0))
    table = pq.read_table(tmp_path / "model" / ROW_LOSSES)
    assert table.column_names == ["row", "loss", "cosine_loss", "angle_loss", "cosine", "angle", "score", "weight"]
    assert sorted(table["row"].to_pylist()) == sorted(rows.ids)
    assert {rows.ids[place] for place in wrong} == set(table["row"].to_pylist()[:2])
    losses = table["loss"].to_numpy()
    assert (np.diff(losses) <= 0).all()
    assert (losses == table["cosine_loss"].to_numpy()).all()  # the angle weighs nothing here, and is told all the same
    assert (table["angle_loss"].to_numpy() > 0).all()


def test_rows_without_labels_have_losses_too(tiny_model: Path, tmp_path: Path) -> None:
    train_arccse(triplets(), tmp_path / "arccse", model=str(tiny_model))
    found = pq.read_table(tmp_path / "arccse" / ROW_LOSSES).to_pylist()
    assert len(found) == len(SENTENCES)
    for row in found:
        assert row["triplet_loss"] == pytest.approx(max(0, row["cosine_negative"] - row["cosine_positive"]))
        assert row["loss"] == pytest.approx(row["arc_loss"] + 0.1 * row["triplet_loss"])
    texts = from_rows([{"text_id": str(i), "text": text} for i, text in enumerate(SENTENCES)], "texts")
    train_simcse(text_rows(texts, inputs={}), tmp_path / "simcse", model=str(tiny_model))
    losses = pq.read_table(tmp_path / "simcse" / ROW_LOSSES)["loss"].to_numpy()
    assert (losses > 0).all()
    assert losses.max() < np.log(len(SENTENCES)) + 20
