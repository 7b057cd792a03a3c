"""Texts without pairs -> pairs worth labelling: random ones, lexical neighbours and embedding neighbours.

Random pairs are nearly all unrelated, neighbours are related or only look so: in equal shares they spread over the
scale, and the two kinds of neighbours don't share their mistakes.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.methods.texts import normalise
from stscurate.methods.words import word_spans
from stscurate.progress import Progress, silent
from stscurate.records import PAIRS, Tally, from_rows
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder
from stscurate.services.engine import Engine
from stscurate.store import Run
from stscurate.tables import Source, pair_id

_PER_TEXT = 3  # pairs wanted for each text where no number is given
_SHARD = 10_000  # pairs
_BLOCK = 8_000_000  # similarities held at once

Ints = NDArray[np.int64]
Block = Callable[[int, int], NDArray[np.float32]]  # rows start to stop of the (n, n) similarities


def sample_pairs(
    run: Run,
    texts: Source,
    *,
    model: str = "all-MiniLM-L6-v2",
    pairs: int | None = None,
    calibration: Calibration | None = None,
    accept_corpus: bool = False,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Entry:
    """Draw `pairs` pairs (three a text if None, or all there are): the stages `texts` and `pairs`.

    A third each is random, of lexical and of embedding neighbours (origin `sampled:random`, ...); each unordered pair
    stands once. Texts that are equal once normalised count as one, the rest as repeated_text. Rows come in random
    order, so that any first part is a fair sample. engine: where texts are encoded. InputError where fewer than two
    different texts are left.
    """
    rows, tally = _different(texts)
    stage = run.stage("texts", tables=["texts"], inputs=texts.inputs, settings={"imported": texts.name})
    if not stage.entry:
        stage.write(0, {"texts": texts.table}, texts.tally)
        stage.commit()
    with Answers(run.folder / "answers.sqlite") as answers:
        encoder = Encoder(model, answers=answers, engine=engine)
        inputs = {"texts": run.fingerprint("texts"), encoder.model.name: encoder.model.fingerprint}
        settings: dict[str, Any] = {"model": encoder.model.name, "pairs": pairs}
        if calibration:
            inputs["calibration"] = calibration.fingerprint
            settings["calibration"] = calibration.settings
        stage = run.stage("pairs", tables=["pairs"], inputs=inputs, settings=settings, seed=seed)
        if stage.entry:
            return stage.entry
        wanted = _PER_TEXT * len(rows) if pairs is None else pairs
        found = [row["text"] for row in rows]
        if calibration:
            calibration.hold_to(encoder.model, encoder.reads, found, accept_corpus=accept_corpus)
        block = _embedding(found, encoder, calibration, progress)
        chosen = _choose(found, wanted, block, np.random.default_rng(seed), progress)
    if len(chosen) < wanted:
        tally.count("pairs", "wanted", wanted)
        tally.count("pairs", "exist", len(chosen))
    for shard, start in enumerate(range(0, len(chosen), _SHARD)):
        drawn = [_pair(rows[left], rows[right], kind) for left, right, kind in chosen[start : start + _SHARD]]
        for row in drawn:
            tally.count("origin", row["origin"])
        if not stage.has(shard):
            stage.write(shard, {"pairs": from_rows(drawn, "pairs")}, tally)
        tally = Tally()
    return stage.commit()


def _different(texts: Source) -> tuple[list[dict[str, str]], Tally]:
    """The first of the texts that are equal once normalised; the others are counted, as are those left out before."""
    first: dict[str, dict[str, str]] = {}
    tally = Tally()
    tally.add(texts.tally)
    rows = texts.table.to_pylist()
    for row in rows:
        first.setdefault(normalise(row["text"]), row)
    tally.drop("repeated_text", len(rows) - len(first))
    if len(first) < 2:
        raise InputError("All texts are one and the same: a pair needs two that differ.")
    return list(first.values()), tally


def _choose(
    texts: list[str], wanted: int, embedding: Block, rng: np.random.Generator, progress: Progress
) -> list[tuple[int, int, str]]:
    """(left, right, kind) of the pairs drawn, left < right, in random order."""
    n = len(texts)
    wanted = min(wanted, n * (n - 1) // 2)
    share = wanted // 3
    taken: dict[str, Ints] = {}
    for kind, block in (("embedding", embedding), ("lexical", _lexical(texts))):
        known = np.concatenate([np.empty(0, np.int64), *taken.values()])
        taken[kind] = _neighbour_pairs(block, n, share, known, rng, kind, progress)
    known = np.concatenate(list(taken.values()))
    taken["random"] = _random_pairs(n, wanted - len(known), known, rng)
    chosen = [(int(key // n), int(key % n), kind) for kind, keys in taken.items() for key in keys]
    return [chosen[place] for place in rng.permutation(len(chosen))]


def _neighbour_pairs(
    block: Block, n: int, wanted: int, known: Ints, rng: np.random.Generator, kind: str, progress: Progress
) -> Ints:
    """Up to `wanted` pairs (as left * n + right) that aren't known: each text's nearest first, then its second, ..."""
    if not wanted:
        return np.empty(0, np.int64)
    # k neighbours of each text are at least k * n / 2 different pairs, some of them known.
    depth = min(n - 1, ceil(2 * (wanted + len(known)) / n))
    nearest = np.concatenate(list(_nearest(block, n, depth, kind, progress)))
    order = rng.permutation(n)  # where a rank isn't taken whole, chance says which texts give theirs
    left, right = np.tile(order, depth), nearest[order].T.ravel()
    left, right = left[right >= 0], right[right >= 0]
    keys = np.minimum(left, right) * n + np.maximum(left, right)
    _, first = np.unique(keys, return_index=True)
    keys = keys[np.sort(first)]
    return np.asarray(keys[~np.isin(keys, known)][:wanted])


def _nearest(block: Block, n: int, depth: int, kind: str, progress: Progress) -> Iterator[Ints]:
    """Blocks of (rows, depth): the most similar other texts, best first; -1 where the similarity isn't above 0."""
    step = max(1, _BLOCK // n)
    for start in range(0, n, step):
        progress(f"{kind} neighbours", start, n)
        found = block(start, min(start + step, n))
        rows = np.arange(len(found))
        found[rows, start + rows] = -np.inf
        best = np.argpartition(-found, depth - 1, axis=1)[:, :depth]
        best.sort(axis=1)  # equal similarities go by their place
        values = np.take_along_axis(found, best, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        best, values = np.take_along_axis(best, order, axis=1), np.take_along_axis(values, order, axis=1)
        yield np.where(values > 0, best, -1)


def _embedding(texts: list[str], encoder: Encoder, calibration: Calibration | None, progress: Progress) -> Block:
    vectors = encoder.encode(texts, progress=progress)
    if calibration is None:
        return lambda start, stop: vectors[start:stop] @ vectors.T
    method = calibration.method
    compared = method.texts(vectors, lengths_of(encoder, texts))
    return lambda start, stop: method.block(compared[start:stop], compared)


def _lexical(texts: list[str]) -> Block:
    """Cosines of TF-IDF over words and neighbouring pairs of words; words in over a tenth of many texts don't count."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(analyzer=_terms, max_df=max(50, len(texts) // 10), sublinear_tf=True, dtype=np.float32)
    matrix = weigh.fit_transform(texts)
    return lambda start, stop: np.asarray((matrix[start:stop] @ matrix.T).toarray())


def _terms(text: str) -> list[str]:
    words = [text[start:stop].casefold() for start, stop in word_spans(text)]
    return words + [f"{left} {right}" for left, right in pairwise(words)]


def _random_pairs(n: int, wanted: int, known: Ints, rng: np.random.Generator) -> Ints:
    """`wanted` different pairs that aren't known, each equally likely."""
    exist = n * (n - 1) // 2
    if wanted + len(known) > exist // 4:  # so many that drawing would often hit a known one: list them all
        left, right = np.triu_indices(n, k=1)
        free = np.setdiff1d(left * n + right, known)
        return np.asarray(rng.permutation(free)[:wanted])
    found = np.empty(0, np.int64)
    while len(found) < wanted:
        left, right = rng.integers(n, size=(2, 2 * (wanted - len(found)) + 8))
        keys = (np.minimum(left, right) * n + np.maximum(left, right))[left != right]
        keys = np.concatenate([found, keys[~np.isin(keys, known)]])
        _, first = np.unique(keys, return_index=True)
        found = keys[np.sort(first)]
    return found[:wanted]


def _pair(left: dict[str, str], right: dict[str, str], kind: str) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(PAIRS.names)
    row |= {"text1": left["text"], "text2": right["text"], "id1": left["text_id"], "id2": right["text_id"]}
    row |= {"pair_id": pair_id(left["text"], right["text"]), "origin": f"sampled:{kind}", "weight": 1.0, "flags": []}
    return row
