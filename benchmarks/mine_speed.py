"""Mining of hard negatives against sentence_transformers.util.mine_hard_negatives, from vectors that are there.

    PYTHONPATH=. python benchmarks/mine_speed.py [--pairs 4000]

Made-up unit vectors of 384 dimensions, each positive near its anchor; three negatives of each, 5 % below the positive.
Each runs in a process of its own: processor seconds, and peak memory above that before. Theirs looks at the 31 nearest
(its default for three), and at all (range_max), which is what ours always does; ours by the cosine and by
s-norm. Says how many triplets each finds, and whether theirs at full depth are the same as ours by the cosine.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stscurate.methods.calibration import METHODS, Texts
from stscurate.mining.miner import Miner
from stscurate.mining.positives import Positives
from stscurate.mining.rules import Rules
from stscurate.records import Tally

_KINDS = ("ours, cosine", "ours, s-norm", "theirs, 31 deep", "theirs, all")


class Known:
    """As a SentenceTransformer as the miner needs one: texts are numbers, vectors are looked up."""

    def __init__(self, vectors: NDArray[np.float32]):
        import torch
        from sentence_transformers.util import cos_sim, pairwise_cos_sim

        self.vectors, self.device = vectors, torch.device("cpu")
        self.similarity, self.similarity_pairwise = cos_sim, pairwise_cos_sim
        self.model_card_data = SimpleNamespace(base_model="known")

    def encode_query(self, texts: list[str], **_: Any) -> NDArray[np.float32]:
        """The vectors of these texts."""
        return self.vectors[[int(text) for text in texts]]

    encode_document = encode_query


def made(n: int) -> NDArray[np.float32]:
    """2 n unit vectors; number n + i is near number i."""
    rng = np.random.default_rng(0)
    middle = rng.normal(size=384) * 0.7
    anchors = rng.normal(size=(n, 384)) + middle
    found = np.concatenate([anchors, anchors + rng.normal(size=(n, 384)) * 1.4])
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


def run(kind: str, n: int) -> dict[str, Any]:
    """Seconds, bytes, and the triplets as a set of (anchor, negative)."""
    vectors = made(n)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if kind.startswith("ours"):
        groups = np.concatenate([np.arange(n), np.arange(n)])
        texts = [str(number) for number in range(2 * n)]
        positives = Positives(texts, [(at, n + at) for at in range(n)], np.arange(n, 2 * n), groups, Tally())
        method = METHODS[kind.partition(", ")[2]].fit(vectors, np.ones(2 * n, np.int64))
        ready = method.texts(vectors, np.ones(2 * n, np.int64))
        miner = Miner(positives, Rules(), method, Texts(ready.vectors, ready.own), None, 0)
        rows = [row for at in range(0, n, 2000) for row in miner.triplets(miner.anchors[at : at + 2000], Tally())]
    else:
        from datasets import Dataset
        from sentence_transformers.util import mine_hard_negatives

        pairs = Dataset.from_dict({"anchor": list(map(str, range(n))), "positive": list(map(str, range(n, 2 * n)))})
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        model: Any = Known(vectors)
        depth = n - 1 if kind.endswith("all") else None
        found = mine_hard_negatives(
            pairs, model, relative_margin=0.05, num_negatives=3, range_max=depth, verbose=False, faiss_batch_size=500
        )
        rows = found.to_list()
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    chosen = sorted((int(row["anchor"]), int(row["negative"])) for row in rows)
    return {"seconds": seconds, "mebibytes": peak / 1024, "triplets": chosen}


def main() -> None:
    """Each kind in its own process, as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=4000, help="anchors, each with a positive")
    parser.add_argument("--kind", choices=_KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(run(options.kind, options.pairs)))
        return
    found = {}
    print("| miner | processor seconds | peak MiB above | triplets |\n|---|---|---|---|")
    for kind in _KINDS:
        call = [sys.executable, __file__, "--kind", kind, "--pairs", str(options.pairs)]
        found[kind] = json.loads(subprocess.run(call, capture_output=True, check=True).stdout.splitlines()[-1])
        cells = f"{found[kind]['seconds']:.1f} | {found[kind]['mebibytes']:.0f} | {len(found[kind]['triplets']):,}"
        print(f"| {kind} | {cells} |", flush=True)
    same = found["ours, cosine"]["triplets"] == found["theirs, all"]["triplets"]
    print(f"\nOurs by the cosine and theirs at full depth are {'the same' if same else 'not the same'}.")


if __name__ == "__main__":
    main()
