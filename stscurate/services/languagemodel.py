"""What a causal language model on this machine finds likely, by transformers; GGUF files too.

One forward pass an item, no generation: the prefix that all items share is computed once and its keys and values are
reused, items are batched by length and padded on the left (as GLM and generation want it).

The last bits of a number depend on what else is in its batch (padding and matrix shapes change the order of sums).
So batches are formed in a fixed order of what isn't known yet, and committed whole: after a kill the same batches are
formed again. Items that are added later make batches of their own. An item that another one begins with is read in
that one's pass: where b is asked about behind a, a's own likelihood costs nothing more.
"""

import copy
import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers, answer_key
from stscurate.services.batches import Batches, Ids, Item, together
from stscurate.services.models import locate
from stscurate.services.network import Network, Segment
from stscurate.services.precision import default_device, reading_precision

_ROWS = 32  # sequences of a batch at most: each carries a copy of the prefix's keys and values
_TOKENS = 1024  # tokens of a batch at most, padding included: bounds the logits (tokens x vocabulary)

__all__ = ["Ids", "Item", "LanguageModel", "Segment"]


class LanguageModel:
    """A causal language model by name (`services.models.locate`); its weights are loaded at first use.

    precision: "bf16" or "fp32"; by default bf16 where the processor multiplies it in hardware, else fp32. rows, tokens:
    of a batch at most; where they don't fit into memory both are halved until they do. trust_remote_code: whether code
    that lies beside the weights may run. InputError for an unknown model.
    """

    def __init__(
        self,
        name: str,
        *,
        precision: str | None = None,
        rows: int = _ROWS,
        tokens: int = _TOKENS,
        trust_remote_code: bool = False,
    ):
        self.model = locate(name)
        self.device = default_device()
        self.precision = precision or reading_precision()
        self._rows, self._tokens = rows, tokens
        self._network = Network(self.model, self.precision, self.device, trust_remote_code=trust_remote_code)

    def ids(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of each text; none is added, and marks of chat templates within are read as plain text."""
        return self._network.ids(texts)

    def heads(self, texts: Sequence[str], max_tokens: int) -> tuple[list[str], NDArray[np.int64]]:
        """Each text up to its first `max_tokens` tokens, and how many tokens that leaves out, (n,) integers."""
        return self._network.heads(texts, max_tokens)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[Segment]:
        """The messages by the model's chat template, up to where its answer begins; see `Network.chat`."""
        return self._network.chat(messages)

    def answer_ids(self, answers: Sequence[str]) -> dict[str, list[Ids]]:
        """The ways in which each answer may be written: with a space before it or without; one or two tokens each."""
        return self._network.answer_ids(answers)

    def log_likelihoods(
        self, prefix: Ids, items: Sequence[Item], *, answers: Answers | None = None, progress: Progress = silent
    ) -> NDArray[np.float64]:
        """log p(target | prefix, context) of each item, summed over the target's tokens, in nats; (n,).

        With `answers`, each batch is committed when it is done. InputError where an item is longer than the model's
        window, or where there isn't memory for a single one.
        """
        found = self._numbers("likelihood", {}, prefix, items, answers, progress)
        return np.array([found[item][0] for item in items])

    def probabilities(
        self,
        prefix: Ids,
        rows: Sequence[Ids],
        wanted: Sequence[Ids],
        *,
        answers: Answers | None = None,
        progress: Progress = silent,
    ) -> NDArray[np.float64]:
        """p(continuation | prefix, row) of each wanted continuation behind each row, (rows, wanted).

        A continuation has one token or two; those of two begin with the same token, which stands behind every row
        while it is read. A continuation of that one token is what goes on with none of the second ones.
        """
        found = self._numbers(
            "answer", {"wanted": list(wanted)}, prefix, [(row, ()) for row in rows], answers, progress
        )
        return np.array([found[row, ()] for row in rows]).reshape(len(rows), len(wanted))

    def known(
        self, prefix: Ids, items: Sequence[Item], answers: Answers, wanted: Sequence[Ids] | None = None
    ) -> set[Item]:
        """Those of the items whose likelihood, or with `wanted` whose probabilities, `answers` holds."""
        keys = {self._key({"wanted": list(wanted)} if wanted else {}, prefix, item): item for item in set(items)}
        return {keys[key] for key in answers.get(keys)}

    def _key(self, what: Mapping[str, Any], prefix: Ids, item: Item) -> str:
        return answer_key(
            model=self.model.fingerprint,
            precision=self.precision,
            device=self.device,
            context=prefix + item[0],  # where the prefix ends is a matter of speed
            target=item[1],
            **what,
        )

    def _numbers(
        self,
        kind: str,
        what: dict[str, Any],
        prefix: Ids,
        items: Sequence[Item],
        answers: Answers | None,
        progress: Progress,
    ) -> dict[Item, NDArray[np.float64]]:
        """The numbers of each item: kept ones, and computed ones, which are then kept."""
        self._check_window(prefix, items)
        keys = {item: self._key(what, prefix, item) for item in set(items)}
        kept = answers.get(keys.values()) if answers else {}
        found = {item: np.frombuffer(kept[key], "<f8") for item, key in keys.items() if key in kept}
        due = keys.keys() - found.keys()
        passes = together(due) if kind == "likelihood" else {item: [item] for item in due}
        batches = Batches(
            self.model.name,
            passes.keys(),
            rows=self._rows,
            tokens=self._tokens,
            answers=answers,
            key=answer_key(what="batch", model=self.model.fingerprint, precision=self.precision, device=self.device),
        )
        label = {"likelihood": "likelihoods", "answer": "answers"}[kind]
        if batches:
            cache = self._read_prefix(prefix)
        for batch in batches:
            progress(label, len(found), len(keys))
            with batches.shrinking():
                if kind == "likelihood":
                    numbers = self._likelihoods(cache, prefix, [passes[item] for item in batch])
                else:
                    numbers = self._answers(cache, prefix, batch, what["wanted"])
                read = list(chain.from_iterable(passes[item] for item in batch))
                found.update(zip(read, numbers, strict=True))
                if answers:
                    answers.put(kind, {keys[item]: found[item].tobytes() for item in read})
        progress(label, len(keys), len(keys))
        return found

    def _likelihoods(self, cache: Any, prefix: Ids, passes: Sequence[Sequence[Item]]) -> NDArray[np.float64]:
        """(items, 1): the likelihood of each item's target; the items of a pass all begin its first one."""
        wholes = [context + target for (context, target), *_ in passes]
        behind = [
            [len(whole) - len(context) for context, _ in read] for whole, read in zip(wholes, passes, strict=True)
        ]
        # What foretells a target is all that stands before it, its own last token excepted.
        logits = self._logits(cache, prefix, [whole[:-1] for whole in wholes], max(map(max, behind)))
        numbers = []
        for row, read, places in zip(logits, passes, behind, strict=True):
            for (_, target), place in zip(read, places, strict=True):
                part = row[len(row) - place :][: len(target)].float()
                wanted = torch.tensor(target, dtype=torch.long, device=part.device)[:, None]
                numbers.append((part.gather(1, wanted)[:, 0] - part.logsumexp(1)).double().sum())
        return np.asarray(torch.stack(numbers).cpu().numpy(), dtype="<f8")[:, None]

    def _answers(self, cache: Any, prefix: Ids, batch: Sequence[Item], wanted: Sequence[Ids]) -> NDArray[np.float64]:
        """(items, wanted): the probabilities of what is wanted behind each item's context."""
        first = {ids[0] for ids in wanted if len(ids) == 2}
        behind = tuple(first)  # of one token, or empty
        logits = self._logits(cache, prefix, [row + behind for row, _ in batch], 1 + len(behind))
        chance = logits.double().softmax(2).cpu().numpy()
        seconds = [ids[1] for ids in wanted if len(ids) == 2]
        columns = []
        for ids in wanted:
            column = chance[:, 0, ids[0]]
            if len(ids) == 2:
                column = column * chance[:, 1, ids[1]]
            elif ids[0] in first:
                column = column * (1 - chance[:, 1, seconds].sum(axis=1))
            columns.append(column)
        return np.asarray(np.stack(columns, axis=1), dtype="<f8")

    @torch.inference_mode()
    def _read_prefix(self, prefix: Ids) -> Any:
        """The cache of keys and values of the prefix, batch 1; None for a network that takes none."""
        from transformers import DynamicCache

        if "cache" not in self._takes:
            return None
        cache = DynamicCache(config=self._network.network.config)
        if prefix:
            ids = torch.tensor([prefix], device=self.device)
            self._network.network(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
        return cache

    @torch.inference_mode()
    def _logits(self, cache: Any, prefix: Ids, rows: Sequence[Ids], last: int) -> torch.Tensor:
        """Logits (rows, last, vocabulary), as the network gives them, at the last places of each row."""
        before = len(prefix) if cache is not None else 0
        whole = rows if cache is not None else [prefix + row for row in rows]
        longest = max(max(map(len, whole)), last)
        ids = torch.zeros(len(whole), longest, dtype=torch.long)
        mask = torch.zeros(len(whole), before + longest, dtype=torch.long)
        mask[:, :before] = 1
        for number, row in enumerate(whole):
            ids[number, longest - len(row) :] = torch.tensor(row)
            mask[number, before + longest - len(row) :] = 1
        given: dict[str, Any] = {
            "input_ids": ids.to(self.device),
            "attention_mask": mask.to(self.device),
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0)[:, before:].to(self.device),
            "logits_to_keep": last,
        }
        if cache is not None:
            cache = copy.deepcopy(cache)  # the network appends to it
            if before:
                cache.batch_repeat_interleave(len(rows))
            given |= {"cache": cache, "use_cache": True}
        logits = self._network.network(**{name: value for name, value in given.items() if name in self._takes}).logits
        return torch.as_tensor(logits[:, -last:])

    @cached_property
    def _takes(self) -> set[str]:
        return {"use_cache", *inspect.signature(self._network.network.forward).parameters}

    def _check_window(self, prefix: Ids, items: Sequence[Item]) -> None:
        window = getattr(self._network.config, "max_position_embeddings", None)
        longest = len(prefix) + max((len(context) + len(target) for context, target in items), default=0)
        if window and longest > window:
            raise InputError(
                f"{self.model.name} reads {window} tokens at once, and {longest} are due with the demonstrations: "
                "lower --max-tokens, or take a model with a longer window."
            )
