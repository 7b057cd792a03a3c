"""Gates that compare splits: the same text, pair or component in two of them, and nearly the same text.

In memory are a byte for each text, and what `near_copies` says; all else lies on the disk, dealt out by its key.
"""

import hashlib
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stscurate.methods.leaks import text_key
from stscurate.methods.near_duplicates import NearTexts
from stscurate.publishing.buckets import Buckets, bucket_count
from stscurate.publishing.findings import KEPT, Findings, places_of
from stscurate.publishing.parts import Parts
from stscurate.records import SPLITS

NEAR = 0.8
_BLOCK = 1_024  # texts compared with those held at a time
_KEYS = pa.schema([("key", pa.binary(16)), ("split", pa.int8()), ("number", pa.int64())])

Halves = NDArray[np.uint64]  # of keys
Bools = NDArray[np.bool_]
Compared = tuple[int, int, str]  # a text's number (see `places_of`), its split's in SPLITS, and the text


def across_splits(pairs: Parts, triplets: Parts | None, folder: Path) -> dict[str, Findings]:
    """What the gates leak, duplicate and near find; triplets' anchors are texts of train.

    leak: texts and components in another split than where they stand first; duplicate: pairs of the same two texts, in
    either order; near: as `near_copies`. folder: an empty one, for files of this process.
    """
    texts = 2 * pairs.num_rows + (triplets.num_rows if triplets else 0)
    with ExitStack() as stack:
        keys = [
            stack.enter_context(_Keys(folder / name, rows))
            for name, rows in (("texts", texts), ("pairs", pairs.num_rows), ("components", pairs.num_rows))
        ]
        _deal(pairs, triplets, *keys)
    leaks, copies, components = (one.crossings() for one in keys)
    near = near_copies(pairs, triplets, keys[0].first_of_split(texts))
    kept = [one for crossings in (leaks, copies, components, near) for one in crossings.kept()]
    places = places_of(pairs, triplets, {number for one in kept for number in one[:2]})
    found = {"leak": Findings(), "duplicate": Findings(), "near": Findings()}
    for first, other, _ in leaks.kept():
        found["leak"].add(f"the same text in {places[first]} and {places[other]}")
    for first, other, _ in components.kept():
        rows = (f"row {places[number].row} ({places[number].split})" for number in (first, other))
        found["leak"].add(f"component {places[other].component} in pairs {' and '.join(rows)}")
    for first, other, _ in copies.kept():
        rows = (f"row {one.row} ({one.key}), in {one.split}" for one in (places[first], places[other]))
        found["duplicate"].add(f"pairs {', and '.join(rows)}")
    for first, other, value in near.kept():
        found["near"].add(f"{value:.2f} alike are {places[first]} and {places[other]}")
    found["leak"].count = leaks.count + components.count
    found["duplicate"].count, found["near"].count = copies.count, near.count
    return found


class _Smallest:
    """The first of what was found, by the two texts' numbers, and how much there was."""

    def __init__(self) -> None:
        self.count = 0
        self._found: list[tuple[int, int, float]] = []

    def add(self, first: int, other: int, value: float = 1.0) -> None:
        self.count += 1
        self._found.append((first, other, value))
        if len(self._found) > 2 * KEPT:
            self._found = self.kept()

    def kept(self) -> list[tuple[int, int, float]]:
        return sorted(self._found)[:KEPT]


class _Keys(Buckets):
    """Keys of 16 bytes, each with the split and the number of a text that has it."""

    def __init__(self, folder: Path, rows: int):
        super().__init__(folder, _KEYS, bucket_count(rows))

    def put(self, keys: list[bytes], splits: list[int], numbers: list[int]) -> None:
        bucket = np.frombuffer(b"".join(keys), "<u8")[::2] % np.uint64(self.count)
        self.add([keys, splits, numbers], bucket.astype(np.int64))

    def crossings(self) -> _Smallest:
        """(number where a key stands first, number where it stands in another split) of each such place."""
        found = _Smallest()
        for low, high, split, number in self._columns():
            order = np.lexsort((number, low, high))
            new = _begins(low[order], high[order])
            group = np.cumsum(new) - 1
            first = order[np.flatnonzero(new)[group]]
            for one, other in zip(*(rows[split[order] != split[first]] for rows in (first, order)), strict=True):
                found.add(int(number[one]), int(number[other]))
        return found

    def first_of_split(self, texts: int) -> Bools:
        """Whether no text before that of each number has the same key in the same split; (texts,)."""
        first = np.zeros(texts, dtype=bool)
        for low, high, split, number in self._columns():
            order = np.lexsort((number, split, low, high))
            new = _begins(split[order], low[order], high[order])
            first[number[order[new]]] = True
        return first

    def _columns(self) -> Iterator[tuple[Halves, Halves, NDArray[np.int8], NDArray[np.int64]]]:
        for table in self.tables():
            key = table["key"].combine_chunks()
            if len(key):
                both = np.frombuffer(key.buffers()[1], "<u8", 2 * len(key), 16 * key.offset).reshape(-1, 2)
                yield both[:, 0], both[:, 1], table["split"].to_numpy(), table["number"].to_numpy()


