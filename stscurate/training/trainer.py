"""From rows and a model to a trained model's folder, which appears whole or not at all."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from sentence_transformers import SentenceTransformer
from transformers import set_seed

from stscurate import __version__
from stscurate.artifacts import Artifact, unfinished
from stscurate.disk import fingerprint, write_json, write_parquet
from stscurate.manifest import Entry, differences, stage_key
from stscurate.methods.leaks import TRAINING_TEXTS, text_digest, training_digests
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.encoder import prompt_of, quiet, token_counts
from stscurate.services.models import Model, locate
from stscurate.services.precision import default_device
from stscurate.training.card import model_card
from stscurate.training.data import TrainingRows
from stscurate.training.fitting import fit
from stscurate.training.gate import HeldOut, leaks_into
from stscurate.training.network import add_lora, load_backbone, merge_lora, pooling_of
from stscurate.training.parts import Mix, Part
from stscurate.training.row_losses import ROW_LOSSES, Ended, row_losses
from stscurate.training.schedule import Backbone, Schedule
from stscurate.training.validation import Validation
from stscurate.training.watch import Watch, last_whole
from stscurate.wording import counted

CURVE = "training_curve.json"


class Common(TypedDict, total=False):
    """What every training takes, by keyword.

    model: to start from (all-MiniLM-L6-v2). backbone, schedule: see there. validation: chooses the best weights;
    without one the last are kept. held_out: sets of the gate (gate.leaks_into), accept_leaks: go on in spite of it.
    also: sources that are trained on by another loss. turns: each source's share of the steps (parts.Mix), those of
    `also` last. tell: is told in a sentence where the work of another call is thrown away.
    """

    model: str
    backbone: Backbone
    schedule: Schedule
    validation: Validation | None
    held_out: Sequence[HeldOut]
    accept_leaks: bool
    also: Sequence[Part]
    turns: Sequence[float] | None
    replace: bool
    progress: Progress
    tell: Callable[[str], object]


def _untold(_: str) -> None:
    pass


@dataclass(frozen=True)
class Options:
    """`Common` with its defaults."""

    model: str = "all-MiniLM-L6-v2"
    backbone: Backbone = field(default_factory=Backbone)
    schedule: Schedule = field(default_factory=Schedule)
    validation: Validation | None = None
    held_out: Sequence[HeldOut] = ()
    accept_leaks: bool = False
    also: Sequence[Part] = ()
    turns: Sequence[float] | None = None
    replace: bool = False
    progress: Progress = silent
    tell: Callable[[str], object] = _untold


def train(parts: Sequence[Part], out: Path, common: Common) -> Entry:
    """Train on the parts, each by its objective, and write the model to the folder `out`.

    The same call after a kill goes on at the last whole checkpoint and ends at the same bytes.
    """
    given = Options(**common)
    mix = Mix([*parts, *given.also], given.turns)
    rows, method = mix.rows, mix.parts[0].objective.name
    schedule, validation = given.schedule, given.validation
    start = locate(given.model)
    seen = training_digests(start.path) or set()
    leaks = leaks_into(rows, seen, given.held_out, accepted=given.accept_leaks)
    settings = {"method": method, "model": start.name, **mix.settings}
    settings |= schedule.settings | given.backbone.settings | ({"held_out": leaks} if leaks else {})
    inputs = {**rows.inputs, start.name: start.fingerprint}
    if validation:
        inputs["validation"] = validation.fingerprint
    if int(os.environ.get("RANK", "0")):
        return _follow(start, mix, out, given)
    tell_of_loss(out, stage_key(inputs, settings, schedule.seed), given.tell)
    with Artifact.open(
        out, stage="train", inputs=inputs, settings=settings, seed=schedule.seed, replace=given.replace
    ) as artifact:
        if artifact.entry:
            _tell(None)
            return artifact.entry
        checkpoints = artifact.work / "checkpoints"
        _tell(checkpoints)
        encoder, counts, own_length = _begun(start, rows, given)
        tally = _counted(rows, list(counts.values()), int(encoder.max_seq_length), validation)
        unreached = mix.count(tally, schedule)
        with quiet():
            watch = _fitted(encoder, mix, counts, given, checkpoints)
            encoder = merge_lora(encoder, start, given.backbone)
            with watch.autocast(encoder):
                losses = _row_losses(encoder, mix, schedule)
            encoder.max_seq_length = own_length
            encoder.encode("")  # sets where the tokenizer cuts, which is saved: after a kill at the end no step did
            result = artifact.clear_result()
            encoder.save_pretrained(str(result), create_model_card=False)
        found = {"best": watch.state["best"], "padding_share": round(watch.padding_share, 4)}
        found |= {"pooling": pooling_of(encoder, start), "prompt": prompt_of(encoder)}
        write_parquet(result / ROW_LOSSES, losses)
        write_json(result / CURVE, {**found, "points": watch.state["curve"]})
        (result / TRAINING_TEXTS).write_text("\n".join(sorted(seen | _digests(rows))) + "\n")
        (result / "README.md").write_text(model_card(mix.methods, start.name, settings, rows, tally, found))
        trained = {"rows": len(rows) - unreached, "sha256": fingerprint(result), **found}
        return artifact.commit({"trained": trained}, tally)


def _begun(start: Model, rows: TrainingRows, given: Options) -> tuple[SentenceTransformer, dict[str, int], int | None]:
    """The model as it is trained, the tokens of each text, and where the model itself cuts texts."""
    set_seed(given.schedule.seed)
    encoder = load_backbone(start, given.backbone, given.schedule.arithmetic)
    own_length = encoder.max_seq_length
    encoder.max_seq_length = min(given.schedule.max_tokens, own_length or given.schedule.max_tokens)
    counts = dict(zip(rows.texts, token_counts(encoder, rows.texts).tolist(), strict=True))
    if given.backbone.lora is not None:
        add_lora(encoder, given.backbone.lora)
    return encoder, counts, own_length


def _fitted(encoder: SentenceTransformer, mix: Mix, counts: dict[str, int], given: Options, checkpoints: Path) -> Watch:
    lengths = [sum(counts[text] for text in texts) for texts in mix.rows.texts_of_rows()]
    return fit(encoder, mix, lengths, given.schedule, given.validation, checkpoints, given.progress)


def _row_losses(encoder: SentenceTransformer, mix: Mix, schedule: Schedule) -> pa.Table:
    """The rows' losses; of several sources in their order, under their name, since losses of two aren't comparable."""
    tables = [
        row_losses(Ended(encoder, part.rows, schedule.batch_size, schedule.seed), part.objective.rule)
        for part in mix.parts
    ]
    if not mix.several:
        return tables[0]
    named = [
        table.add_column(0, "source", pa.array([name] * len(table), pa.string()))
        for name, table in zip(mix.names, tables, strict=True)
    ]
    return pa.concat_tables(named, promote_options="default")


def tell_of_loss(out: Path, key: dict[str, Any], tell: Callable[[str], object]) -> None:
    """Say where work of another call, with other data or settings, is about to be thrown away."""
    work, old = unfinished(out)
    latest, cells = last_whole(work / "checkpoints"), list(work.glob("cells/*"))
    if old is None or old == key or not (latest or cells):
        return
    done = f"{counted(int(latest.name.rpartition('-')[2]), 'step')}" if latest else f"{counted(len(cells), 'cell')}"
    tell(
        f"{work} holds {done} of a training that was begun otherwise ({differences(old, key)}): they are thrown away, "
        "and this one begins anew."
    )


def _tell(checkpoints: Path | None) -> None:
    """Tell the other processes of a torchrun where the work goes on; None where there is none left."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        PartialState(cpu=default_device() == "cpu")
        broadcast_object_list([str(checkpoints) if checkpoints else None])


