"""The trainer: our losses on sentence-transformers' trainer, with checkpoints that a kill can't spoil."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from torch import nn
from transformers import PrinterCallback, TrainerCallback, set_seed

from stscurate.artifacts import Artifact
from stscurate.disk import fingerprint
from stscurate.errors import ServiceError, StscurateError
from stscurate.manifest import Entry
from stscurate.methods.leaks import TRAINING_TEXTS, text_digest
from stscurate.progress import Progress, silent
from stscurate.services.encoder import load_network, quiet
from stscurate.services.models import Model, locate
from stscurate.services.precision import default_device, default_precision
from stscurate.training.card import model_card
from stscurate.training.data import TrainingRows
from stscurate.training.losses import ArcCSELoss, JointAngleLoss

_WHOLE = "whole"  # the file that says that a checkpoint was written to its end


@dataclass(frozen=True)
class Schedule:
    """How the rows are gone through: passes, rows a step, peak learning rate, tokens a text is cut to, the seed.

    The learning rate rises over the first tenth of the steps and falls linearly to 0 over the rest.
    save_steps: steps between checkpoints, which is what a kill may cost; it doesn't shape the result.
    precision: of the matrix products; weights and losses stay in float32. auto: services.precision.
    """

    epochs: int = 1
    batch_size: int = 32
    learning_rate: float = 2e-5
    max_tokens: int = 128
    seed: int = 0
    save_steps: int = 100
    precision: Literal["auto", "fp32", "bf16"] = "auto"

    @property
    def settings(self) -> dict[str, Any]:
        """What shapes the result."""
        shaping = {name: value for name, value in asdict(self).items() if name not in ("seed", "save_steps")}
        return shaping | {"precision": default_precision() if self.precision == "auto" else self.precision}


def train_angle(
    rows: TrainingRows,
    out: Path,
    *,
    model: str = "all-MiniLM-L6-v2",
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    taus: tuple[float, float, float] | None = None,
    variant: Literal["code", "symmetric"] = "code",
    threshold: float = 0.8,
    schedule: Schedule | None = None,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Train by AnglE's joint objective (arXiv 2309.12871) on pairs, and write the model to the folder `out`.

    weights and taus: of the cosine, in-batch and angle objective (taus 0.05, 0.05, and the variant's own unless
    given); threshold: the score from which a pair is an in-batch positive. The same call after a kill goes on at
    the last whole checkpoint and ends at the same bytes.
    """
    settings = {"weights": weights, "taus": taus, "variant": variant, "threshold": threshold}

    def loss(encoder: SentenceTransformer) -> nn.Module:
        cosine, in_batch, angle = taus or (0.05, 0.05, None)
        return JointAngleLoss(encoder, *weights, cosine, in_batch, angle, variant=variant, threshold=threshold)

    return _train("angle", rows, out, model, loss, settings, schedule or Schedule(), replace, progress)


