"""The rank loss against a plain double loop in float64, and its edges."""

from __future__ import annotations

import math
import tracemalloc

import pytest
import torch
from torch import Tensor

from stscurate.errors import InputError
from stscurate.training.losses import pairwise_rank_loss


def loop(x: Tensor, s: Tensor, w: Tensor | None, tau: float, gap: float) -> Tensor:
    """Write the definition out; slow, and with nothing to go wrong."""
    values, scores = list(x), s.tolist()
    weights = [1.0] * len(values) if w is None else w.tolist()
    total = x.sum() * 0 + 1
    for i, high in enumerate(scores):
        for j, low in enumerate(scores):
            if high - low > gap and weights[i] * weights[j] > 0:
                total = total + weights[i] * weights[j] * torch.exp((values[j] - values[i]) / tau)
    return torch.log(total)


def gradient(loss: Tensor, x: Tensor) -> Tensor:
    (result,) = torch.autograd.grad(loss, x)
    return result


@pytest.mark.parametrize("n", [1, 2, 3, 7, 30, 65])
@pytest.mark.parametrize("labels", ["real", "grid", "binary", "equal"])
@pytest.mark.parametrize(("weighted", "gap"), [(False, 0.0), (True, 0.0), (False, 0.3), (True, 0.3)])
def test_equals_a_plain_double_loop(n: int, labels: str, weighted: bool, gap: float) -> None:
    random = torch.Generator().manual_seed(n)
    x = (torch.rand(n, generator=random, dtype=torch.float64) * 2 - 1).requires_grad_()
    s = torch.rand(n, generator=random, dtype=torch.float64)
    s = {"real": s, "grid": (s * 4).round() / 4, "binary": s.round(), "equal": s * 0 + 0.5}[labels]
    w = None
    if weighted:
        w = torch.rand(n, generator=random, dtype=torch.float64) * 3
        w[torch.rand(n, generator=random) < 0.3] = 0
    expected = loop(x, s, w, 0.05, gap)
    loss = pairwise_rank_loss(x, s, tau=0.05, weight=w, min_gap=gap)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradient(loss, x), gradient(expected, x), rtol=1e-10, atol=1e-10)


def test_300_pairs_equal_a_plain_double_loop() -> None:
    random = torch.Generator().manual_seed(5)
    x = torch.rand(300, generator=random, dtype=torch.float64).requires_grad_()
    s = (torch.rand(300, generator=random, dtype=torch.float64) * 50).round()
    loss = pairwise_rank_loss(x, s, tau=0.05)
    difference = torch.exp((x[None, :] - x[:, None]) / 0.05)
    expected = torch.log(1 + (difference * (s[:, None] > s[None, :])).sum())
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradient(loss, x), gradient(expected, x), rtol=1e-10, atol=1e-10)


def test_three_pairs_by_hand() -> None:
    x = torch.tensor([0.5, 0.1, 0.7], dtype=torch.float64)
    s = torch.tensor([1.0, 0.0, 0.5])
    # comparable: (0, 1), (0, 2), (2, 1)
    terms = math.exp(-0.4 / 0.1) + math.exp(0.2 / 0.1) + math.exp(-0.6 / 0.1)
    assert pairwise_rank_loss(x, s, tau=0.1).item() == pytest.approx(math.log(1 + terms), abs=1e-12)
    only_far = math.log(1 + math.exp(-0.4 / 0.1))
    assert pairwise_rank_loss(x, s, tau=0.1, min_gap=0.75).item() == pytest.approx(only_far, abs=1e-12)


def test_weights_by_hand() -> None:
    x = torch.tensor([0.5, 0.1], dtype=torch.float64)
    s = torch.tensor([1.0, 0.0])
    loss = pairwise_rank_loss(x, s, tau=0.1, weight=torch.tensor([2.0, 3.0]))
    assert loss.item() == pytest.approx(math.log(1 + 6 * math.exp(-4)), abs=1e-12)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("weight", [None, 0.0, 1.0])
