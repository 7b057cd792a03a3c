"""What each calibration of cosines does on CISI, on STS-B and on issues: bias by length, ranking, duplicates found.

    PYTHONPATH=. python benchmarks/calibration.py FOLDER RUN --answers FILE [--model NAME] [--test]

FOLDER holds cisi and stsb; RUN is what `stscurate collect-issues --from rust-issues.jsonl.xz` has written; FILE keeps
the embeddings. Prints Markdown tables. STS-B test is read with --test alone: what is to be chosen is chosen on dev.

CISI: documents, their sentences, and ten documents joined (the mean of their vectors), of half of the blocks of ten
documents, are fitted to; the other half is measured. Shift: mean similarity of pairs of documents (of tens) less that
of pairs of sentences, over the standard deviation of the latter. AUC: one threshold for all lengths; positive are a
sentence with its document, and with the sentence before it; negative as many each of two sentences, of a sentence and a
document, and of two documents, of different blocks. nDCG@10: the 76 queries with judgements, all documents. STS-B:
fitted to dev's texts. Issues: half of the components of duplicates are fitted to; on the other half one threshold lets
a fixed share of all pairs that aren't duplicates pass. Bands are thirds by the geometric mean of both lengths.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.cisi import Cisi, read_cisi, sentences_of
from stscurate.evaluation import gold_set
from stscurate.methods.calibration import METHODS, Method
from stscurate.methods.calibration.base import unit
from stscurate.methods.calibration.saved import seen_lengths
from stscurate.methods.components import components
from stscurate.methods.correlation import spearman
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder
from stscurate.store import Run

RESAMPLES = 1000
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Set(NamedTuple):
    """Texts: (n, d) unit vectors, tokens, (n,), and what each belongs to, (n,): a block of ten documents."""

    vectors: NDArray[np.float32]
    lengths: Ints
    block: Ints

    def of(self, kept: NDArray[Any]) -> "Set":
        """Some of them."""
        return Set(self.vectors[kept], self.lengths[kept], self.block[kept])


def read(encoder: Encoder, texts: list[str], block: Ints) -> Set:
    """The texts by the model, lengths in tokens that it sees."""
    return Set(encoder.encode(texts), seen_lengths(encoder.token_counts(texts), encoder.reads), block)


def joined(documents: Set) -> Set:
    """Each block's ten documents as one text: the mean of their vectors, and all their tokens."""
    blocks = np.unique(documents.block)
    means = unit(np.stack([documents.vectors[documents.block == block].mean(axis=0) for block in blocks]))
    return Set(means, np.bincount(documents.block, weights=documents.lengths).astype(np.int64), blocks)


def together(sets: list[Set]) -> Set:
    """All of them as one."""
    return Set(*(np.concatenate(parts) for parts in zip(*sets, strict=True)))


def matrix(method: Method, left: Set, right: Set) -> NDArray[np.float32]:
    """Similarities of all with all."""
    return method.block(method.texts(left.vectors, left.lengths), method.texts(right.vectors, right.lengths))


class Moments(NamedTuple):
    """Sums over pairs of different texts by (block, block): pairs, similarities, squares; each (blocks, blocks)."""

    pairs: Floats
    sums: Floats
    squares: Floats

    def mean_and_sd(self, weight: Floats) -> tuple[float, float]:
        """With blocks drawn `weight` times, (blocks,); a block drawn twice isn't paired with itself."""
        both = np.outer(weight, weight)
        np.fill_diagonal(both, weight)
        n, first, second = (float((both * part).sum()) for part in self)
        return first / n, (second / n - (first / n) ** 2) ** 0.5


def moments(method: Method, found: Set) -> Moments:
    """Of all ordered pairs of different texts."""
    values = matrix(method, found, found).astype(np.float64)
    there = ~np.eye(len(values), dtype=bool)
    names, place = np.unique(found.block, return_inverse=True)
    kind = np.eye(len(names))[place]
    parts = (there, np.where(there, values, 0), np.where(there, values**2, 0))
    return Moments(*(kind.T @ part @ kind for part in parts))


def interval(values: list[float]) -> str:
    """95 % percentiles."""
    low, high = np.percentile(values, [2.5, 97.5])
    return f"{low:.3f} to {high:.3f}"


def shifts(method: Method, documents: Set, sentences: Set, tens: Set, rng: np.random.Generator) -> list[str]:
    """Of documents and of tens, each with its interval over blocks drawn anew."""
    one, base, ten = (moments(method, each) for each in (documents, sentences, tens))
    blocks = len(base.pairs)
    times = [np.bincount(rng.integers(blocks, size=blocks), minlength=blocks) for _ in range(200)]
    drawn = [np.ones(blocks), *(each.astype(np.float64) for each in times)]
    found = []
    for weight in drawn:
        mean, sd = base.mean_and_sd(weight)
        found.append([(each.mean_and_sd(weight)[0] - mean) / sd for each in (one, ten)])
    return [f"{first:+.2f} ({interval(list(rest))})" for first, *rest in zip(*found, strict=True)]


