"""Texts -> unit vectors by the mean of their words' vectors, from a text file as GloVe and word2vec write it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stscurate.cells import as_number
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.files import open_text, reading
from stscurate.methods.words import word_spans
from stscurate.progress import Progress, silent
from stscurate.wording import counted

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class StaticModel:
    """A file of word vectors: its name, never its path, and its SHA-256."""

    name: str
    fingerprint: str


class StaticVectors:
    """Word vectors in a text file, a line each: the word, a space, d numbers; also as .gz, .xz or .bz2.

    word2vec's first line, words and d, may be there. A word of a text is looked up as it stands, then in small letters;
    runs of punctuation are passed over, scripts without spaces go by the character. The file is read through at each
    `encode`, and only the words that are needed are held. InputError names the line that is broken.
    """

    reads: int | None = None  # all of a text

    def __init__(self, path: str | Path):
        self._path = Path(path).expanduser()
        if not self._path.is_file():
            raise InputError(f"There is no file {path} of word vectors: check the path behind static:.")
        self.model = StaticModel(self._path.resolve().name, fingerprint(self._path))
        self._known: dict[str, Vectors | None] = {}  # words looked up so far
        self._dimension = 0

    def encode(self, texts: Sequence[str], *, progress: Progress = silent) -> Vectors:
        """The mean of the vectors of each text's words, over its norm: (n, d) float32.

        A text without any word that has a vector gets zeros, which are like nothing: their cosine is 0 with all.
        """
        found = [_words(text) for text in texts]
        self._look_up({form for words in found for word in words for form in (word, word.lower())}, progress)
        rows = np.zeros((len(texts), self._dimension), np.float32)
        for row, words in enumerate(found):
            vectors = [vector for vector in map(self._vector, words) if vector is not None]
            if vectors:
                mean = np.mean(vectors, axis=0, dtype=np.float64)
                rows[row] = mean / (np.linalg.norm(mean) or 1.0)
        return rows

    def token_counts(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Words of each text, (n,)."""
        return np.array([len(_words(text)) for text in texts], dtype=np.int64)

    def cut(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Nothing is cut off, (n,); see `unknown` for words that aren't seen."""
        return np.zeros(len(texts), np.int64)

    def unknown(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Words of each text that have no vector, (n,)."""
        found = [_words(text) for text in texts]
        self._look_up({form for words in found for word in words for form in (word, word.lower())}, silent)
        return np.array([sum(self._vector(word) is None for word in words) for words in found], dtype=np.int64)

    def _vector(self, word: str) -> Vectors | None:
        exact = self._known[word]
        return self._known[word.lower()] if exact is None else exact

    def _look_up(self, words: set[str], progress: Progress) -> None:
        missing = words - self._known.keys()
        if not missing and self._dimension:
            return
        found: dict[str, Vectors] = {}
        progress("word vectors", 0, len(missing))
        for number, word, numbers in self._rows():
            if word not in missing or word in found:  # the first of a word counts
                continue
            if not all(map(_is_finite, numbers)):
                raise InputError(f"{self._path}, line {number}: what follows {word!r:.40} isn't all finite numbers.")
            found[word] = np.array(numbers, dtype=np.float32)
        progress("word vectors", len(missing), len(missing))
        self._known.update({word: found.get(word) for word in missing})

    def _rows(self) -> Iterator[tuple[int, str, list[str]]]:
        """Number of the line, word and numbers as they stand; all rows are held to the first one's length."""
        promised, rows, dimension = None, 0, 0
        with reading(self._path), open_text(self._path) as file:
            for number, line in enumerate(file, 1):
                fields = line.rstrip("\r\n ").split(" ")
                if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
                    promised, dimension = int(fields[0]), int(fields[1])
                    continue
                dimension = dimension or len(fields) - 1
                if not dimension:
                    raise InputError(f"{self._path}, line {number} is no word with numbers: name another.")
                behind = len(fields) - dimension
                if behind < 1 or (behind > 1 and _is_number(fields[behind - 1])):
                    raise InputError(
                        f"{self._path}, line {number} has {counted(len(fields) - 1, 'number')} where {dimension} are "
                        "due: the "
                        "file is damaged, or no file of word vectors. Copy it again."
                    )
                rows += 1
                yield number, " ".join(fields[:behind]), fields[behind:]  # a few of GloVe's words hold a space
        if promised is not None and rows != promised:
            raise InputError(f"{self._path} promises {counted(promised, 'word')} and holds {rows:,}: copy it again.")
        if not rows:
            raise InputError(f"{self._path} holds no word vectors: name another file behind static:.")
        self._dimension = dimension


def _words(text: str) -> list[str]:
    spans = (text[start:stop] for start, stop in word_spans(text))
    return [span for span in spans if span[0].isalnum() or span[0] == "_"]


def _is_number(field: str) -> bool:
    return not math.isnan(as_number(field))


def _is_finite(field: str) -> bool:
    return math.isfinite(as_number(field))