def test_nothing_to_compare_gives_zero_and_a_zero_gradient(n: int, weight: float | None) -> None:
    x = torch.linspace(-1, 1, n).requires_grad_()
    w = None if weight is None else torch.full((n,), weight)
    loss = pairwise_rank_loss(x, torch.full((n,), 3), tau=0.05, weight=w)
    loss.backward()
    assert loss.item() == 0
    assert x.grad is not None
    assert x.grad.tolist() == [0] * n


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_small_tau_in_low_precision_stays_finite(dtype: torch.dtype) -> None:
    x = torch.tensor([-1.0, 1.0, 0.0, 1.0], dtype=dtype).requires_grad_()
    loss = pairwise_rank_loss(x, torch.tensor([3, 2, 1, 0]), tau=1e-3)
    loss.backward()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(2000 + math.log(2), rel=1e-6)
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float16, torch.float64])
def test_labels_of_any_dtype_only_order(dtype: torch.dtype) -> None:
    x = torch.tensor([0.3, 0.1, 0.2])
    expected = pairwise_rank_loss(x, torch.tensor([0.0, 1.0, 0.0]), tau=0.05)
    assert torch.equal(pairwise_rank_loss(x, torch.tensor([0, 1, 0]).to(dtype), tau=0.05), expected)


def test_large_integer_scores_keep_their_order() -> None:
    x = torch.tensor([0.0, 0.0])
    s = torch.tensor([2**24, 2**24 + 1])  # equal as float32
    assert pairwise_rank_loss(x, s, tau=1.0).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("shift", [-7.0, 1000.0])
def test_only_differences_of_similarity_count(shift: float) -> None:
    x = torch.rand(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    s = torch.arange(50) % 7
    torch.testing.assert_close(
        pairwise_rank_loss(x + shift, s, tau=0.05), pairwise_rank_loss(x, s, tau=0.05), rtol=1e-9, atol=0
    )


def test_memory_is_linear() -> None:
    x = torch.rand(16384).requires_grad_()
    pairwise_rank_loss(x, torch.rand(16384), tau=0.05).backward()  # what is loaded once is loaded
    tracemalloc.start()  # NumPy tells it what it allocates
    pairwise_rank_loss(x, torch.rand(16384), tau=0.05).backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 8 * 16384


def test_a_similarity_that_is_not_finite_gives_a_loss_that_is_not_either() -> None:
    x = torch.tensor([0.3, math.nan, 0.2]).requires_grad_()
    loss = pairwise_rank_loss(x, torch.tensor([0.0, 0.5, 1.0]), tau=0.05)
    assert math.isnan(loss.item())


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_gradient_is_passed_on(scale: float) -> None:
    x = torch.tensor([0.1, 0.4, 0.2], dtype=torch.float64).requires_grad_()
    s = torch.tensor([2, 1, 0])
    assert torch.autograd.gradcheck(lambda x: scale * pairwise_rank_loss(x * 2, s, tau=0.5, min_gap=0.5), (x,))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": torch.zeros(3)}, "score has shape"),
        ({"weight": torch.ones(3)}, "weight has shape"),
        ({"similarity": torch.zeros(2, 1), "score": torch.zeros(2, 1)}, r"shape \(n,\)"),
        ({"tau": 0.0}, "tau"),
        ({"tau": math.nan}, "tau"),
        ({"min_gap": -0.1}, "min_gap"),
        ({"score": torch.tensor([0.0, math.nan])}, "NaN .*row 1 of the batch"),
        ({"score": torch.tensor([-math.inf, math.inf])}, "infinite .*rows 0, 1 of the batch"),
        ({"weight": torch.tensor([1.0, -1.0])}, "negative"),
        ({"weight": torch.tensor([math.nan, 1.0])}, "NaN .*row 0"),
    ],
)
def test_mistakes_are_named(change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"similarity": torch.zeros(2), "score": torch.zeros(2), "tau": 0.05} | change
    similarity, score = given.pop("similarity"), given.pop("score")
    with pytest.raises(InputError, match=message):
        pairwise_rank_loss(similarity, score, **given)  # type: ignore[arg-type]