def train_arccse(
    rows: TrainingRows,
    out: Path,
    *,
    model: str = "all-MiniLM-L6-v2",
    margin_degrees: float = 10.0,
    tau: float = 0.05,
    triplet_weight: float = 0.1,
    triplet_margin: float = 0.0,
    schedule: Schedule | None = None,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Train by ArcCSE (Zhang et al., ACL 2022) on nested masked triplets; as `train_angle` otherwise."""
    settings = {
        "margin_degrees": margin_degrees,
        "tau": tau,
        "triplet_weight": triplet_weight,
        "triplet_margin": triplet_margin,
    }

    def loss(encoder: SentenceTransformer) -> nn.Module:
        return ArcCSELoss(encoder, **settings)

    return _train("arccse", rows, out, model, loss, settings, schedule or Schedule(), replace, progress)


def _train(
    method: str,
    rows: TrainingRows,
    out: Path,
    model: str,
    loss: Callable[[SentenceTransformer], nn.Module],
    objective: dict[str, Any],
    schedule: Schedule,
    replace: bool,
    progress: Progress,
) -> Entry:
    start = locate(model)
    settings = {"method": method, "model": start.name, **rows.settings, **objective, **schedule.settings}
    inputs = {**rows.inputs, start.name: start.fingerprint}
    with Artifact.open(
        out, stage="train", inputs=inputs, settings=settings, seed=schedule.seed, replace=replace
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        set_seed(schedule.seed)
        encoder = load_network(start)
        own_length = encoder.max_seq_length
        encoder.max_seq_length = min(schedule.max_tokens, own_length or schedule.max_tokens)
        with quiet():
            _fit(encoder, rows, loss(encoder), schedule, artifact.work / "checkpoints", progress)
            encoder.max_seq_length = own_length
            encoder.encode("")  # sets where the tokenizer cuts, which is saved: after a kill at the end no step did
            result = artifact.clear_result()
            encoder.save_pretrained(str(result), create_model_card=False)
        (result / TRAINING_TEXTS).write_text("\n".join(sorted(_trained_texts(start, rows))) + "\n")
        (result / "README.md").write_text(model_card(method, start.name, settings, rows))
        weights = fingerprint(result)
        return artifact.commit({"trained": {"rows": len(rows), "sha256": weights}}, rows.tally)


def _fit(
    encoder: SentenceTransformer,
    rows: TrainingRows,
    loss: nn.Module,
    schedule: Schedule,
    checkpoints: Path,
    progress: Progress,
) -> None:
    """Train in place, from the last whole checkpoint if there is one."""
    resume = _last_whole(checkpoints)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=schedule.epochs,
        per_device_train_batch_size=schedule.batch_size,
        learning_rate=schedule.learning_rate,
        warmup_steps=0.1,
        save_strategy="steps",
        save_steps=schedule.save_steps,
        save_total_limit=2,
        seed=schedule.seed,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=schedule.settings["precision"] == "bf16",
        use_cpu=default_device() == "cpu",
        dataloader_pin_memory=False,
    )
    trainer = _Trainer(
        model=encoder,
        args=arguments,
        train_dataset=Dataset.from_dict(rows.columns),
        loss=loss,
        callbacks=[_Watch(progress)],
    )
    trainer.remove_callback(PrinterCallback)
    try:
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    except RuntimeError as error:
        raise _explained(error) from error
    for name, parameter in encoder.named_parameters():
        if not torch.isfinite(parameter).all():
            raise ServiceError(f"The training went astray: {name} isn't finite. Lower --learning-rate.")


class _Trainer(SentenceTransformerTrainer):  # type: ignore[misc]
    """Without the generated model card: it holds times and examples, and slows every checkpoint down."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        pass

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        self.model.save_pretrained(output_dir or self.args.output_dir, create_model_card=False)


class _Watch(TrainerCallback):  # type: ignore[misc]
    """Reports steps, and marks each checkpoint that was written to its end."""

    def __init__(self, progress: Progress):
        self._progress = progress

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._progress("training steps", state.global_step, state.max_steps)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        (Path(args.output_dir) / f"checkpoint-{state.global_step}" / _WHOLE).touch()


def _last_whole(checkpoints: Path) -> Path | None:
    """The latest checkpoint that is whole; the others, which a kill has left in pieces, are removed."""
    whole = []
    for folder in checkpoints.glob("checkpoint-*"):
        if (folder / _WHOLE).exists():
            whole.append(folder)
        else:
            shutil.rmtree(folder)
    return max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)


def _trained_texts(start: Model, rows: TrainingRows) -> set[str]:
    """Digests of all texts that the model has been trained on by us, the start's own included."""
    known = start.path / TRAINING_TEXTS
    before = known.read_text().split() if known.is_file() else []
    return {*before, *(text_digest(text) for text in rows.texts)}


def _explained(error: RuntimeError) -> StscurateError:
    """What torch says of memory and disks, in one sentence with the mend."""
    text = str(error)
    if "out of memory" in text or "allocate memory" in text:
        return ServiceError("Out of memory: give a smaller --batch-size or fewer --max-tokens.")
    if "PytorchStreamWriter" in text or "No space left" in text:
        return ServiceError(
            "A checkpoint couldn't be written (is the disk full?). Free some space and run the same command "
            "again: it goes on at the last whole checkpoint."
        )
    return ServiceError(f"The training failed: {text.splitlines()[0][:300]}")
