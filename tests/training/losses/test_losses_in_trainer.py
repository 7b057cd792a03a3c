"""Every loss teaches a tiny BERT in sentence-transformers' own trainer."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

from stscurate.training import losses
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

TEXTS = list(SENTENCES[:8])
PAIRS = {"sentence1": TEXTS, "sentence2": TEXTS[1:] + TEXTS[:1]}
SCORED = PAIRS | {"score": [1.0, 0.1, 0.3, 0.2, 0.0, 1.0, 0.4, 0.9]}
WEIGHTED = PAIRS | {"score": [[score, 0.5] for score in SCORED["score"]]}
BINARY = PAIRS | {"label": [1, 0, 0, 1, 0, 1, 0, 0]}
SINGLE = {"text": TEXTS}
TRIPLETS = {
    "anchor": TEXTS,
    "positive": [text.replace("the", "[MASK]").replace("is", "[MASK]") for text in TEXTS],
    "negative": ["[MASK] [MASK] " + text[len(text) // 2 :] for text in TEXTS],
}
CASES: list[tuple[str, dict[str, Any], dict[str, list[Any]]]] = [
    ("CosineRankLoss", {}, SCORED),
    ("CosineRankLoss", {"min_gap": 0.15}, WEIGHTED),
    ("AngleLoss", {}, SCORED),
    ("AngleLoss", {"variant": "symmetric"}, SCORED),
    ("InBatchNegativesLoss", {}, BINARY),
    ("JointAngleLoss", {}, SCORED),
    ("ArcConLoss", {}, SINGLE),
    ("NTXentLoss", {}, SINGLE),
    ("NestedMaskTripletLoss", {"margin": 0.1}, TRIPLETS),
    ("ArcCSELoss", {}, TRIPLETS),
    ("CachedLoss", {"loss": "JointAngleLoss", "micro_batch": 3}, SCORED),
    ("CachedLoss", {"loss": "ArcCSELoss", "micro_batch": 3}, TRIPLETS),
]


def built(name: str, model: torch.nn.Module, settings: dict[str, Any]) -> Any:
    """A loss by its name; of the gradient cache, around another."""
    if name == "CachedLoss":
        inner = getattr(losses, settings.get("loss", "AngleLoss"))(model)
        return losses.CachedLoss(inner, settings.get("micro_batch", 32))
    return getattr(losses, name)(model, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("tiny") / "model")


@pytest.mark.parametrize(("name", "settings", "columns"), CASES)
def test_training_lowers_the_loss(
    folder: Path, tmp_path: Path, name: str, settings: dict[str, Any], columns: dict[str, list[Any]]
) -> None:
    model = SentenceTransformer(str(folder), device="cpu")
    loss = built(name, model, settings)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path),
        max_steps=12,
        per_device_train_batch_size=8,
        learning_rate=3e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
        dataloader_pin_memory=False,
    )
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_dict(columns), loss=loss
    )
    trainer.train()
    values = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(values) == 12
    assert all(value == value for value in values)
    assert sum(values[-3:]) < 0.95 * sum(values[:3])
    assert loss.model is model
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
    json.dumps(loss.get_config_dict())


def test_every_loss_is_trained_and_shows_its_settings() -> None:
    modules = {name for name in losses.__all__ if inspect.isclass(getattr(losses, name))}
    assert modules == {name for name, _, _ in CASES}
    for name in modules:
        given = set(inspect.signature(getattr(losses, name)).parameters) - {"model"}
        assert set(built(name, torch.nn.Identity(), {}).get_config_dict()) == given