def _follow(start: Model, mix: Mix, out: Path, given: Options) -> Entry:
    """The part of every process but the first: it trains along, and writes nothing but its random state."""
    PartialState(cpu=default_device() == "cpu")
    (checkpoints,) = broadcast_object_list([None])
    rows = mix.rows
    if checkpoints:
        encoder, counts, _ = _begun(start, rows, given)
        with quiet():
            _fitted(encoder, mix, counts, given, Path(checkpoints))
    key = {"inputs": rows.inputs, "settings": {}, "seed": given.schedule.seed, "stscurate": __version__}
    return Entry("train", key, {"trained": {"rows": len(rows)}}, rows.tally, {}, out, fresh=bool(checkpoints))


def _counted(rows: TrainingRows, counts: list[int], limit: int, validation: Validation | None) -> Tally:
    """The rows' tally, with their texts and tokens, those that are cut off, and what the validation set shares."""
    tally = Tally()
    tally.add(rows.tally)
    tokens = np.array(counts)
    tally.count("texts", "distinct", len(tokens))
    tally.count("texts", "truncated", int((tokens > limit).sum()))
    tally.count("tokens", "read", int(np.minimum(tokens, limit).sum()))
    tally.count("tokens", "cut", int(np.maximum(tokens - limit, 0).sum()))
    if validation:
        known = _digests(rows)
        shared = sum(any(text_digest(text) in known for text in pair) for pair in validation.pairs)
        tally.count("validation", "pairs", len(validation.pairs))
        tally.count("validation", "with_training_text", shared)
    return tally


def _digests(rows: TrainingRows) -> set[str]:
    return {text_digest(text) for text in rows.texts}
