"""Texts -> anchor, positive, negative: the text with a span masked, and with that span enlarged.

ArcCSE (Zhang et al. 2022, section 3.3): a text that lost one piece of its tokens is closer to the whole than one that
lost that piece and more around it. The positive lacks 20 % of the tokens, the negative 40 %, the same 20 % among them.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from stscurate.errors import InputError, first_line
from stscurate.manifest import Entry
from stscurate.methods.words import word_spans
from stscurate.progress import Progress, silent
from stscurate.records import TRIPLETS, Tally
from stscurate.services.encoder import quiet
from stscurate.services.engine import Engine
from stscurate.services.models import Model, locate
from stscurate.store import Run
from stscurate.tables import Source

Mode = Literal["delete", "mask"]
Span = tuple[int, int]

_SHARD = 2000  # texts
# What AutoTokenizer reads of a model's folder; config.json tells it the tokenizer's class.
_TOKENIZER_FILES = (
    *("config.json", "tokenizer*", "vocab*", "merges.txt", "*.model"),
    *("special_tokens_map.json", "added_tokens.json"),
)


def make_triplets(
    run: Run,
    texts: Source,
    *,
    tokenizer: str | None = None,
    ratios: tuple[float, float] = (0.2, 0.4),
    mode: Mode = "delete",
    min_tokens: int = 5,
    seed: int = 0,
    per_text: int = 1,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Entry:
    """A triplet of each text of `min_tokens` or more, or `per_text` of them; the stage `triplets`.

    tokenizer: the model whose tokens are counted; None counts words (methods.words), and characters in scripts that
    are written without spaces. ratios: the shares of tokens that the positive and the negative lack. mode: delete
    the span, or put a mask token for each of its tokens. Of several triplets of a text, each has spans of its own;
    the text then counts as so many rows in. engine: where the work is done; in this process by default.
    Dropped: too_short; same_span where rounding leaves nothing between the two; nothing_left; repeated_span where
    a text's spans were drawn before.
    InputError for ratios that don't nest, and for a tokenizer that can't do this.
    """
    _check(ratios, mode, per_text)
    model = locate(tokenizer, only=_TOKENIZER_FILES) if tokenizer else None
    inputs = texts.inputs | ({model.name: model.fingerprint} if model else {})
    settings = {
        "tokenizer": model.name if model else "words",
        "ratios": list(ratios),
        "mode": mode,
        "min_tokens": min_tokens,
    } | ({"per_text": per_text} if per_text > 1 else {})
    stage = run.stage("triplets", tables=["triplets"], inputs=inputs, settings=settings, seed=seed)
    if stage.entry:
        return stage.entry
    rows = texts.table.num_rows
    missing = [shard for shard in range(-(-rows // _SHARD)) if not stage.has(shard)]
    parts = (_columns(texts.table.slice(shard * _SHARD, _SHARD)) for shard in missing)
    make = partial(_Maker, model, ratios, mode, min_tokens, seed, per_text)
    for shard, (table, tally) in zip(missing, (engine or Engine()).map(make, parts), strict=True):
        if shard == 0:
            tally.add(texts.tally)  # what reading the texts left out
        stage.write(shard, {"triplets": table}, tally)
        progress("triplets", min(rows, (shard + 1) * _SHARD), rows)
    return stage.commit()


def _columns(part: pa.Table) -> tuple[list[str], list[str]]:
    return part["text_id"].to_pylist(), part["text"].to_pylist()


class _Maker:
    """Triplets of a shard of texts; loads the tokenizer once."""

    def __init__(
        self,
        model: Model | None,
        ratios: tuple[float, float],
        mode: Mode,
        min_tokens: int,
        seed: int,
        per_text: int,
    ):
        self._offsets_of, self._mask_token = _tokens(model, mode)
        self._ratios, self._mode, self._seed = ratios, mode, seed
        self._min_tokens, self._per_text = max(min_tokens, 1), per_text

    def __call__(self, texts: tuple[list[str], list[str]]) -> tuple[pa.Table, Tally]:
        """The triplets (schema TRIPLETS) of texts with their ids, and what was left out."""
        tally = Tally()
        rows: list[tuple[Any, ...]] = []
        for key, text, offsets in zip(*texts, self._offsets_of(texts[1]), strict=True):
            tally.rows_in += self._per_text - 1
            if len(offsets) < self._min_tokens:
                tally.drop("too_short", self._per_text)
                continue
            rows += self._of_text(key, text, offsets, tally)
        columns = zip(*rows, strict=True) if rows else [()] * len(TRIPLETS)
        return pa.table(dict(zip(TRIPLETS.names, columns, strict=True)), schema=TRIPLETS), tally

    def _of_text(self, key: str, text: str, offsets: Sequence[Span], tally: Tally) -> Iterator[tuple[Any, ...]]:
        """The triplets of a text as rows of schema TRIPLETS; what is left out goes to the tally."""
        drawn = set()
        for number in range(self._per_text):
            inner, outer = _nested(len(offsets), self._ratios, _Chance(self._seed, key, number))
            if inner == outer:
                tally.drop("same_span")
                continue
            if self._per_text > 1:
                if (inner, outer) in drawn:
                    tally.drop("repeated_span")
                    continue
                drawn.add((inner, outer))
            positive = mask_text(text, offsets, inner, mode=self._mode, mask_token=self._mask_token)
            negative = mask_text(text, offsets, outer, mode=self._mode, mask_token=self._mask_token)
            if positive and negative:
                yield (key, text, positive, negative, *inner, *outer)
            else:
                tally.drop("nothing_left")


def nested_masks(n_tokens: int, ratios: Sequence[float], rng: np.random.Generator) -> list[Span]:
    """Spans (start, stop) of round(ratio * n_tokens) tokens, at least one, for rising ratios, each inside the next.

    The first starts anywhere with equal chance; each next one at any place where it contains the one before.
    InputError for other ratios than rising ones within 0 and 1, and for no token.
    """
    if n_tokens < 1 or not ratios or list(ratios) != sorted(ratios) or not 0 < ratios[0] <= ratios[-1] <= 1:
        raise InputError(f"Ratios {list(ratios)} of {n_tokens} tokens: give rising ratios within 0 and 1, and a token.")
    return _nested(n_tokens, ratios, rng)


def _nested(n_tokens: int, ratios: Sequence[float], rng: "np.random.Generator | _Chance") -> list[Span]:
    spans: list[Span] = []
    inner_start, inner_stop = n_tokens, 0
    for length in _lengths(n_tokens, tuple(ratios)):
        low, high = max(0, inner_stop - length), min(inner_start, n_tokens - length)
        inner_start = int(rng.integers(low, high, endpoint=True))
        inner_stop = inner_start + length
        spans.append((inner_start, inner_stop))
    return spans


@lru_cache(4096)
def _lengths(n_tokens: int, ratios: tuple[float, ...]) -> tuple[int, ...]:
    return tuple(max(1, round(ratio * n_tokens)) for ratio in ratios)


class _Chance:
    """Chance of its own for each text, so that neither shards nor the texts around it matter.

    64 bits of a hash for each number drawn, two at the most; to set up NumPy's generator takes longer than all else.
    """

    def __init__(self, seed: int, text_id: str, number: int):
        name = f"{seed} {text_id} {number}" if number else f"{seed} {text_id}"
        self._bits = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest())

    def integers(self, low: int, high: int, *, endpoint: bool) -> int:
        """A number from low to high, each as likely as the others to within 2 ** -40."""
        bits, self._bits = self._bits & 0xFFFFFFFFFFFFFFFF, self._bits >> 64
        return low + (bits * (high - low + endpoint) >> 64)


def mask_text(text: str, offsets: Sequence[Span], span: Span, *, mode: Mode, mask_token: str = "[MASK]") -> str:  # noqa: S107
    """The text without the tokens of `span`, or with a mask token in place of each.

    offsets: (start, stop) of each token in characters. Of the spaces around what was deleted, those before it stay.
    """
    before, after = text[: offsets[span[0]][0]], text[offsets[span[1] - 1][1] :]
    if mode == "mask":
        return before + " ".join([mask_token] * (span[1] - span[0])) + after
    left, right = before.rstrip(), after.lstrip()
    space = before[len(left) :] or after[: len(after) - len(right)]
    return (left + space + right).strip()


def _check(ratios: tuple[float, float], mode: str, per_text: int) -> None:
    if not 0 < ratios[0] < ratios[1] < 1:
        raise InputError(f"Ratios {ratios[0]:g}, {ratios[1]:g} don't nest: give two rising shares between 0 and 1.")
    if mode not in ("delete", "mask"):
        raise InputError(f"There is no mode {mode}: delete or mask.")
    if per_text < 1:
        raise InputError(f"{per_text} triplets of a text are none: give 1 or more.")


def _tokens(model: Model | None, mode: Mode) -> tuple[Callable[[list[str]], list[list[Span]]], str]:
    """What gives the offsets of texts' tokens, and the mask token."""
    if model is None:
        return lambda texts: [word_spans(text) for text in texts], "[MASK]"
    from transformers import AutoTokenizer

    try:
        with quiet():
            loaded = AutoTokenizer.from_pretrained(str(model.path), local_files_only=True)
    except Exception as error:  # the library raises many kinds for a folder that holds no tokenizer
        raise InputError(
            f"{model.name} has no tokenizer that can be loaded ({first_line(error)}): name another."
        ) from None
    if len(loaded) <= len(loaded.all_special_ids):  # the library makes one up where files are missing
        raise InputError(f"{model.name} has no tokenizer's vocabulary: copy the model again, or name another.")
    if not loaded.is_fast:
        raise InputError(f"{model.name} has a slow tokenizer, which doesn't tell where tokens are: name another.")
    if mode == "mask" and loaded.mask_token is None:
        raise InputError(f"{model.name} has no mask token: delete spans (--mode delete), or name another tokenizer.")
    backend = loaded.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()

    def offsets_of(texts: list[str]) -> list[list[Span]]:
        return [_apart(found.offsets) for found in backend.encode_batch(texts, add_special_tokens=False)]

    return offsets_of, str(loaded.mask_token)


def _apart(offsets: list[Span]) -> list[Span]:
    """Tokens without width left out, pieces of one character (bytes of an emoji) counted as one token."""
    end = 0
    for start, stop in offsets:
        if start < end or stop <= start:
            break
        end = stop
    else:
        return offsets  # as nearly all are
    apart: list[Span] = []
    for start, stop in offsets:
        if stop > start and (not apart or start >= apart[-1][1]):
            apart.append((start, stop))
    return apart