def gains(values: Floats, base: Floats, rng: np.random.Generator) -> str:
    """The mean, and the 95 % interval of how far it is above `base` on the same rows, drawn anew."""
    rows = rng.integers(len(values), size=(RESAMPLES, len(values)))
    return f"{values.mean():.4f} ({interval((values - base)[rows].mean(axis=1).tolist())})"


def ndcg(scores: NDArray[np.float32], relevant: list[set[int]]) -> Floats:
    """nDCG@10 of each query, binary gains: (queries, documents) -> (queries,)."""
    discount = 1 / np.log2(np.arange(2, 12))
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    return np.array(
        [
            float(np.isin(row, list(wanted)) @ discount / discount[: min(10, len(wanted))].sum())
            for row, wanted in zip(ranked, relevant, strict=True)
        ]
    )


def one_threshold(method: Method, documents: Set, sentences: Set, owner: Ints) -> float:
    """AUC over pairs of all lengths; owner: each sentence's document, as a row of `documents`."""
    rng = np.random.default_rng(0)
    own = np.arange(len(owner))
    before = np.flatnonzero(owner[1:] == owner[:-1]) + 1
    n = len(owner)

    def pairs(left: Set, rows: Ints, right: Set, others: Ints) -> Floats:
        one, two = left.of(rows), right.of(others)
        return method.similarity(one.vectors, one.lengths, two.vectors, two.lengths)

    positive = [pairs(sentences, own, documents, owner), pairs(sentences, before, sentences, before - 1)]
    a, b = rng.integers(n, size=(2, 3 * n))
    apart = np.flatnonzero(documents.block[owner[a]] != documents.block[owner[b]])[:n]
    a, b = a[apart], b[apart]
    negative = [
        pairs(sentences, a, sentences, b),
        pairs(sentences, a, documents, owner[b]),
        pairs(documents, owner[a], documents, owner[b]),
    ]
    scores = np.concatenate([*positive, *negative])
    return float(roc_auc_score(np.arange(len(scores)) < sum(map(len, positive)), scores))


