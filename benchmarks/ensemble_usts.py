"""Which way of making one score of several people's ratings comes closest to what many more people think?

    python benchmarks/ensemble_usts.py FOLDER

FOLDER holds USTS-C (train.json, dev.json, test.json: 6,051 Chinese pairs, each rated by 19 people, 0 to 5). Of the
19, eight are drawn as annotators and the mean of the other eleven is gold, 20 times. Printed as Markdown.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from stscurate.ensemble import METHODS, aggregate
from stscurate.methods.agreement import intraclass_correlation, krippendorff_alpha
from stscurate.methods.correlation import spearman
from stscurate.methods.overlap import overlap
from stscurate.records import VOTES

DRAWN, DRAWS = 8, 20


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Spearman of each method with the mean of other raters.")
    parser.add_argument("folder", type=Path, help="folder of USTS-C's train.json, dev.json and test.json")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods, by commas (default: all)")
    options = parser.parse_args()
    rows = [
        row
        for name in ("train", "dev", "test")
        for row in json.loads((options.folder / f"{name}.json").read_text("utf-8")).values()
    ]
    ratings = np.array([row["raw_annotation"] for row in rows])
    words = {str(number): overlap(row["s1"], row["s2"]) for number, row in enumerate(rows)}
    ways = [*options.methods.split(","), "weighted, beyond shared wording"]
    top = float(np.ceil(ratings.max()))
    unit = np.repeat(np.arange(len(ratings)), ratings.shape[1])
    alphas = {
        level: krippendorff_alpha(unit, ratings.ravel(), level=level) for level in ("interval", "ordinal", "nominal")
    }
    print(f"{ratings.shape[0]} pairs, {ratings.shape[1]} raters, ratings {ratings.min():g} to {ratings.max():g}")
    print(f"columns as people: {_persons(ratings)}")
    print("alpha " + ", ".join(f"{level} {value:.3f}" for level, value in alphas.items()))
    print("ICC " + ", ".join(f"{k} {v:.3f}" for k, v in intraclass_correlation(ratings)._asdict().items()))
    print("\n| method | mean Spearman | lowest | highest | best in draws |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {name: [] for name in ["one rater", *ways]}
    for _ in range(DRAWS):
        drawn = rng.permutation(ratings.shape[1])
        own, gold = ratings[:, drawn[:DRAWN]], ratings[:, drawn[DRAWN:]].mean(axis=1)
        votes = _votes(own, top)
        found["one rater"].append(float(np.mean([spearman(own[:, rater], gold) for rater in range(DRAWN)])))
        for name in ways:
            method, _, beyond = name.partition(", ")
            scores = aggregate(votes, method=method, overlap=words if beyond else None)
            found[name].append(spearman(scores["score"].to_numpy(), gold))
    best = np.argmax(np.array(list(found.values())), axis=0)
    for number, (name, values) in enumerate(found.items()):
        row = f"{np.mean(values):.4f} | {min(values):.4f} | {max(values):.4f}"
        print(f"| {name} | {row} | {np.sum(best == number)} of {DRAWS} |")


def _votes(ratings: np.ndarray, top: float) -> pa.Table:
    pairs, raters = ratings.shape
    n = pairs * raters
    columns = {entry.name: pa.nulls(n, entry.type) for entry in VOTES}
    columns |= {
        name: pa.array([value] * n) for name, value in {"scoring": "rating", "prompt": "", "order": "ab"}.items()
    }
    columns |= {
        "pair_id": pa.array([str(pair) for pair in range(pairs) for _ in range(raters)]),
        "annotator": pa.array([f"rater {rater}" for _ in range(pairs) for rater in range(raters)]),
        "raw": pa.array(ratings.ravel()),
        "scale": pa.array([f"0..{top:g}"] * n),
        "sample": pa.array(np.zeros(n, dtype=np.int16)),
        "cut": pa.array(np.zeros(n, dtype=np.int32)),
    }
    return pa.table(columns, schema=VOTES)


def _persons(ratings: np.ndarray) -> str:
    """Whether a column is one person: the spread of the columns' means, beside that of columns shuffled in each row."""
    own = ratings.mean(axis=0).std()
    rng = np.random.default_rng(0)
    shuffled = [rng.permuted(ratings, axis=1).mean(axis=0).std() for _ in range(20)]
    return f"spread of the columns' means {own:.3f}, of shuffled ones at most {max(shuffled):.3f}"


if __name__ == "__main__":
    main()
