"""The texts of an audit: documents, their sentences, and texts made of them whose length alone differs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.sentences import Splitter, splitter
from stscurate.methods.words import word_spans
from stscurate.records import Tally
from stscurate.tables import rows_fingerprint, text_rows
from stscurate.wording import counted

_CUTS = (5, 20, 40, 120)  # words
_TIMES = (1, 2, 4, 8)
_FEWEST = 20  # texts from which a control tells anything
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")  # Thai to Han


@dataclass(frozen=True)
class Corpus:
    """Documents in their order, and the sentences of each."""

    name: str
    fingerprint: str
    documents: list[str]
    sentences: list[list[str]]
    tally: Tally

    @property
    def flat(self) -> list[str]:
        """All sentences, in order."""
        return [sentence for own in self.sentences for sentence in own]

    @property
    def split(self) -> bool:
        """Whether any document has more than one sentence."""
        return any(len(own) > 1 for own in self.sentences)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The document that each of documents and sentences, in this order, comes from."""
        number = np.arange(len(self.documents))
        return np.concatenate([number, np.repeat(number, [len(own) for own in self.sentences])])


def read_corpus(path: Path, *, columns: str | None = None, sentences: Splitter = "rules") -> Corpus:
    """Texts of a file or run: of one column all, as they stand; of pairs and triplets each text once.

    InputError where there are fewer than two.
    """
    rows = text_rows(path, columns=columns, gold=False)
    tally = Tally(rows_in=len(rows))
    found = [text for row in rows for text in row.texts.values()]
    tally.drop("empty_text", sum(not row.texts for row in rows))
    if any(len(row.texts) > 1 for row in rows):
        found = list(dict.fromkeys(found))
    if len(found) < 2:
        raise InputError(f"{path} has {'one' if found else 'no'} text in it: a cosine takes two.")
    repeated = len(found) - len(set(found))
    if repeated:
        tally.count("texts", "repeated", repeated)
    split = splitter(sentences)
    digest = rows_fingerprint(path)
    return Corpus(path.name, digest, found, [split(text) or [text.strip()] for text in found], tally)


def joined(documents: Sequence[str], number: int) -> list[list[str]]:
    """Consecutive documents by so many; what is left over at the end isn't taken."""
    return [list(documents[start : start + number]) for start in range(0, len(documents) - number + 1, number)]


def controls(corpus: Corpus, number: int, seed: int) -> list[tuple[str, str, list[str]]]:
    """(kind, what was done, texts) of each control, of `number` texts at most, the same ones within a kind.

    cut: the same documents, cut behind so many words. repeated: one sentence so many times over: longer, of the same
    content. joined: sentences of so many different documents: longer, and of more content. A kind for which the corpus
    has fewer than 20 texts is left out.
    """
    rng = np.random.default_rng(seed)
    found: list[tuple[str, str, list[str]]] = []
    whole = [text for text in corpus.documents if len(_words(text)) >= _CUTS[-1]]
    if len(whole) >= _FEWEST:
        chosen = [whole[place] for place in _drawn(rng, len(whole), number)]
        found += [("cut", f"{words} words", [text[: _words(text)[words - 1][1]] for text in chosen]) for words in _CUTS]
    own = [sentences for sentences in corpus.sentences if sentences]
    if len(own) < _FEWEST:
        return found
    weights = np.array([len(sentences) for sentences in own]) / len(corpus.flat)  # each sentence as likely as any
    lead: list[list[str]] = []
    for _ in range(min(number, len(corpus.flat))):
        places = rng.choice(len(own), size=_TIMES[-1], replace=False, p=weights)
        lead.append([own[place][int(rng.integers(len(own[place])))] for place in places])
    found += [("repeated", counted(times, "time"), [" ".join([row[0]] * times) for row in lead]) for times in _TIMES]
    return [
        *found,
        *(("joined", counted(times, "sentence"), [" ".join(row[:times]) for row in lead]) for times in _TIMES),
    ]


def word_counts(texts: Sequence[str]) -> NDArray[np.int64]:
    """Words of each text, (n,): between spaces, or characters of scripts without them."""
    return np.array([len(_words(text)) for text in texts], dtype=np.int64)


def _words(text: str) -> list[tuple[int, int]]:
    return word_spans(text) if _UNSPACED.search(text) else [found.span() for found in re.finditer(r"\S+", text)]


def _drawn(rng: np.random.Generator, size: int, number: int) -> list[int]:
    return sorted(int(place) for place in rng.choice(size, size=min(number, size), replace=False))


def pairs_within(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """All unordered pairs of places with the same group, (m, 2)."""
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    parts: list[Any] = [np.zeros((0, 2), dtype=np.int64)]
    for own in np.split(order, ends):
        one, two = np.triu_indices(len(own), 1)
        parts.append(np.stack([own[one], own[two]], axis=1))
    return np.concatenate(parts).astype(np.int64)
