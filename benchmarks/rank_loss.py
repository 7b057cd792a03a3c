"""The rank loss in its sorted form against the matrix form: milliseconds forward and backward, given x and s.

python benchmarks/rank_loss.py
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from stscurate.training.losses import pairwise_rank_loss

TAU = 0.05


def matrix_loss(similarity: Tensor, score: Tensor) -> Tensor:
    """The plain n x n form, as the papers write it."""
    difference = (similarity[None, :] - similarity[:, None]) / TAU
    lower = score[:, None] > score[None, :]
    terms = difference.masked_fill(~lower, float("-inf")).reshape(-1)
    return torch.logsumexp(torch.cat([terms, terms.new_zeros(1)]), dim=0)


def sorted_loss(similarity: Tensor, score: Tensor) -> Tensor:
    """Ours, whichever form it takes at this size."""
    return pairwise_rank_loss(similarity, score, tau=TAU)


def milliseconds(loss: Callable[[Tensor, Tensor], Tensor], similarity: Tensor, score: Tensor) -> float:
    """One forward and backward pass."""
    began = time.perf_counter()
    loss(similarity.clone().requires_grad_(), score).backward()  # type: ignore[no-untyped-call]
    return 1000 * (time.perf_counter() - began)


def main() -> None:
    """Measure both forms in turn, after a warm-up, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 128, 512, 4096])
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print("| pairs | matrix, ms | ours, ms | ratio |\n|---:|---:|---:|---:|")
    for size in arguments.sizes:
        similarity = torch.rand(size, generator=generator) * 2 - 1
        score = torch.randint(0, 26, (size,), generator=generator) / 5
        found: dict[str, list[float]] = {"matrix": [], "ours": []}
        for repeat in range(arguments.repeats + 1):
            for name, loss in (("matrix", matrix_loss), ("ours", sorted_loss)):
                spent = milliseconds(loss, similarity, score)
                if repeat:
                    found[name].append(spent)
        matrix, ours = (statistics.median(found[name]) for name in ("matrix", "ours"))
        print(f"| {size:,} | {matrix:.2f} | {ours:.2f} | {matrix / ours:.1f} |")


if __name__ == "__main__":
    main()
