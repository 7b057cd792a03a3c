"""Texts -> anchor, positive, negative: the text with a span masked, and with that span enlarged.

ArcCSE (Zhang et al. 2022, section 3.3): a text that lost one piece of its tokens is closer to the whole than one that
lost that piece and more around it. The positive lacks 20 % of the tokens, the negative 40 %, the same 20 % among them.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from stscurate.errors import InputError, first_line
from stscurate.manifest import Entry
from stscurate.methods.words import word_spans
from stscurate.progress import Progress, silent
from stscurate.records import Tally, from_rows
from stscurate.services.encoder import quiet
from stscurate.services.models import Model, locate
from stscurate.store import Run
from stscurate.tables import Source

Mode = Literal["delete", "mask"]
Span = tuple[int, int]

_SHARD = 2000  # texts


def make_triplets(
    run: Run,
    texts: Source,
    *,
    tokenizer: str | None = None,
    ratios: tuple[float, float] = (0.2, 0.4),
    mode: Mode = "delete",
    min_tokens: int = 5,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """A triplet of each text of `min_tokens` or more; the stage `triplets`.

    tokenizer: the model whose tokens are counted; None counts words (methods.words). ratios: the shares of tokens
    that the positive and the negative lack. mode: delete the span, or put a mask token for each of its tokens.
    Dropped: too_short; same_span where rounding leaves nothing between the two; nothing_left.
    InputError for ratios that don't nest, and for a tokenizer that can't do this.
    """
    _check(ratios, mode)
    model = locate(tokenizer) if tokenizer else None
    inputs = texts.inputs | ({model.name: model.fingerprint} if model else {})
    settings = {
        "tokenizer": model.name if model else "words",
        "ratios": list(ratios),
        "mode": mode,
        "min_tokens": min_tokens,
    }
    stage = run.stage("triplets", tables=["triplets"], inputs=inputs, settings=settings, seed=seed)
    if stage.entry:
        return stage.entry
    offsets_of, mask_token = _tokens(model, mode)
    rows = texts.table.num_rows
    for shard, start in enumerate(range(0, rows, _SHARD)):
        progress("triplets", start, rows)
        if stage.has(shard):
            continue
        part = texts.table.slice(start, _SHARD).to_pylist()
        tally = Tally()
        if shard == 0:
            tally.add(texts.tally)  # what reading the texts left out
        found = []
        for row, offsets in zip(part, offsets_of([row["text"] for row in part]), strict=True):
            if len(offsets) < max(min_tokens, 1):
                tally.drop("too_short")
                continue
            spans = nested_masks(len(offsets), ratios, _generator(seed, row["text_id"]))
            masked = [mask_text(row["text"], offsets, span, mode=mode, mask_token=mask_token) for span in spans]
            if spans[0] == spans[1]:
                tally.drop("same_span")
            elif not all(masked):
                tally.drop("nothing_left")
            else:
                found.append(_triplet(row, masked, spans))
        stage.write(shard, {"triplets": from_rows(found, "triplets")}, tally)
    progress("triplets", rows, rows)
    return stage.commit()


def nested_masks(n_tokens: int, ratios: Sequence[float], rng: np.random.Generator) -> list[Span]:
    """Spans (start, stop) of round(ratio * n_tokens) tokens, at least one, for rising ratios, each inside the next.

    The first starts anywhere with equal chance; each next one at any place where it contains the one before.
    InputError for other ratios than rising ones within 0 and 1, and for no token.
    """
    if n_tokens < 1 or not ratios or list(ratios) != sorted(ratios) or not 0 < ratios[0] <= ratios[-1] <= 1:
        raise InputError(f"Ratios {list(ratios)} of {n_tokens} tokens: give rising ratios within 0 and 1, and a token.")
    spans: list[Span] = []
    for ratio in ratios:
        length = max(1, round(ratio * n_tokens))
        inner_start, inner_stop = spans[-1] if spans else (n_tokens, 0)
        low, high = max(0, inner_stop - length), min(inner_start, n_tokens - length)
        start = int(rng.integers(low, high, endpoint=True))
        spans.append((start, start + length))
    return spans


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


def _check(ratios: tuple[float, float], mode: str) -> None:
    if not 0 < ratios[0] < ratios[1] < 1:
        raise InputError(f"Ratios {ratios[0]:g}, {ratios[1]:g} don't nest: give two rising shares between 0 and 1.")
    if mode not in ("delete", "mask"):
        raise InputError(f"There is no mode {mode}: delete or mask.")


def _triplet(row: dict[str, str], masked: list[str], spans: list[Span]) -> dict[str, object]:
    found: dict[str, object] = {"text_id": row["text_id"], "anchor": row["text"]}
    for name, text, (start, stop) in zip(("positive", "negative"), masked, spans, strict=True):
        found |= {name: text, f"{name}_start": start, f"{name}_stop": stop}
    return found


def _generator(seed: int, text_id: str) -> np.random.Generator:
    """Chance of its own for each text, so that neither shards nor the texts around it matter."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{seed} {text_id}".encode()).digest()))


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
    if len(loaded.get_vocab()) <= len(loaded.all_special_ids):  # the library makes one up where files are missing
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


def _apart(offsets: Sequence[Span]) -> list[Span]:
    """Tokens without width left out, pieces of one character (bytes of an emoji) counted as one token."""
    apart: list[Span] = []
    for start, stop in offsets:
        if stop > start and (not apart or start >= apart[-1][1]):
            apart.append((start, stop))
    return apart
