"""How fast texts of mixed lengths become vectors, and what kept vectors cost to find again.

    OMP_NUM_THREADS=1 python benchmarks/encoder_speed.py CISI.ALL --texts 256 --rounds 5

A sample of the documents and sentences of CISI (seed 0, in random order), all-MiniLM-L6-v2, fp32, one thread. `Encoder`
of services/encoder.py against `SentenceTransformer.encode` of the same texts, both 64 at once and to unit length, in
turn; seconds of the processor, medians. The same call with kept vectors is beside them, and counting the texts' tokens
alone, which the batches are formed by. Printed as Markdown.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from stscurate.audit.size_bias import read_corpus
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder, load_network
from stscurate.services.models import locate


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Speed of the encoder.")
    parser.add_argument("file", type=Path, help="CISI.ALL")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="default: %(default)s")
    parser.add_argument("--texts", type=int, default=256, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = read_corpus(options.file)
    texts = list(dict.fromkeys([*corpus.documents, *corpus.flat]))
    chosen = [texts[place] for place in np.random.default_rng(0).choice(len(texts), options.texts, replace=False)]
    network, encoder = load_network(locate(options.model)), Encoder(options.model)
    encoder.encode(chosen[:2])  # loads the model

    def theirs() -> np.ndarray:
        return np.asarray(network.encode(chosen, batch_size=64, normalize_embeddings=True, show_progress_bar=False))

    with TemporaryDirectory() as folder:
        kept = Answers(Path(folder) / "kept.sqlite", synced=False)
        with kept as answers:
            keeping = Encoder(options.model, answers=answers)
            keeping.encode(chosen)
            ways: dict[str, Callable[[], np.ndarray]] = {
                "ours": lambda: encoder.encode(chosen),
                "SentenceTransformer.encode": theirs,
                "ours, kept before": lambda: keeping.encode(chosen),
                "counting tokens alone": lambda: encoder.token_counts(chosen),
            }
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, way in ways.items():
                    start = time.process_time()
                    way()
                    seconds[name].append(time.process_time() - start)
    far = float(np.abs(encoder.encode(chosen) - theirs()).max())
    counts = encoder.token_counts(chosen)
    print(
        f"{len(chosen)} texts of {counts.min()} to {counts.max()} tokens, mean {counts.mean():.0f}; greatest ", end=""
    )
    print(f"difference of a number {far:.1e}\n\n| way | processor seconds | texts/s |\n|---|---:|---:|")
    for name, found in seconds.items():
        middle = float(np.median(found))
        print(f"| {name} | {middle:.3f} | {len(chosen) / middle:,.0f} |")


if __name__ == "__main__":
    main()
