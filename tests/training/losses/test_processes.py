"""Two processes with half of a batch each, against one with the whole of it."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from stscurate.training.losses import AngleLoss, CachedLoss, CosineRankLoss, InBatchNegativesLoss

N, CUT = 11, 5  # pairs; those of the first process


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()

    def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": self.layers(given["vectors"])}


def batch(part: slice) -> tuple[list[dict[str, Tensor]], Tensor]:
    """Features, and labels [score, weight]; one weight is 0."""
    random = torch.Generator().manual_seed(1)
    u, v = torch.randn(2, N, 6, generator=random, dtype=torch.float64)
    labels = torch.rand(N, 2, generator=random, dtype=torch.float64)
    labels[3, 1] = 0
    return [{"vectors": u[part]}, {"vectors": v[part]}], labels[part]


LOSSES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "cosine": lambda model: CosineRankLoss(model, min_gap=0.05),
    "angle": AngleLoss,
    "cached": lambda model: CachedLoss(AngleLoss(model, variant="symmetric", tau=0.1), micro_batch=2),
    "in_batch": lambda model: InBatchNegativesLoss(model, threshold=0.5),
}


def step(loss: nn.Module, part: slice, weighted: bool) -> Tensor:
    features, labels = batch(part)
    value: Tensor = loss(features, labels if weighted else labels[:, 0])
    value.backward()
    return value.detach()


def one_process(name: str, part: slice, weighted: bool) -> tuple[Tensor, list[Tensor]]:
    net = Net()
    value = step(LOSSES[name](net), part, weighted)
    return value, [weight.grad for weight in net.parameters() if weight.grad is not None]


def every_case(part: slice) -> dict[tuple[str, bool], tuple[Tensor, list[Tensor]]]:
    """Value and averaged gradients of each loss, on this process's part."""
    found = {}
    for name in LOSSES:
        for weighted in (False, True):
            net = DistributedDataParallel(Net())
            value = step(LOSSES[name](net), part, weighted)
            found[name, weighted] = value, [weight.grad for weight in net.parameters() if weight.grad is not None]
    return found


def join(store: Path, number: int) -> None:
    limit = datetime.timedelta(seconds=120)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2, timeout=limit)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, bool], tuple[Tensor, list[Tensor]]]]:
    store = tmp_path_factory.mktemp("processes") / "store"
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.training.losses.test_processes", str(store)], cwd=root
    ) as other:
        try:
            join(store, 0)
            yield every_case(slice(CUT))
        finally:
            distributed.destroy_process_group()
            assert other.wait(60) == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["cosine", "angle", "cached"])
def test_the_rank_losses_see_the_whole_batch(
    both: dict[tuple[str, bool], tuple[Tensor, list[Tensor]]], name: str, weighted: bool
) -> None:
    value, gradients = both[name, weighted]
    # the oracle has no process group: it is asked after the two have finished
    expected, wanted = WHOLE[name, weighted]
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
    for gradient, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_in_batch_negatives_stay_within_a_process(
    both: dict[tuple[str, bool], tuple[Tensor, list[Tensor]]], weighted: bool
) -> None:
    _, gradients = both["in_batch", weighted]
    (_, first), (_, second) = (one_process("in_batch", part, weighted) for part in (slice(CUT), slice(CUT, N)))
    for gradient, a, b in zip(gradients, first, second, strict=True):
        torch.testing.assert_close(gradient, (a + b) / 2, rtol=1e-6, atol=1e-10)


WHOLE = {
    (name, weighted): one_process(name, slice(N), weighted)
    for name in ("cosine", "angle", "cached")
    for weighted in (False, True)
}

if __name__ == "__main__":
    join(Path(sys.argv[1]), 1)
    every_case(slice(CUT, N))
    distributed.destroy_process_group()
