"""A causal language model's parts as transformers loads them: tokenizer, chat template, weights."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.services.batches import Ids
from stscurate.services.encoder import quiet
from stscurate.services.gguf import broken, converted
from stscurate.services.models import Model
from stscurate.services.whole import check_whole

_COUNTED_AT_ONCE = 1024  # texts per call of the tokenizer
_MARKED = re.compile("\ue000(\\d+)\ue001")
_SPACES = ("", " ", "▁", "Ġ")  # how tokenizers write a token with a space before it


class Segment(NamedTuple):
    """A part of a rendered chat: what the template wrote, or (`slot`) the place of a text that is put in later."""

    ids: Ids
    slot: int | None = None


class Network:
    """A model's tokenizer, configuration and weights, each loaded at first use. InputError where one can't be."""

    def __init__(self, model: Model, precision: str, device: str, *, trust_remote_code: bool):
        self.model = model
        self._precision = precision
        self._device = device
        self._trusted = trust_remote_code

    def ids(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of each text; none is added, and marks of chat templates within are read as plain text."""
        return [tuple(ids) for part in self._tokenized(texts, split_special_tokens=True) for ids in part["input_ids"]]

    def heads(self, texts: Sequence[str], max_tokens: int) -> tuple[list[str], NDArray[np.int64]]:
        """Each text up to its first `max_tokens` tokens, and how many tokens that leaves out, (n,) integers."""
        if not self.tokenizer.is_fast:
            return self._searched_heads(texts, max_tokens)
        heads: list[str] = []
        cut: list[int] = []
        for part in self._tokenized(texts, return_offsets_mapping=True, split_special_tokens=True):
            for offsets in part["offset_mapping"]:
                text = texts[len(heads)]
                heads.append(text if len(offsets) <= max_tokens else text[: offsets[max_tokens - 1][1]])
                cut.append(max(len(offsets) - max_tokens, 0))
        return heads, np.array(cut, dtype=np.int64)

    def _searched_heads(self, texts: Sequence[str], max_tokens: int) -> tuple[list[str], NDArray[np.int64]]:
        """The same for a tokenizer that can't tell where its tokens stand: the longest head of so many tokens."""
        heads, cut = [], []
        for text, whole in zip(texts, self.ids(texts), strict=True):
            low, high = 0, len(text)
            while len(whole) > max_tokens and low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if len(self.ids([text[:middle]])[0]) <= max_tokens else (low, middle - 1)
            heads.append(text if len(whole) <= max_tokens else text[:low])
            cut.append(max(len(whole) - max_tokens, 0))
        return heads, np.array(cut, dtype=np.int64)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[Segment]:
        """The messages by the model's chat template, up to where its answer begins, in segments.

        A `slot(number)` in a message is given back as a segment of its own: a text put there is tokenized apart from
        the template, so that nothing in it can be taken for one of the template's own marks. A template that takes no
        system message gets its words at the head of the user's; without a template the messages stand in plain
        paragraphs, "Answer:" behind them.
        """
        rendered = self._rendered([dict(message) for message in messages])
        parts = _MARKED.split(rendered)
        framed = [tuple(ids) for part in self._tokenized(parts[::2]) for ids in part["input_ids"]]
        segments = [Segment(framed[0])]
        for number, ids in zip(parts[1::2], framed[1:], strict=True):
            segments += [Segment((), int(number)), Segment(ids)]
        return segments

    def _rendered(self, messages: list[dict[str, str]]) -> str:
        if not getattr(self.tokenizer, "chat_template", None):
            return "\n\n".join([message["content"] for message in messages] + ["Answer:"])
        # Qwen's template leaves out the thinking, which would stand before the answer; others don't know the word.
        given = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        try:
            return str(self._call(self.tokenizer.apply_chat_template, messages, **given))
        except Exception as error:  # templates raise what they like
            if messages[0]["role"] != "system" or isinstance(error, InputError):
                raise broken(self.model.name, error) from None
            joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
            return self._rendered([{"role": "user", "content": joined}, *messages[2:]])

    def answer_ids(self, answers: Sequence[str]) -> dict[str, list[Ids]]:
        """The ways in which each answer may be written: with a space before it or without; one or two tokens each.

        An answer of more tokens counts by its first. InputError where two answers then can't be told apart.
        """
        vocabulary = self.tokenizer.get_vocab()
        ways: dict[str, list[Ids]] = {}
        for answer in answers:
            single: set[Ids] = {(vocabulary[space + answer],) for space in _SPACES if space + answer in vocabulary}
            written = self._written(answer)
            if not single or len(written) == 1:
                single.add(written)
            ways[answer] = sorted(single)
        firsts = {answer: {ids[0] for ids in found} for answer, found in ways.items()}
        for answer, found in ways.items():
            shared = any(firsts[answer] & firsts[other] for other in answers if other != answer)
            # "10" beside "1": its second token tells them apart. "是" in three bytes: its first token is enough.
            ways[answer] = [ids if len(ids) == 1 or (shared and len(ids) == 2) else ids[:1] for ids in found]
        pairs = [ids for found in ways.values() for ids in found]
        if len(set(pairs)) < len(pairs) or len({ids[0] for ids in pairs if len(ids) == 2}) > 1:
            raise InputError(f"{self.model.name} writes several of the answers {', '.join(answers)} by one token.")
        return ways

    def _written(self, answer: str) -> Ids:
        """An answer's tokens without the space that some tokenizers put before a text."""
        (ids,) = self.ids([answer])
        first = self.tokenizer.convert_ids_to_tokens(ids[0])
        return ids[1:] if len(ids) > 1 and first in _SPACES else ids

    def _tokenized(self, texts: Sequence[str], **options: Any) -> Iterator[Any]:
        for start in range(0, len(texts), _COUNTED_AT_ONCE):
            part = list(texts[start : start + _COUNTED_AT_ONCE])
            yield self._call(self.tokenizer, part, add_special_tokens=False, verbose=False, **options)

    def _call(self, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
        try:
            return function(*given, **options)
        except TypeError as error:
            if "padding_side" not in str(error):
                raise
            raise InputError(
                f"{self.model.name} brings a tokenizer's code that was written for transformers before 4.45: its _pad "
                "doesn't take padding_side. Take a newer revision of the model (NAME@REVISION; for GLM those whose "
                "name ends in -hf), or add padding_side=None to the arguments of _pad in its tokenization_*.py."
            ) from None

    @cached_property
    def _folder(self) -> Path:
        path = self.model.path
        if path.suffix == ".gguf":
            return converted(self.model)
        if not (path / "config.json").exists():
            raise InputError(f"{self.model.name} holds no model (no config.json): name a model's folder or GGUF file.")
        return path

    @cached_property
    def config(self) -> Any:
        """The model's configuration."""
        from transformers import AutoConfig

        return self._load(AutoConfig)

    @cached_property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        from transformers import AutoTokenizer

        return self._load(AutoTokenizer)

    @cached_property
    def network(self) -> Any:
        """The model with its weights, in evaluation mode."""
        from transformers import AutoModelForCausalLM

        kind = torch.bfloat16 if self._precision == "bf16" else torch.float32
        network, told = self._load(AutoModelForCausalLM, dtype=kind, output_loading_info=True)
        check_whole(self.model.name, told["missing_keys"])
        return network.to(self._device).eval()

    def _load(self, kind: Any, **options: Any) -> Any:
        folder = self._folder
        with quiet():
            try:
                return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=self._trusted, **options)
            except Exception as error:  # the libraries raise many kinds for a damaged or a foreign folder
                if "trust_remote_code" in str(error) and not self._trusted:
                    raise InputError(
                        f"{self.model.name} brings Python code of its own, which isn't run unasked: read it, "
                        "then add --trust-remote-code."
                    ) from None
                raise broken(self.model.name, error) from None


def slot(number: int) -> str:
    """What stands in a message for the text of that number, see `Network.chat`."""
    return f"\ue000{number}\ue001"
