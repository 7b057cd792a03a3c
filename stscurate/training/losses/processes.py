"""One batch over several processes: the rank losses see all of it, and only scalars are sent.

With torch.distributed initialised, each process has a part of the batch. Its vectors stay where they are; x, s and w of
all pairs (three numbers a pair) are gathered, so that pairs of different processes are compared as well. Losses that
compare vectors (in-batch negatives, NT-Xent, ArcCon) stay within each process.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributed

from stscurate.training.losses.rank import pairwise_rank_loss


def global_rank_loss(
    similarity: Tensor, score: Tensor, *, tau: float, weight: Tensor | None = None, min_gap: float = 0.0
) -> Tensor:
    """The pairwise rank loss over the pairs of all processes; that of this one's where it is alone.

    Each process gets the same value, and the gradient by its own x times the number of processes: averaged over them,
    as DistributedDataParallel does, it is the gradient of the whole batch. All processes call it at once; either
    all or none give weights. Their parts may differ in size.
    """
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        similarity, score, weight = _gathered(similarity, score, weight)
    return pairwise_rank_loss(similarity, score, tau=tau, weight=weight, min_gap=min_gap)


def _gathered(similarity: Tensor, score: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    processes, here = distributed.get_world_size(), distributed.get_rank()
    count = torch.tensor([len(similarity)], device=similarity.device)
    counts = [torch.zeros_like(count) for _ in range(processes)]
    distributed.all_gather(counts, count)
    most = max(int(each) for each in counts)
    own = torch.zeros(3, most, dtype=torch.float64, device=similarity.device)
    for row, values in enumerate((similarity.detach(), score, torch.ones_like(score) if weight is None else weight)):
        own[row, : len(values)] = values
    parts = [torch.zeros_like(own) for _ in range(processes)]
    distributed.all_gather(parts, own)
    parts = [part[:, : int(size)] for part, size in zip(parts, counts, strict=True)]
    all_x = [part[0].to(similarity.dtype) for part in parts]
    # the value of x with the gradient of x times the number of processes
    all_x[here] = similarity.detach() + processes * (similarity - similarity.detach())
    return (
        torch.cat(all_x),
        torch.cat([part[1] for part in parts]),
        None if weight is None else torch.cat([part[2] for part in parts]),
    )
