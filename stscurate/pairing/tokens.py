"""Lengths of the texts in tokens, by a named tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stscurate.methods.words import word_spans
from stscurate.records import Tally
from stscurate.services.models import is_packaged
from stscurate.services.tokenizer import Tokenizer

DEFAULT = "all-MiniLM-L6-v2"
LIMITS = (128, 256, 512)  # tokens that embedding models commonly read


@dataclass(frozen=True)
class TokenCounter:
    """The name to record, what was read for it (name -> SHA-256), and texts -> the tokens of each."""

    name: str
    count: Callable[[Sequence[str]], list[int]]
    inputs: dict[str, str] = field(default_factory=dict)


def token_counter(name: str | None) -> TokenCounter:
    """By the tokenizer of a model, its special tokens included, or by `words`: words and runs of punctuation.

    None takes that of all-MiniLM-L6-v2 (the word pieces of BERT) where its package is installed, else words: neither
    needs a download. InputError where there is no such tokenizer.
    """
    name = name or (DEFAULT if is_packaged(DEFAULT) else "words")
    if name == "words":
        return TokenCounter(name, lambda texts: [len(word_spans(text)) for text in texts])
    tokenizer = Tokenizer(name)
    return TokenCounter(tokenizer.name, tokenizer.count, {f"tokenizer of {tokenizer.name}": tokenizer.fingerprint})


def count_tokens(rows: Sequence[dict[str, Any]], counter: TokenCounter, tally: Tally) -> None:
    """Fill in tokens1 and tokens2 of the rows, and count their different texts and those that pass each limit."""
    texts = list(dict.fromkeys(row[side] for row in rows for side in ("text1", "text2")))
    tokens = dict(zip(texts, counter.count(texts), strict=True))
    for row in rows:
        row["tokens1"], row["tokens2"] = tokens[row["text1"]], tokens[row["text2"]]
    tally.count("tokens", "texts", len(texts))
    for limit in LIMITS:
        tally.count("tokens", f"texts_over_{limit}", sum(count > limit for count in tokens.values()))