def cisi(encoder: Encoder, found: Cisi, stsb_texts: Set, rng: np.random.Generator) -> None:
    """Print CISI's table."""
    documents = read(encoder, found.documents, np.arange(len(found.documents)) // 10)
    parted = [sentences_of(text) for text in found.documents]
    owner = np.repeat(np.arange(len(parted)), [len(each) for each in parted])
    sentences = read(encoder, [text for each in parted for text in each], owner // 10)
    queries = read(encoder, found.queries, np.zeros(len(found.queries), np.int64))
    asked = sorted(found.relevant)
    tens = joined(documents)
    fit_blocks = rng.permutation(len(tens.lengths))[: len(tens.lengths) // 2]
    to_fit = together([each.of(np.isin(each.block, fit_blocks)) for each in (documents, sentences, tens)])
    apart, base_texts, long = (each.of(~np.isin(each.block, fit_blocks)) for each in (documents, sentences, tens))
    rows = np.flatnonzero(~np.isin(documents.block, fit_blocks))
    held_owner = np.searchsorted(rows, owner[~np.isin(sentences.block, fit_blocks)])
    print(
        "\n| method | shift of documents | shift of ten joined | AUC of one threshold | nDCG@10 (gain) |\n"
        + "|---" * 5
        + "|"
    )
    base: Floats | None = None
    fits = {name: method.fit(to_fit.vectors, to_fit.lengths) for name, method in METHODS.items()}
    fits["length-centering, fitted to STS-B"] = METHODS["length-centering"].fit(stsb_texts.vectors, stsb_texts.lengths)
    for name, method in fits.items():
        scores = matrix(method, queries.of(np.array(asked)), documents)
        values = ndcg(scores, [found.relevant[query] for query in asked])
        base = values if base is None else base
        cells = [
            *shifts(method, apart, base_texts, long, np.random.default_rng(0)),
            f"{one_threshold(method, apart, base_texts, held_owner):.3f}",
        ]
        print(f"| {name} | {' | '.join(cells)} | {gains(values, base, np.random.default_rng(0))} |", flush=True)


def stsb(folder: Path, split: str) -> tuple[list[str], list[str], Floats]:
    """First texts, second texts, gold."""
    found = gold_set(str(folder / f"stsb-en-{split}.csv"), columns="sentence1,sentence2,score", scale="0-5")
    return [one for one, _ in found.pairs], [two for _, two in found.pairs], found.gold


def sts(encoder: Encoder, folder: Path, fitted_to: Set, splits: list[str]) -> None:
    """Print STS-B's table: Spearman, and the interval of its distance from the bare cosine's."""
    print("\n| method | " + " | ".join(splits) + " |\n" + "|---" * (1 + len(splits)) + "|")
    cells: dict[str, list[str]] = {name: [] for name in METHODS}
    for split in splits:
        one, two, gold = stsb(folder, split)
        texts = list(dict.fromkeys(text for pair in zip(one, two, strict=True) for text in pair))
        place = {text: at for at, text in enumerate(texts)}
        every = read(encoder, texts, np.zeros(len(texts), np.int64))
        left, right = (every.of(np.array([place[text] for text in side])) for side in (one, two))
        base: Floats | None = None
        drawn = np.random.default_rng(0).integers(len(gold), size=(RESAMPLES, len(gold)))
        for name, method in METHODS.items():
            fitted = method.fit(fitted_to.vectors, fitted_to.lengths)
            scores = fitted.similarity(left.vectors, left.lengths, right.vectors, right.lengths)
            base = scores if base is None else base
            apart = [spearman(scores[rows], gold[rows]) - spearman(base[rows], gold[rows]) for rows in drawn[:200]]
            cells[name].append(f"{spearman(scores, gold):.4f} ({interval(apart)})")
    for name, found in cells.items():
        print(f"| {name} | {' | '.join(found)} |", flush=True)


def issues(encoder: Encoder, run: Path, most: int, rates: tuple[float, ...] = (0.01, 0.001)) -> None:
    """Print the table of duplicates found, by length band, of `most` pairs drawn."""
    rng = np.random.default_rng(0)
    rows = [row for row in Run(run).table("pairs").to_pylist() if row["label"] == 1]
    rows = [rows[at] for at in rng.permutation(len(rows))[:most].tolist()]
    texts = list(dict.fromkeys(text for row in rows for text in (row["text1"], row["text2"])))
    place = {text: at for at, text in enumerate(texts)}
    linked = [(place[row["text1"]], place[row["text2"]]) for row in rows]
    every = read(encoder, texts, np.array(components(len(texts), linked)))
    names = np.unique(every.block)
    fitted = np.isin(every.block, rng.permutation(names)[: len(names) // 2])
    to_fit, held = every.of(fitted), every.of(~fitted)
    at = np.cumsum(~fitted) - 1
    pairs = np.array([(at[one], at[two]) for one, two in linked if not fitted[one]])
    middle = np.log2(held.lengths)
    of_pair = middle[pairs].mean(axis=1)
    cuts = np.quantile(of_pair, [1 / 3, 2 / 3])
    band = np.searchsorted(cuts, of_pair)
    left, right = np.triu_indices(len(held.lengths), k=1)
    apart = held.block[left] != held.block[right]
    left, right = left[apart], right[apart]
    others = np.searchsorted(cuts, (middle[left] + middle[right]) / 2)
    print(
        f"\n{len(texts):,} issues, {fitted.sum():,} fitted to; {len(pairs)} duplicates and {len(left):,} other pairs;"
    )
    print(f"bands up to {2 ** cuts[0]:.0f} and {2 ** cuts[1]:.0f} tokens\n")
    print("| method | rate | found, all (gain) | short | middle | long | of others passed: short | middle | long |")
    print("|---" * 9 + "|")
    base: dict[float, Floats] = {}
    for name, kind in METHODS.items():
        values = matrix(kind.fit(to_fit.vectors, to_fit.lengths), held, held)
        for rate in rates:
            level = np.quantile(values[left, right], 1 - rate)
            hit = (values[pairs[:, 0], pairs[:, 1]] > level).astype(np.float64)
            passed = values[left, right] > level
            cells = [f"{hit[band == number].mean():.3f}" for number in range(3)]
            cells += [f"{passed[others == number].mean():.2%}" for number in range(3)]
            gain = gains(hit, base.setdefault(rate, hit), np.random.default_rng(0))
            print(f"| {name} | {rate:.1%} | {gain} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with cisi and stsb")
    parser.add_argument("run", type=Path, help="run with pairs of issues")
    parser.add_argument("--answers", type=Path, required=True, help="SQLite file that keeps the embeddings")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="model folder, packaged or Hub name")
    parser.add_argument("--duplicates", type=int, default=700, help="pairs of duplicate issues drawn, by seed 0")
    parser.add_argument("--test", action="store_true", help="read STS-B test as well")
    options = parser.parse_args()
    with Answers(options.answers, synced=False) as answers:
        encoder = Encoder(options.model, answers=answers)
        one, two, _ = stsb(options.folder / "stsb", "dev")
        texts = list(dict.fromkeys(text for pair in zip(one, two, strict=True) for text in pair))
        dev = read(encoder, texts, np.zeros(len(texts), np.int64))
        sts(encoder, options.folder / "stsb", dev, ["dev", *(["test"] if options.test else [])])
        cisi(encoder, read_cisi(options.folder / "cisi"), dev, np.random.default_rng(0))
        issues(encoder, options.run, options.duplicates)


if __name__ == "__main__":
    main()
