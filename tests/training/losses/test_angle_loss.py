"""The angle in both variants: by hand, against sentence-transformers, and where a bare atan2 fails."""

from __future__ import annotations

import cmath
import math
from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer.losses import AnglELoss, CoSENTLoss
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses import (
    AngleLoss,
    CosineRankLoss,
    JointAngleLoss,
    NTXentLoss,
    angle_similarity_code,
    angle_similarity_symmetric,
)


class Given(nn.Module):
    """A model that hands back the vectors it is given."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}


def vectors(n: int, d: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    u, v = torch.randn(2, n, d, generator=random, dtype=dtype)
    return u.requires_grad_(), v.requires_grad_()


def test_symmetric_by_hand_in_two_dimensions() -> None:
    # z = 1, w = i: a quarter turn, whatever the lengths
    u, v = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 5.0]])
    assert angle_similarity_symmetric(u, v).item() == pytest.approx(-0.5)
    assert angle_similarity_symmetric(u, -u).item() == pytest.approx(-1)
    assert angle_similarity_symmetric(u, u).item() == 0
    assert angle_similarity_symmetric(v, 3 * v).item() == 0


def test_symmetric_weighs_coordinates_by_their_moduli() -> None:
    # z = (3, 1), w = (1, i): angles 0 and pi/2, weights 3 and 1
    u, v = torch.tensor([[3.0, 1.0, 0.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    assert angle_similarity_symmetric(u, v).item() == pytest.approx(-(1 * 0.5) / 4)


def test_symmetric_equals_python_complex_numbers() -> None:
    u, v = vectors(5, 12, 1)
    for row, (p, q) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        z = [complex(p[k], p[k + 6]) for k in range(6)]
        w = [complex(q[k], q[k + 6]) for k in range(6)]
        weight = [abs(a) * abs(b) for a, b in zip(z, w, strict=True)]
        angle = [abs(cmath.phase(a / b)) for a, b in zip(z, w, strict=True)]
        mean = sum(m * t for m, t in zip(weight, angle, strict=True)) / sum(weight)
        assert angle_similarity_symmetric(u, v)[row].item() == pytest.approx(-mean / math.pi, abs=1e-12)


def test_symmetric_is_symmetric_and_bounded() -> None:
    u, v = (side.detach() for side in vectors(200, 384, 2))
    x = angle_similarity_symmetric(u, v)
    torch.testing.assert_close(x, angle_similarity_symmetric(v, u))
    assert -1 <= float(x.min()) <= float(x.max()) <= 0
    assert float(x.mean()) == pytest.approx(-0.5, abs=0.01)
    assert float(x.std()) == pytest.approx(0.026, abs=0.006)


def test_symmetric_gradient_is_right() -> None:
    u, v = vectors(3, 8, 3)
    assert torch.autograd.gradcheck(angle_similarity_symmetric, (u, v))


def test_code_by_hand() -> None:
    # z = 1, w = i: real part 0, imaginary part b c - a d = -1
    u, v = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 5.0]])
    assert angle_similarity_code(u, v).item() == pytest.approx(1)
    # z = 3 + 4i, w = 1 + 2i: real 11, imaginary 4 - 6 = -2, lengths 5 and sqrt 5
    u, v = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 2.0]])
    assert angle_similarity_code(u, v).item() == pytest.approx(9 / (5 * math.sqrt(5)))
    assert angle_similarity_code(v, u).item() == pytest.approx(13 / (5 * math.sqrt(5)))
    assert angle_similarity_code(u, -v).item() == pytest.approx(9 / (5 * math.sqrt(5)))
    assert angle_similarity_code(u, u).item() == pytest.approx(1)


@pytest.mark.parametrize("n", [4, 32, 200])
@pytest.mark.parametrize(("ours", "theirs"), [(AngleLoss, AnglELoss), (CosineRankLoss, CoSENTLoss)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_sentence_transformers(
    n: int, ours: type[nn.Module], theirs: type[nn.Module], dtype: torch.dtype
) -> None:
    u, v = vectors(n, 64, n, dtype)
    labels = (torch.rand(n, generator=torch.Generator().manual_seed(n)) * 5).round() / 5
    results = []
    for loss in (ours(Given()), theirs(Given())):
        value = loss([{"vectors": u}, {"vectors": v}], labels)
        results.append((value, *torch.autograd.grad(value, (u, v))))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9
    for got, expected in zip(*results, strict=True):
        # relative to the largest entry: single small gradients are differences of large ones
        scale = float(expected.detach().abs().max())
        torch.testing.assert_close(got / scale, expected / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("similarity", [angle_similarity_code, angle_similarity_symmetric])
@pytest.mark.parametrize("case", ["same", "opposite", "zero", "zero coordinates", "tiny", "parallel"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_degenerate_vectors_give_no_nan(similarity: object, case: str, dtype: torch.dtype) -> None:
    u = torch.tensor([[0.5, -1.0, 0.0, 2.0, 0.0, 0.3]], dtype=dtype)
    v = {
        "same": u.clone(),
        "opposite": -u,
        "zero": torch.zeros_like(u),
        "zero coordinates": torch.tensor([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]], dtype=dtype),
        "tiny": u * (1e-3 if dtype == torch.float16 else 1e-36),
        "parallel": u * 3,
    }[case]
    if case == "tiny":
        u = u.clone()
        u[0, 1] = 1e-30
    u.requires_grad_()
    v.requires_grad_()
    x = similarity(u, v)  # type: ignore[operator]
    x.sum().backward()
    for tensor in (x, u.grad, v.grad):
        assert tensor is not None
        assert torch.isfinite(tensor).all()
    if case == "zero":
        assert x.item() == 0
        assert u.grad is not None
        assert not u.grad.any()
        assert v.grad is not None
        assert not v.grad.any()


def test_zero_coordinates_count_for_nothing() -> None:
    u = torch.tensor([[1.0, 0.0, 1.0, 0.0]], requires_grad=True)  # z = (1 + i, 0)
    v = torch.tensor([[1.0, 7.0, 0.0, 2.0]], requires_grad=True)
    x = angle_similarity_symmetric(u, v)
    assert x.item() == pytest.approx(-0.25)
    x.backward()
    assert u.grad is not None
    assert u.grad[0, 1].item() == u.grad[0, 3].item() == 0


@pytest.mark.parametrize("similarity", [angle_similarity_code, angle_similarity_symmetric])
def test_odd_dimensions_name_the_mend(similarity: object) -> None:
    with pytest.raises(InputError, match="truncate_dim=4"):
        similarity(torch.zeros(2, 5), torch.zeros(2, 5))  # type: ignore[operator]


def test_default_tau_follows_the_variant() -> None:
    assert AngleLoss(Given()).get_config_dict() == {"variant": "code", "tau": 0.05, "min_gap": 0.0}
    assert AngleLoss(Given(), variant="symmetric").tau == 1.0
    assert AngleLoss(Given(), variant="symmetric", tau=0.1).tau == 0.1
    with pytest.raises(InputError, match="code, symmetric"):
        AngleLoss(Given(), variant="paper")  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [AngleLoss(Given()), CosineRankLoss(Given())])
def test_second_label_column_is_a_weight(loss: nn.Module) -> None:
    u, v = vectors(6, 8, 9)
    score = torch.tensor([0.0, 1.0, 0.5, 0.2, 0.9, 0.4])
    kept = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    features = [{"vectors": u}, {"vectors": v}]
    keep = kept > 0
    expected = loss([{"vectors": u[keep]}, {"vectors": v[keep]}], score[keep])
    torch.testing.assert_close(loss(features, torch.stack([score, kept], dim=1)), expected)
    torch.testing.assert_close(loss(features, score[:, None]), loss(features, score))
    with pytest.raises(InputError, match="labels of shape"):
        loss(features, torch.zeros(6, 3))
    with pytest.raises(InputError, match="column 'score'"):
        loss(features, None)
    with pytest.raises(InputError, match="sentence1, sentence2"):
        loss(features[:1], score)


@pytest.mark.parametrize(
    "loss", [AngleLoss, CosineRankLoss, lambda model, min_gap: JointAngleLoss(model, w2=0, min_gap=min_gap)]
)
def test_pairs_within_the_gap_are_not_compared(loss: Any) -> None:
    u, v = vectors(4, 8, 3)
    features = [{"vectors": u}, {"vectors": v}]
    score = torch.tensor([0.0, 0.1, 0.9, 1.0])
    wide = loss(Given(), min_gap=0.5)(features, score)
    torch.testing.assert_close(wide, loss(Given(), min_gap=0.0)(features, score.round()))  # tied within each half
    assert loss(Given(), min_gap=2.0)(features, score).item() == 0


@pytest.mark.parametrize(
    "loss", [AngleLoss, lambda model: AngleLoss(model, variant="symmetric"), CosineRankLoss, JointAngleLoss]
)
@pytest.mark.parametrize("case", ["one pair", "equal labels", "same", "opposite", "zero"])
def test_edges_give_finite_values_and_gradients(loss: Any, case: str) -> None:
    n = 1 if case == "one pair" else 4
    u, v = (side.detach() for side in vectors(n, 8, 4))
    v = {"same": u.clone(), "opposite": -u, "zero": torch.zeros_like(v)}.get(case, v)
    u.requires_grad_()
    v.requires_grad_()
    score = torch.full((n,), 0.3) if case == "equal labels" else torch.linspace(0, 0.7, n)
    value = loss(Given())([{"vectors": u}, {"vectors": v}], score)
    value.backward()
    assert torch.isfinite(value)
    for side in (u, v):
        assert side.grad is not None
        assert torch.isfinite(side.grad).all()
    if case in ("one pair", "equal labels"):
        assert value.item() == 0
        assert not u.grad.any()  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("loss", [AngleLoss, CosineRankLoss, JointAngleLoss, NTXentLoss])
def test_autocast_changes_no_more_than_the_rounding_of_the_vectors(loss: Any, dtype: torch.dtype) -> None:
    u, v = (side.detach().float().requires_grad_() for side in vectors(16, 64, 5))
    score = torch.linspace(0, 1, 16)
    plain = loss(Given())([{"vectors": u}, {"vectors": v}], score)
    with torch.autocast("cpu", dtype=dtype):
        value = loss(Given())([{"vectors": u.to(dtype)}, {"vectors": v.to(dtype)}], score)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, plain, rtol=0.02, atol=0.02)
    value.backward()
    for side in (u, v):
        assert side.grad is not None
        assert torch.isfinite(side.grad).all()
