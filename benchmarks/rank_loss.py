"""The rank loss against the matrix form and sentence-transformers' own: milliseconds and memory, given x and s.

    python benchmarks/rank_loss.py [--sizes 8 32 128 512 4096 16384] [--threads 1 2] [--repeats 7]

Forward and backward in fp32; x random, s on STS-B's grid of 26 values, seed 0. `matrix` is what angle_emb ships and
sentence-transformers shipped before 6.2, written here from its formula: all n x n differences, those not to be compared
lowered by 1e12. `theirs` is the CoSENTLoss of the installed sentence-transformers, which sorts as well since 6.2.
In turn, medians after a warm-up; one thread by the processor's time, which other work doesn't lengthen, more by the
clock. Memory is the peak of resident memory in one step less what was resident
before it (Linux). The matrix is left out above `--matrix-up-to`: 16,384 pairs would take it several GB. Markdown.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sentence_transformers.sentence_transformer.losses import CoSENTLoss
from torch import Tensor, nn

from stscurate.training.losses import pairwise_rank_loss

TAU = 0.05
Loss = Callable[[Tensor, Tensor], Tensor]


def matrix(similarity: Tensor, score: Tensor) -> Tensor:
    """The n x n form as published code has it."""
    scaled = similarity / TAU
    difference = scaled[:, None] - scaled[None, :]
    wanted = (score[:, None] < score[None, :]).float()
    terms = (difference - (1 - wanted) * 1e12).view(-1)
    return torch.logsumexp(torch.cat([terms.new_zeros(1), terms]), dim=0)


def ours(similarity: Tensor, score: Tensor) -> Tensor:
    """The loss of this project."""
    return pairwise_rank_loss(similarity, score, tau=TAU)


def theirs() -> Loss:
    """sentence-transformers' CoSENTLoss from its similarities on."""
    loss = CoSENTLoss(nn.Identity(), scale=1 / TAU, similarity_fct=lambda x, _: x)
    return lambda similarity, score: loss.compute_loss_from_embeddings([similarity, similarity], score)


def milliseconds(loss: Loss, similarity: Tensor, score: Tensor) -> float:
    """One forward and backward pass."""
    now = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    given = similarity.clone().requires_grad_()
    began = now()
    loss(given, score).backward()  # type: ignore[no-untyped-call]
    return 1000 * (now() - began)


def megabytes(loss: Loss, similarity: Tensor, score: Tensor) -> float:
    """Peak of resident memory in one step beyond what was resident before."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was let go shall not hide what is asked for
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _resident("VmRSS")
    milliseconds(loss, similarity, score)
    return (_resident("VmHWM") - before) / 1024


def _resident(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(name)).split()[1])


def main() -> None:
    """Measure all forms in turn, and print a Markdown table."""
    parser = argparse.ArgumentParser(description="Rank losses: milliseconds and memory.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 32, 128, 512, 4096, 16384], help="pairs")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="torch's threads")
    parser.add_argument("--repeats", type=int, default=7, help="medians of so many (default: %(default)s)")
    parser.add_argument("--matrix-up-to", type=int, default=4096, help="pairs (default: %(default)s)")
    options = parser.parse_args()
    losses: dict[str, Loss] = {"matrix": matrix, "theirs": theirs(), "ours": ours}
    print(
        "| threads | pairs | matrix, ms | theirs, ms | ours, ms | matrix / ours | theirs / ours | matrix, MB "
        "| theirs, MB | ours, MB |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for threads in options.threads:
        torch.set_num_threads(threads)
        generator = torch.Generator().manual_seed(0)
        for loss in losses.values():
            milliseconds(loss, torch.rand(64), torch.rand(64))
        for size in options.sizes:
            x = torch.rand(size, generator=generator) * 2 - 1
            s = torch.randint(0, 26, (size,), generator=generator) / 5
            run = {name: loss for name, loss in losses.items() if name != "matrix" or size <= options.matrix_up_to}
            memory = {name: megabytes(loss, x, s) for name, loss in reversed(run.items())}
            found: dict[str, list[float]] = {name: [] for name in run}
            # small ones are over so soon that a switch of tasks would be all that is seen
            for repeat in range(options.repeats * (20 if size < 1000 else 1) + 1):
                for name, loss in run.items():
                    spent = milliseconds(loss, x, s)
                    if repeat:
                        found[name].append(spent)
            took = {name: statistics.median(values) for name, values in found.items()}
            cells = [f"{took[name]:.3f}" if name in took else "-" for name in losses]
            cells += [f"{took[name] / took['ours']:.1f}" if name in took else "-" for name in ("matrix", "theirs")]
            cells += [f"{memory[name]:.1f}" if name in memory else "-" for name in losses]
            print(f"| {threads} | {size:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