def _begins(*columns: NDArray[np.generic]) -> Bools:
    """Where sorted rows are others than the row before."""
    changes = [column[1:] != column[:-1] for column in columns]
    return np.concatenate([[True], np.logical_or.reduce(changes)])


def _deal(pairs: Parts, triplets: Parts | None, texts: _Keys, copies: _Keys, components: _Keys) -> None:
    number = 0
    for batch in pairs.batches(["text1", "text2", "component", "split"]):
        splits = [SPLITS.index(split) for split in batch["split"].to_pylist()]
        numbers = range(number, number + 2 * batch.num_rows, 2)
        number += 2 * batch.num_rows
        sides = [batch[name].to_pylist() for name in ("text1", "text2")]
        keys = [[text_key(text) for text in side] for side in sides]
        for side in (0, 1):
            rows = [row for row, text in enumerate(sides[side]) if text.strip()]  # empty ones are another gate's
            texts.put(
                [keys[side][row] for row in rows], [splits[row] for row in rows], [numbers[row] + side for row in rows]
            )
        both = [hashlib.sha256(b"".join(sorted(one))).digest()[:16] for one in zip(*keys, strict=True)]
        copies.put(both, splits, list(numbers))
        named = [(row, name) for row, name in enumerate(batch["component"].to_pylist()) if name is not None]
        hashes = [hashlib.sha256(name.encode()).digest()[:16] for _, name in named]
        components.put(hashes, [splits[row] for row, _ in named], [numbers[row] for row, _ in named])
    train = SPLITS.index("train")
    for batch in triplets.batches(["anchor"]) if triplets else ():
        anchors = batch["anchor"].to_pylist()
        rows = [row for row, text in enumerate(anchors) if text.strip()]
        texts.put([text_key(anchors[row]) for row in rows], [train] * len(rows), [number + row for row in rows])
        number += batch.num_rows


def near_copies(pairs: Parts, triplets: Parts | None, compared: Bools) -> _Smallest:
    """Texts of two splits with a Jaccard similarity of five-word sequences of 0.8 or more, but for equal ones.

    compared: whether the text of each number is looked at: a text that stands in a split more often is named once.
    Exact (`NearTexts`). The texts of all splits but the largest are held as their sequences, of which there are about
    as many as words, and 33 bytes each; the largest is read in parts and compared with those.
    """
    sizes = np.zeros(len(SPLITS), dtype=np.int64)
    for batch in pairs.batches(["split"]):
        found = np.array([SPLITS.index(split) for split in batch["split"].to_pylist()])
        sizes += 2 * np.bincount(found, minlength=len(SPLITS))
    sizes[SPLITS.index("train")] += triplets.num_rows if triplets else 0
    near = _Smallest()
    if np.count_nonzero(sizes) < 2:
        return near
    largest = int(np.argmax(sizes))
    numbers, splits, keys = array("q"), array("b"), bytearray()  # of those held, 16 bytes to a key

    def smaller() -> Iterator[str]:
        for number, split, text in _compared(pairs, triplets, compared):
            if split != largest:
                numbers.append(number)
                splits.append(split)
                keys.extend(text_key(text))
                yield text

    index = NearTexts(smaller(), threshold=NEAR)
    left = _compared(pairs, triplets, compared)
    while block := list(islice(left, _BLOCK)):
        rows, places, values = index.near([text for _, _, text in block])
        for row, place, value in zip(rows.tolist(), places.tolist(), values.tolist(), strict=True):
            (number, split, text), other = block[row], numbers[place]
            # of two splits that are held, each text finds the other
            fresh = split == largest or (split != splits[place] and number > other)
            if fresh and text_key(text) != keys[16 * place : 16 * place + 16]:
                near.add(min(number, other), max(number, other), value)
    return near


def _compared(pairs: Parts, triplets: Parts | None, compared: Bools) -> Iterator[Compared]:
    number = 0
    for batch in pairs.batches(["text1", "text2", "split"]):
        if compared[number : number + 2 * batch.num_rows].any():
            for row in batch.to_pylist():
                for text in (row["text1"], row["text2"]):
                    if compared[number]:
                        yield number, SPLITS.index(row["split"]), text
                    number += 1
        else:
            number += 2 * batch.num_rows
    for batch in triplets.batches(["anchor"]) if triplets else ():
        for text in batch["anchor"].to_pylist():
            if compared[number]:
                yield number, SPLITS.index("train"), text
            number += 1
