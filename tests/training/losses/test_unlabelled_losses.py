"""ArcCon, NT-Xent, the nested-mask triplet and their sum: by loop, by hand, and at the edges."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses import ArcConLoss, ArcCSELoss, NestedMaskTripletLoss, NTXentLoss
from stscurate.training.losses.arccon import arccon_loss, with_margin
from stscurate.training.losses.features import dropout_off
from stscurate.training.losses.nested_mask import triplet_loss


class Noisy(nn.Module):
    """A model that hands back the vectors it is given, through dropout, and counts its calls."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.frozen = nn.Dropout(0.5).eval()
        self.fails = fails
        self.calls: list[bool] = []

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        self.calls.append(self.dropout.training)
        if self.fails:
            raise RuntimeError("out of memory")
        features["sentence_embedding"] = self.frozen(self.dropout(features["vectors"]))
        return features


def vectors(n: int, d: int = 6, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=random, dtype=torch.float64).requires_grad_()


def angle(p: Tensor, q: Tensor) -> float:
    return math.acos(float((p @ q / p.norm() / q.norm()).detach()))


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("degrees", [0.0, 10.0, 45.0])
def test_arccon_equals_a_slow_loop(n: int, degrees: float) -> None:
    h, twin = vectors(n, seed=1), vectors(n, seed=2)
    total = 0.0
    for i in range(n):
        theta, m = angle(h[i], twin[i]), math.radians(degrees)
        moved = math.cos(theta + m) if theta + m < math.pi else math.cos(theta) - m * math.sin(m)
        own = math.exp(moved / 0.05)
        others = sum(math.exp(math.cos(angle(h[i], twin[j])) / 0.05) for j in range(n) if j != i)
        total -= math.log(own / (own + others))
    loss = arccon_loss(h, twin, margin_degrees=degrees, tau=0.05)
    assert loss.item() == pytest.approx(total / n, abs=1e-10)
    assert torch.autograd.gradcheck(lambda a, b: arccon_loss(a, b, margin_degrees=degrees, tau=0.5), (h, twin))


def test_margin_by_hand() -> None:
    m = math.radians(10)
    cosine = torch.tensor([0.0, 0.5, 1.0, -1.0, math.cos(math.radians(175))], dtype=torch.float64)
    expected = [
        -math.sin(m),
        math.cos(math.radians(70)),
        math.cos(m),
        -1 - m * math.sin(m),
        math.cos(math.radians(175)) - m * math.sin(m),
    ]
    assert with_margin(cosine, m).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [1.0, -1.0, 1.0000001, -1.0000001])
def test_margin_has_a_finite_gradient_at_the_ends(dtype: torch.dtype, value: float) -> None:
    cosine = torch.tensor([value], dtype=dtype, requires_grad=True)
    with_margin(cosine, 0.17).sum().backward()
    assert torch.isfinite(cosine.grad).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [ArcConLoss, NTXentLoss])
def test_equal_twins_give_no_nan(loss: type[nn.Module]) -> None:
    given = torch.randn(5, 8, generator=torch.Generator().manual_seed(3))
    given[0] = 0
    given.requires_grad_()
    value = loss(Noisy().eval())([{"vectors": given}], None)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(given.grad).all()  # type: ignore[arg-type]


def test_ntxent_by_hand() -> None:
    h = torch.eye(2, dtype=torch.float64)
    loss = NTXentLoss(Noisy().eval(), tau=0.5)([{"vectors": h}, {"vectors": h * 3}])
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-2)))


def test_one_column_is_encoded_twice_under_dropout() -> None:
    torch.manual_seed(0)
    model = Noisy()
    h = vectors(4, 64)
    loss = NTXentLoss(model)([{"vectors": h}])
    assert model.calls == [True, True]
    torch.manual_seed(0)
    expected = arccon_loss(model.dropout(h), model.dropout(h), margin_degrees=0, tau=0.05)
    torch.testing.assert_close(loss, expected)
    with pytest.raises(InputError, match="has 3"):
        NTXentLoss(model)([{"vectors": h}] * 3)


def test_triplet_by_hand() -> None:
    anchor = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    near = torch.tensor([[3.0, 4.0], [2.0, 0.0]], dtype=torch.float64)  # cosines 0.6 and 1
    far = torch.tensor([[4.0, 3.0], [0.0, 1.0]], dtype=torch.float64)  # cosines 0.8 and 0
    assert triplet_loss(anchor, near, far, margin=0.0).item() == pytest.approx(0.1)
    assert triplet_loss(anchor, near, far, margin=0.3).item() == pytest.approx(0.25)
    assert triplet_loss(anchor, anchor, anchor, margin=0.0).item() == 0


def test_triplets_are_encoded_without_dropout_and_flags_come_back() -> None:
    model = Noisy()
    h = [{"vectors": vectors(3, seed=seed)} for seed in (1, 2, 3)]
    loss = NestedMaskTripletLoss(model, margin=0.5)(h)
    torch.testing.assert_close(loss, triplet_loss(*(column["vectors"] for column in h), margin=0.5))
    assert model.calls == [False] * 3
    assert (model.training, model.dropout.training, model.frozen.training) == (True, True, False)


def test_flags_come_back_after_an_error() -> None:
    model = Noisy(fails=True)
    with pytest.raises(RuntimeError, match="out of memory"):
        NestedMaskTripletLoss(model)([{"vectors": vectors(2)}] * 3)
    assert (model.training, model.dropout.training, model.frozen.training) == (True, True, False)
    with dropout_off(model.eval()):
        assert not model.training
    assert not any(module.training for module in model.modules())


def test_arccse_is_arccon_plus_the_weighted_triplet() -> None:
    model = Noisy()
    columns = [{"vectors": vectors(4, 32, seed)} for seed in (1, 2, 3)]
    torch.manual_seed(5)
    loss = ArcCSELoss(model, triplet_weight=0.3, triplet_margin=0.9)
    value = loss(columns)
    assert model.calls == [True, True, False, False, False]
    torch.manual_seed(5)
    arc = ArcConLoss(model)(columns[:1])
    triplet = NestedMaskTripletLoss(model, margin=0.9)(columns)
    torch.testing.assert_close(value, arc + 0.3 * triplet)
    assert loss.terms == pytest.approx({"arc": arc.item(), "triplet": triplet.item()})
    with pytest.raises(InputError, match="anchor, positive, negative"):
        loss(columns[:2])


def test_a_triplet_weight_of_zero_leaves_arccon() -> None:
    model = Noisy()
    columns = [{"vectors": vectors(4, 32, seed)} for seed in (1, 2, 3)]
    ArcCSELoss(model, triplet_weight=0)(columns)
    assert model.calls == [True, True]


@pytest.mark.parametrize("degrees", [-1.0, 90.0, math.nan])
def test_margin_out_of_range_is_named(degrees: float) -> None:
    with pytest.raises(InputError, match="margin"):
        ArcConLoss(Noisy(), margin_degrees=degrees)


@pytest.mark.parametrize("tau", [0.0, -1.0, math.inf, math.nan])
def test_tau_out_of_range_is_named(tau: float) -> None:
    with pytest.raises(InputError, match="tau"):
        NTXentLoss(Noisy(), tau=tau)
