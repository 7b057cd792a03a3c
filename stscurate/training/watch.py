"""Watches a training: the curve, the validation set and the best weights, in a state that each checkpoint keeps."""

import json
import time
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from stscurate.disk import atomic, write_json
from stscurate.progress import Progress
from stscurate.training.encoding import DistinctEncoder
from stscurate.training.network import trained_state
from stscurate.training.schedule import Schedule
from stscurate.training.validation import Validation

_WHOLE = "whole"  # the file that says that a checkpoint was written to its end
_STATE = "watch.json"
_POINTS = 50  # of the curve


class Watch(TrainerCallback):  # type: ignore[misc]
    """Called by the trainer at every step and every checkpoint.

    `state` holds the curve (means since the last point), sums and counts since then, the best look at the validation
    set, looks without a better one, and whether training was stopped for that. It stands in every checkpoint, with the
    best weights beside them in `best/`: a file there is removed only when a later checkpoint is whole, so what a killed
    training goes on from is always there.
    """

    def __init__(
        self,
        folder: Path,
        schedule: Schedule,
        validation: Validation | None,
        encoded: DistinctEncoder,
        progress: Progress,
        *,
        geometry: bool,
    ):
        self.folder = folder
        self.state: dict[str, Any] = {
            "curve": [],
            "sums": {},
            "counts": {},
            "best": None,
            "without": 0,
            "stopped": False,
            "tokens": 0,
            "cells": 0,
        }
        self._schedule = schedule
        self._validation = validation
        self._encoded = encoded
        self._progress = progress
        self._geometry = geometry
        self._latest = ""
        self._began = time.monotonic()
        self._done = {"steps": 0, "rows": 0, "tokens": 0}  # by this process, for the pace alone

    def resume(self, checkpoint: Path) -> None:
        """Go on with the state of a checkpoint."""
        self.state = json.loads((checkpoint / _STATE).read_text())

    def add(self, loss: float, terms: dict[str, float], rows: int, source: str | None = None) -> None:
        """Note a step's loss and its terms; of several sources by the name of the step's."""
        sums, counts = self.state["sums"], self.state["counts"]
        named = {"loss": loss, **terms}
        if source is not None:
            named = {"loss": loss, **{f"{source}: {name}": value for name, value in named.items()}}
        for name, value in named.items():
            sums[name] = sums.get(name, 0.0) + value
            counts[name] = counts.get(name, 0) + 1
        self.state["tokens"] += self._encoded.tokens
        self.state["cells"] += self._encoded.cells
        self._done["rows"] += rows
        self._done["tokens"] += self._encoded.tokens
        self._done["steps"] += 1
        self._encoded.tokens = self._encoded.cells = 0
        self._latest = ", ".join([f"loss {loss:.3f}", *(f"{name} {value:.3f}" for name, value in terms.items())])

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look at the validation set when it is time, and keep the curve."""
        step, last = state.global_step, state.global_step == state.max_steps
        every = self._schedule.eval_steps or -(-state.max_steps // 5)
        look = self._validation is not None and (last or step % every == 0)
        found = self._look(given["model"], step, keep=state.is_world_process_zero) if look else {}
        if look or last or step % -(-state.max_steps // _POINTS) == 0:
            self._point(step, found)
        patience = self._schedule.patience
        if patience is not None and self.state["without"] >= patience:
            self.state["stopped"] = True
            control.should_training_stop = True
            control.should_save = True
        self._progress(f"training steps; {self._particulars(state.max_steps - step)}", step, state.max_steps)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Put the state into the checkpoint, mark it as whole, and remove weights that nothing refers to any more."""
        if not state.is_world_process_zero:
            return
        checkpoint = self.folder / f"checkpoint-{state.global_step}"
        write_json(checkpoint / _STATE, self.state)
        (checkpoint / _WHOLE).touch()
        for path in (self.folder / "best").glob("*"):
            if path != self._best_path():
                path.unlink()

    def autocast(self, encoder: Any) -> torch.autocast:
        """The arithmetic of the training, to read with."""
        kind = torch.float16 if self._schedule.arithmetic == "fp16" else torch.bfloat16
        return torch.autocast(encoder.device.type, kind, enabled=self._schedule.arithmetic != "fp32")

    def best_weights(self) -> dict[str, Any] | None:
        """The weights of the best look; None where there was none."""
        path = self._best_path()
        return None if path is None else dict(torch.load(path, weights_only=True, map_location="cpu"))

    @property
    def padding_share(self) -> float:
        """Of all positions that were encoded, those of padding."""
        return 1 - self.state["tokens"] / self.state["cells"] if self.state["cells"] else 0.0

    def _best_path(self) -> Path | None:
        best = self.state["best"]
        return None if best is None else self.folder / "best" / f"step-{best['step']}.pt"

    def _look(self, encoder: Any, step: int, *, keep: bool) -> dict[str, Any]:
        if self._validation is None:
            return {}
        with self.autocast(encoder):
            found = self._validation.look(encoder, geometry=self._geometry)
        value, best = found["spearman"], self.state["best"]
        if value is not None and (best is None or value > best["spearman"]):
            self.state["best"] = {"step": step, "spearman": value}
            self.state["without"] = 0
            path = self._best_path()
            if keep and path:
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic(path) as file:
                    torch.save(trained_state(encoder), file)
        else:
            self.state["without"] += 1
        return found

    def _point(self, step: int, found: dict[str, Any]) -> None:
        means = {name: total / self.state["counts"][name] for name, total in self.state["sums"].items()}
        self.state["curve"].append({"step": step, **means, **found})
        self.state["sums"], self.state["counts"] = {}, {}

    def _particulars(self, left: int) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        ranks = [point["spearman"] for point in self.state["curve"] if point.get("spearman") is not None]
        parts = [self._latest] + ([f"Spearman {ranks[-1]:.4f}"] if ranks else [])
        parts += [f"{self._done['rows'] / seconds:,.1f} rows/s", f"{self._done['tokens'] / seconds:,.0f} tokens/s"]
        parts += [f"padding {self.padding_share:.1%}"]
        if left and self._done["steps"]:
            parts.append(f"{left * seconds / self._done['steps'] / 60:.1f} min left")
        return ", ".join(parts)


def last_whole(checkpoints: Path) -> Path | None:
    """The latest checkpoint that is whole; None without one."""
    whole = [folder for folder in checkpoints.glob("checkpoint-*") if (folder / _WHOLE).exists()]
    return max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)
