"""The loop: our batches and losses on sentence-transformers' trainer, with checkpoints that a kill can't spoil."""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from torch import nn
from transformers import PrinterCallback

from stscurate.errors import ServiceError, StscurateError
from stscurate.progress import Progress
from stscurate.services.encoder import prompt_of
from stscurate.services.precision import default_device
from stscurate.training.batches import Batches, Collator, Turns, columns_of_batch
from stscurate.training.encoding import DistinctEncoder
from stscurate.training.network import trained_state
from stscurate.training.parts import Mix
from stscurate.training.schedule import Schedule
from stscurate.training.validation import Validation
from stscurate.training.watch import Watch, last_whole

_WEIGHTS = "weights.pt"
_GROUP = 16  # texts encoded at once on a CPU; a GPU takes all of a batch
_NAMED = 8  # rows that a refusal names


def fit(
    encoder: SentenceTransformer,
    mix: Mix,
    lengths: Sequence[int],
    schedule: Schedule,
    validation: Validation | None,
    checkpoints: Path,
    progress: Progress,
) -> Watch:
    """Train in place, from the last whole checkpoint if there is one, to the weights that validate best.

    lengths: tokens of each row, (n,). ServiceError where a loss isn't finite, naming the batch's rows, or memory or
    disk run out.
    """
    group = schedule.micro_batch or (_GROUP if default_device() == "cpu" else 1 << 30)
    first = mix.parts[0].objective
    encoded = DistinctEncoder(encoder, group=group, together=first.together, cached=schedule.micro_batch is not None)
    watch = Watch(checkpoints, schedule, validation, encoded, progress, geometry=not first.together)
    processes = PartialState(cpu=default_device() == "cpu")
    if processes.is_main_process:
        _tidied(checkpoints)
    processes.wait_for_everyone()
    resume = last_whole(checkpoints)
    if resume:
        watch.resume(resume)
    columns: dict[str, list[Any]] = {"row": list(range(len(mix.rows))), **mix.rows.columns}
    columns |= {"source": mix.sources()} if mix.several else {}
    trainer = _Trainer(
        model=encoder,
        args=_arguments(schedule, checkpoints),
        train_dataset=Dataset.from_dict(columns),
        loss=_Losses([part.objective.loss(encoded) for part in mix.parts]),
        data_collator=Collator(encoder.preprocess, prompt_of(encoder)),
        callbacks=[watch],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.batches = mix.batches(lengths, schedule, processes=processes.num_processes)
    trainer.watch, trainer.mix, trainer.encoded = watch, mix, encoded
    if not watch.state["stopped"]:
        try:
            trainer.train(resume_from_checkpoint=str(resume) if resume else None)
        except RuntimeError as error:
            raise _explained(error) from error
    best = watch.best_weights()
    if best is not None:
        encoder.load_state_dict(best, strict=False)
    for name, parameter in encoder.named_parameters():
        if not torch.isfinite(parameter).all():
            raise ServiceError(f"The training went astray: {name} isn't finite. Lower --learning-rate.")
    return watch


def _arguments(schedule: Schedule, checkpoints: Path) -> SentenceTransformerTrainingArguments:
    return SentenceTransformerTrainingArguments(
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
        bf16=schedule.arithmetic == "bf16",
        fp16=schedule.arithmetic == "fp16",
        use_cpu=default_device() == "cpu",
        dataloader_pin_memory=False,
    )


class _Losses(nn.Module):
    """The loss of each part."""

    def __init__(self, losses: Sequence[nn.Module]):
        super().__init__()
        self.each = nn.ModuleList(losses)


class _Trainer(SentenceTransformerTrainer):  # type: ignore[misc]
    """Ours: the batches, the loss on distinct texts, and checkpoints of weights alone.

    Without the generated model card: it holds times and examples, and slows every checkpoint down.
    """

    batches: Batches | Turns
    watch: Watch
    mix: Mix
    encoded: DistinctEncoder

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        pass

    def get_batch_sampler(self, *_: Any, **__: Any) -> Batches | Turns:
        return self.batches

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> torch.Tensor:
        self.encoded.encoder = model  # wrapped, where several processes train
        (distinct,) = columns_of_batch(inputs, ["distinct"])
        place = int(inputs["source"][0]) if "source" in inputs else 0
        part, loss_of = self.mix.parts[place], self.loss.each[place]
        self.encoded.together = part.objective.together
        self.encoded.begin(distinct or None)
        columns = columns_of_batch(inputs, part.rows.text_columns)
        loss: torch.Tensor = loss_of(columns, inputs.get("label"))
        value = float(loss.detach())
        if not (math.isfinite(value) and self.encoded.finite):
            raise ServiceError(self._astray(inputs["row"].tolist(), "The loss" if self.encoded.finite else "A vector"))
        source = self.mix.names[place] if self.mix.several else None
        self.watch.add(value, getattr(loss_of, "terms", {}), len(inputs["row"]), source)
        return loss

    def _astray(self, places: list[int], what: str) -> str:
        named = ", ".join(self.mix.rows.ids[place] for place in places[:_NAMED])
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        return (
            f"{what} isn't finite in step {self.state.global_step + 1}, on the rows {named}{more}. Look at these rows, "
            "lower --learning-rate, or give --precision fp32."
        )

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        folder = Path(output_dir or self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(trained_state(self.model), folder / _WEIGHTS)

    def _load_from_checkpoint(self, checkpoint_path: str, model: nn.Module | None = None) -> None:
        weights = torch.load(Path(checkpoint_path) / _WEIGHTS, weights_only=True, map_location="cpu")
        self.model.load_state_dict(weights, strict=False)


def _tidied(checkpoints: Path) -> None:
    """Remove the checkpoints that a kill has left in pieces."""
    latest = last_whole(checkpoints)
    for folder in checkpoints.glob("checkpoint-*"):
        if latest is None or int(folder.name.rpartition("-")[2]) > int(latest.name.rpartition("-")[2]):
            shutil.rmtree(folder)


def _explained(error: RuntimeError) -> StscurateError:
    """What torch says of memory and disks, in one sentence with the mend."""
    text = str(error)
    if "out of memory" in text or "allocate memory" in text:
        return ServiceError(
            "Out of memory: give --micro-batch 8 (the same gradients from fewer texts at once), a smaller "
            "--batch-size, or fewer --max-tokens."
        )
    if "PytorchStreamWriter" in text or "No space left" in text:
        return ServiceError(
            "A checkpoint couldn't be written (is the disk full?). Free some space and run the same command "
            "again: it goes on at the last whole checkpoint."
        )
    return ServiceError(f"The training failed: {text.splitlines()[0][:300]}")
