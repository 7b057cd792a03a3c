"""Log-likelihoods of texts under a causal language model, here, by transformers; GGUF files too.

The last bits of a likelihood depend on what else is in its batch (padding and matrix shapes change the order of
sums). So batches are formed from the whole call in a fixed order, and a batch is kept and found again as a whole:
the numbers depend on what is asked for, never on where a run was broken.
"""

import copy
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from stscurate.disk import sync_tree
from stscurate.errors import InputError, first_line
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers, answer_key
from stscurate.services.encoder import quiet
from stscurate.services.models import Model, locate
from stscurate.services.precision import default_device, default_precision

Ids = tuple[int, ...]
Item = tuple[Ids, Ids]  # context (a token at least) and target, whose tokens are scored

_ROWS = 32  # sequences of a batch at most: each carries a copy of the prefix's keys and values
_TOKENS = 1024  # tokens of a batch at most, padding included: bounds the logits (tokens x vocabulary)
_COUNTED_AT_ONCE = 1024  # texts per call of the tokenizer


class LanguageModel:
    """A causal language model by name (`services.models.locate`); its weights are loaded at first use.

    precision: "bf16" or "fp32"; by default bf16 where the processor multiplies it in hardware (a GPU, or AMX), else
    fp32. rows: sequences of a batch at most. InputError for an unknown model.
    """

    def __init__(self, name: str, *, precision: str | None = None, rows: int = _ROWS):
        self.model = locate(name)
        self.device = default_device()
        self.precision = precision or default_precision()
        self._rows = rows

    def ids(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of each text, no special tokens."""
        return [tuple(ids) for part in self._tokenized(texts) for ids in part["input_ids"]]

    def heads(self, texts: Sequence[str], max_tokens: int) -> tuple[list[str], NDArray[np.int64]]:
        """Each text up to its first `max_tokens` tokens, and how many tokens that leaves out, (n,) integers."""
        heads: list[str] = []
        cut: list[int] = []
        for part in self._tokenized(texts, return_offsets_mapping=True):
            for offsets in part["offset_mapping"]:
                text = texts[len(heads)]
                heads.append(text if len(offsets) <= max_tokens else text[: offsets[max_tokens - 1][1]])
                cut.append(max(len(offsets) - max_tokens, 0))
        return heads, np.array(cut, dtype=np.int64)

    def log_likelihoods(
        self, prefix: Ids, items: Sequence[Item], *, answers: Answers | None = None, progress: Progress = silent
    ) -> NDArray[np.float64]:
        """log p(target | prefix, context) of each item, summed over the target's tokens, in nats; (n,).

        The prefix's keys and values are computed once. With `answers`, each batch is committed when it is done.
        InputError where an item is longer than the model's window.
        """
        self._check_window(prefix, items)
        batches = self._batches(items)
        total = sum(map(len, batches))
        found: dict[Item, float] = {}
        cache = None
        for batch in batches:
            progress("likelihoods", len(found), total)
            key = self._key(prefix, batch)
            kept = answers.get([key]) if answers else {}
            if not kept:
                cache = cache or self._read_prefix(prefix)
                kept = {key: self._score(cache, len(prefix), batch).astype("<f8").tobytes()}
                if answers:
                    answers.put("likelihood", kept)
            found.update(zip(batch, np.frombuffer(kept[key], "<f8").tolist(), strict=True))
        progress("likelihoods", total, total)
        return np.array([found[item] for item in items])

    def known(self, prefix: Ids, items: Sequence[Item], answers: Answers) -> set[Item]:
        """Those of the items whose likelihood `answers` holds."""
        keys = {self._key(prefix, batch): batch for batch in self._batches(items)}
        return {item for key in answers.get(keys) for item in keys[key]}

    def _key(self, prefix: Ids, batch: list[Item]) -> str:
        return answer_key(
            model=self.model.fingerprint, precision=self.precision, device=self.device, prefix=prefix, batch=batch
        )

    def _batches(self, items: Sequence[Item]) -> list[list[Item]]:
        """The distinct items by length, at most so many in a batch that it stays within its rows and tokens."""
        ordered = sorted(set(items), key=lambda item: (len(item[0]) + len(item[1]), len(item[1]), item))
        batches: list[list[Item]] = []
        for item in ordered:
            length = len(item[0]) + len(item[1])
            room = min(self._rows, _TOKENS // length)
            if batches and len(batches[-1]) < room:
                batches[-1].append(item)
            else:
                batches.append([item])
        return batches

    @torch.inference_mode()
    def _read_prefix(self, prefix: Ids) -> Any:
        """The cache of keys and values of the prefix, batch 1."""
        from transformers import DynamicCache

        cache = DynamicCache(config=self._network.config)
        if prefix:
            ids = torch.tensor([prefix], device=self.device)
            self._network(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
        return cache

    @torch.inference_mode()
    def _score(self, cache: Any, before: int, batch: list[Item]) -> NDArray[np.float64]:
        rows = [context + target for context, target in batch]
        starts = torch.tensor([len(context) for context, _ in batch])[:, None]
        stops = torch.tensor([len(row) for row in rows])[:, None]
        longest = int(stops.max())
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
        place = torch.arange(longest)
        mask = torch.cat([torch.ones(len(rows), before, dtype=torch.bool), place < stops], dim=1)
        # Place p foretells the token at p + 1: only the places before a target's tokens need logits.
        first = int(starts.min()) - 1
        cache = copy.deepcopy(cache)  # the network appends to it
        if before:
            cache.batch_repeat_interleave(len(rows))
        logits = self._network(
            input_ids=ids.to(self.device),
            attention_mask=mask.long().to(self.device),
            cache=cache,
            use_cache=True,
            logits_to_keep=place[first:-1].to(self.device),
        ).logits
        wanted = ids[:, first + 1 :].to(self.device)
        loss = cross_entropy(logits.float().flatten(0, 1), wanted.flatten(), reduction="none").view(wanted.shape)
        scored = (place >= starts) & (place < stops)
        total = -(loss.cpu().double() * scored[:, first + 1 :]).sum(dim=1)
        return np.asarray(total.numpy(), dtype=np.float64)

    def _check_window(self, prefix: Ids, items: Sequence[Item]) -> None:
        window = getattr(self._config, "max_position_embeddings", None)
        longest = len(prefix) + max((len(context) + len(target) for context, target in items), default=0)
        if window and longest > window:
            raise InputError(
                f"{self.model.name} reads {window} tokens at once, and {longest} are due with the demonstrations: "
                "lower --max-tokens, or take a model with a longer window."
            )

    def _tokenized(self, texts: Sequence[str], **options: Any) -> Iterator[Any]:
        for start in range(0, len(texts), _COUNTED_AT_ONCE):
            part = list(texts[start : start + _COUNTED_AT_ONCE])
            yield self._tokenizer(part, add_special_tokens=False, verbose=False, **options)

    @cached_property
    def _folder(self) -> Path:
        path = self.model.path
        if path.suffix == ".gguf":
            return converted(self.model)
        if not (path / "config.json").exists():
            raise InputError(f"{self.model.name} holds no model (no config.json): name a model's folder or GGUF file.")
        return path

    @cached_property
    def _config(self) -> Any:
        from transformers import AutoConfig

        return self._load(AutoConfig)

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        tokenizer = self._load(AutoTokenizer)
        if not tokenizer.is_fast:
            raise InputError(f"{self.model.name} has a tokenizer that can't tell where its tokens stand: take another.")
        return tokenizer

    @cached_property
    def _network(self) -> Any:
        from transformers import AutoModelForCausalLM

        kind = torch.bfloat16 if self.precision == "bf16" else torch.float32
        return self._load(AutoModelForCausalLM, dtype=kind).to(self.device).eval()

    def _load(self, kind: Any, **options: Any) -> Any:
        folder = self._folder
        with quiet():
            try:
                return kind.from_pretrained(folder, local_files_only=True, **options)
            except Exception as error:  # the libraries raise many kinds for a damaged or a foreign folder
                raise _broken(self.model.name, error) from None


def converted(model: Model) -> Path:
    """The folder of a GGUF file's model, converted once: reading GGUF takes half a minute, the folder a second.

    It lies in ~/.cache/stscurate/models/FINGERPRINT (under STSCURATE_CACHE where that is set) and appears whole.
    """
    cache = Path(os.environ.get("STSCURATE_CACHE") or Path.home() / ".cache" / "stscurate")
    folder = cache / "models" / model.fingerprint
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be converting it: then wait for its result
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            _convert(model, partial)
            sync_tree(partial)
            partial.rename(folder)
    return folder


def _convert(model: Model, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Its bar can't be switched off, only sent elsewhere.
    with quiet(), redirect_stderr(StringIO()):
        try:
            place = {"pretrained_model_name_or_path": model.path.parent, "gguf_file": model.path.name}
            tokenizer = AutoTokenizer.from_pretrained(**place)
            network = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        except Exception as error:  # the libraries raise many kinds for a damaged file
            raise _broken(model.name, error) from None
        # The weights are plain numbers now; told that they are quantized, it refuses to save them.
        network.hf_quantizer = None
        network.is_quantized = False
        del network.config.quantization_config
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _broken(name: str, error: Exception) -> InputError:
    return InputError(
        f"{name} can't be loaded as a causal language model ({first_line(error)}): copy or save it again."
    )
