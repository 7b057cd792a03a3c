"""Which cosine means relevance on CISI, by the lengths of query and document, and whether lengths help to tell.

    PYTHONPATH=. python benchmarks/relevance_cisi.py FOLDER [--nearest 100]

The judged queries (76 of 112) with the nearest documents of each by all-MiniLM-L6-v2 (fp32, 256 tokens); relevant is
what the collection's judgements name. Bare cosines, and s-norm fitted to the documents. Log loss and Brier score are
of queries held out (5 folds); intervals are 95 %, from 200 bootstrap samples of whole queries. Seed 0. Markdown.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.cisi import read_cisi
from stscurate.audit.relevance import Judged, fitted
from stscurate.methods.calibration import METHODS
from stscurate.services.encoder import Encoder


def main() -> None:
    """Fit both similarities, and print what they mean."""
    parser = argparse.ArgumentParser(description="What a cosine means on CISI.")
    parser.add_argument("folder", type=Path, help="CISI.ALL, CISI.QRY and CISI.REL")
    parser.add_argument("--nearest", type=int, default=100, help="documents of a query (default: %(default)s)")
    options = parser.parse_args()
    cisi = read_cisi(options.folder)
    queries = sorted(cisi.relevant)
    encoder = Encoder("all-MiniLM-L6-v2")
    documents = encoder.encode(cisi.documents)
    asked = encoder.encode([cisi.queries[query] for query in queries])
    lengths = np.minimum(encoder.token_counts(cisi.documents), encoder.reads or 1 << 30)
    of_query = np.minimum(encoder.token_counts([cisi.queries[query] for query in queries]), encoder.reads or 1 << 30)
    for name in ("cosine", "s-norm"):
        method = METHODS[name].fit(documents, lengths)
        numbers = method.block(method.texts(asked, of_query), method.texts(documents, lengths)).astype(np.float64)
        near = np.argsort(-numbers, axis=1, kind="stable")[:, : options.nearest]
        row = np.repeat(np.arange(len(queries)), near.shape[1])
        place = near.ravel()
        relevance = np.array(
            [float(d in cisi.relevant[queries[q]]) for q, d in zip(row.tolist(), place.tolist(), strict=True)]
        )
        pairs = [
            (cisi.queries[queries[q]], cisi.documents[d]) for q, d in zip(row.tolist(), place.tolist(), strict=True)
        ]
        report(name, Judged(pairs, numbers[row, place], of_query[row], lengths[place], relevance))


def report(name: str, judged: Judged) -> None:
    """What the curve says, as Markdown."""
    found = fitted(judged)
    print(f"\n{name}: {found['pairs']:,} pairs of {found['queries']} queries, {found['relevant_share']:.1%} relevant")
    for kind, loss in found["held_out"].items():
        print(f"- {kind}: log loss {loss['log_loss']:.4f}, Brier {loss['brier']:.4f}")
    for weight, value in found["curve"].items():
        low, high = found["intervals"][weight]
        print(f"- {weight}: {value:.3f} ({low:.3f} to {high:.3f})")
    even = found["one_threshold"]
    print(
        f"\n| query, document | pairs | relevant | even odds at | relevant at {even:.3f} |\n|---|---:|---:|---:|---:|"
    )
    for band in found["bands"]:
        ends, at = band["similarity_at_0.5_interval"], band["similarity_at_0.5"]
        told = "-" if at is None else f"{at:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")
        chance = band["probability_at_one_threshold"]
        print(
            f"| {band['first']}, {band['second']} | {band['pairs']} | {band['relevant_share']:.1%} | {told} "
            f"| {'-' if chance is None else f'{chance:.0%}'} |"
        )


if __name__ == "__main__":
    main()
