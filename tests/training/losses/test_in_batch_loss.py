"""In-batch negatives against a plain loop, and what counts as a positive."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from stscurate.errors import InputError
from stscurate.training.losses import AngleLoss, CosineRankLoss, InBatchNegativesLoss, JointAngleLoss
from stscurate.training.losses.in_batch import Relations, in_batch_loss, text_keys


class Lookup(nn.Module):
    """A model whose vector of a text is a row chosen by its first token."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8, dtype=torch.float64)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        assert "component" not in features
        features["sentence_embedding"] = self.table(features["input_ids"][:, 0])
        return features


def column(tokens: Sequence[int], padding: int = 0) -> dict[str, Tensor]:
    ids = torch.tensor([[token, 1, *[0] * padding] for token in tokens])
    return {"input_ids": ids, "attention_mask": (ids > 0).long()}


def model(seed: int = 0) -> Lookup:
    torch.manual_seed(seed)
    return Lookup()


def loop(texts: Sequence[int], table: Tensor, positive: Sequence[bool], tau: float) -> float:
    """Follow the docstring's words, text by text; no components, no weights."""
    n = len(texts) // 2
    unit = [(table[t] / table[t].norm()).tolist() for t in texts]
    pairs = {(texts[i], texts[n + i]) for i in range(n) if positive[i]}
    per_text = []
    for t, anchor in enumerate(texts):
        others = [r for r in range(2 * n) if r != t]
        good = [r for r in others if texts[r] == anchor or (anchor, texts[r]) in pairs or (texts[r], anchor) in pairs]
        c = {r: sum(a * b for a, b in zip(unit[t], unit[r], strict=True)) / tau for r in others}
        against = sum(math.exp(c[r]) for r in others if r not in good)
        terms = [-math.log(math.exp(c[p]) / (math.exp(c[p]) + against)) for p in good]
        if terms:
            per_text.append(sum(terms) / len(terms))
    return sum(per_text) / len(per_text) if per_text else 0.0


@pytest.mark.parametrize(
    ("left", "right", "labels"),
    [
        ([2, 3, 4], [5, 6, 7], [1, 1, 1]),
        ([2, 3, 4], [5, 6, 7], [1, 0, 0]),
        ([2, 2, 4], [5, 6, 7], [1, 1, 0]),  # one text with two partners
        ([2, 5, 4], [5, 6, 7], [1, 1, 1]),  # a chain across the columns
        ([2, 3, 9], [5, 5, 9], [1, 0, 0]),  # a copy of the positive in a negative pair; a pair of copies
        ([2], [3], [1]),  # no negatives at all
        ([2, 3], [4, 5], [0, 0]),
    ],
)
def test_equals_a_plain_loop(left: list[int], right: list[int], labels: list[int]) -> None:
    net = model()
    loss = InBatchNegativesLoss(net, tau=0.2)([column(left), column(right, padding=2)], torch.tensor(labels))
    table = net.table.weight.detach()
    expected = loop(left + right, table, [bool(label) for label in labels], 0.2)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    loss.backward()
    assert torch.isfinite(net.table.weight.grad).all()  # type: ignore[arg-type]


def test_gradient_is_right() -> None:
    torch.manual_seed(1)
    u, v = torch.randn(2, 4, 6, dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([True, False, True, True])
    texts = [0, 1, 2, 0, 4, 5, 6, 7]
    assert torch.autograd.gradcheck(lambda u, v: in_batch_loss(u, v, positive, tau=0.3, texts=texts), (u, v))


@pytest.mark.parametrize("labels", [[0, 0], [False, False], [0.0, 0.0]])
def test_no_positive_gives_zero_and_a_zero_gradient(labels: list[float]) -> None:
    net = model()
    loss = InBatchNegativesLoss(net)([column([2, 3]), column([4, 5])], torch.tensor(labels))
    loss.backward()
    assert loss.item() == 0
    assert net.table.weight.grad is not None
    assert not net.table.weight.grad.any()


def test_identical_texts_are_not_pushed_apart() -> None:
    together, negative = Relations(torch.tensor([True, True]), texts=["a", "a", "b", "c"]).rows(0, 4)
    # a is a positive of its copy, of b and of c; b and c share no pair
    assert together.tolist() == [
        [False, True, True, True],
        [True, False, True, True],
        [True, True, False, False],
        [True, True, False, False],
    ]
    assert negative.nonzero().tolist() == [[2, 3], [3, 2]]


def test_component_joins_positive_pairs_and_shields_the_rest() -> None:
    # pairs (a, b) positive, (c, d) positive, (e, f) scored apart; all of one component but (c, d)'s twin
    positive = torch.tensor([True, True, False])
    together, negative = Relations(positive, component=torch.tensor([7, 7, 7])).rows(0, 6)
    a, b, c, d, e, f = 0, 3, 1, 4, 2, 5
    assert together[a, c]
    assert together[b, d]
    assert not negative[a, e]
    assert not together[a, e]
    assert negative[e, f]
    together, negative = Relations(positive, component=torch.tensor([7, 8, 9])).rows(0, 6)
    assert negative[a, c]
    assert negative[a, e]
    assert together[a, b]


def test_component_reaches_the_loss_through_the_features() -> None:
    net = model()
    left, right, labels = column([2, 3]), column([4, 5]), torch.tensor([1, 1])
    plain = InBatchNegativesLoss(net)([left, right], labels).item()
    joined = InBatchNegativesLoss(net)([left | {"component": torch.tensor([1, 1])}, right], labels).item()
    assert plain > 0
    assert joined == 0


def test_padding_on_either_side_makes_no_difference() -> None:
    right_padded = {
        "input_ids": torch.tensor([[5, 6, 0], [5, 6, 7]]),
        "attention_mask": torch.tensor([[1, 1, 0], [1, 1, 1]]),
    }
    left_padded = {
        "input_ids": torch.tensor([[0, 0, 5, 6], [0, 5, 6, 7]]),
        "attention_mask": torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]),
    }
    assert text_keys(right_padded, 2) == text_keys(left_padded, 2) == [(5, 6), (5, 6, 7)]
    flat = {"input_ids": torch.tensor([5, 6, 5, 6, 7]), "offsets": torch.tensor([0, 2])}
    assert text_keys(flat, 2) == [(5, 6), (5, 6, 7)]
    images = text_keys({"pixel_values": torch.zeros(2, 3)}, 2)
    assert images[0] != images[1]


def test_threshold_decides_what_is_positive() -> None:
    net = model()
    features = [column([2, 3, 4]), column([5, 6, 7])]
    scores = torch.tensor([4.0, 3.9, 5.0], dtype=torch.float64)
    expected = InBatchNegativesLoss(net)(features, torch.tensor([1, 0, 1]))
    assert torch.equal(InBatchNegativesLoss(net, threshold=4.0)(features, scores), expected)
    assert torch.equal(InBatchNegativesLoss(net, threshold=0.8)(features, scores / 5), expected)


def test_scores_that_would_be_guessed_at_are_refused() -> None:
    net = model()
    features = [column([2, 3]), column([5, 6])]
    with pytest.raises(InputError, match="give a threshold"):
        InBatchNegativesLoss(net)(features, torch.tensor([0.0, 0.9]))
    with pytest.raises(InputError, match=r"against a threshold of 0\.8"):
        JointAngleLoss(net)(features, torch.tensor([4.2, 0.9]))


def test_a_pair_of_weight_zero_teaches_no_positive() -> None:
    net = model()
    features = [column([2, 3, 4]), column([5, 6, 7])]
    weighted = torch.tensor([[1.0, 2.0], [1.0, 0.0], [0.0, 1.0]])
    expected = InBatchNegativesLoss(net)(features, torch.tensor([1, 0, 0]))
    torch.testing.assert_close(InBatchNegativesLoss(net)(features, weighted), expected)


@pytest.mark.parametrize("variant", ["code", "symmetric"])
def test_joint_is_the_weighted_sum_of_its_terms(variant: str) -> None:
    net = model()
    features = [column([2, 3, 4, 8]), column([5, 6, 7, 9])]
    labels = torch.tensor([1.0, 0.8, 0.3, 0.0])
    cosine = CosineRankLoss(net)(features, labels)
    in_batch = InBatchNegativesLoss(net, threshold=0.8)(features, labels)
    angle = AngleLoss(net, variant=variant)(features, labels)  # type: ignore[arg-type]
    joint = JointAngleLoss(net, w1=2, w2=3, w3=5, variant=variant)  # type: ignore[arg-type]
    torch.testing.assert_close(joint(features, labels), 2 * cosine + 3 * in_batch + 5 * angle)
    assert joint.terms == pytest.approx({"cosine": cosine.item(), "in_batch": in_batch.item(), "angle": angle.item()})


def test_joint_skips_a_term_of_weight_zero() -> None:
    net = model()
    features = [column([2, 3]), column([5, 6])]
    joint = JointAngleLoss(net, w2=0, w3=0)
    labels = torch.tensor([3.5, 1.0])  # off the threshold's scale, which nothing asks about
    torch.testing.assert_close(joint(features, labels), CosineRankLoss(net)(features, labels))
    assert list(joint.terms) == ["cosine"]
    for weights in ((0, 0, 0), (1, -1, 1)):
        with pytest.raises(InputError, match="weights"):
            JointAngleLoss(net, *weights)


@pytest.mark.parametrize("loss", [InBatchNegativesLoss, CosineRankLoss, AngleLoss, JointAngleLoss])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_vector_that_is_no_number_is_named_by_its_row(loss: type[nn.Module], value: float) -> None:
    """It would else pass for a zero vector, and the loss stay finite."""
    lookup = model()
    with torch.no_grad():
        lookup.table.weight[7, 3] = value
    labels = torch.tensor([1.0, 0.0, 1.0])
    with pytest.raises(InputError, match=r"A vector is NaN or infinite \(row 2 of the batch, column 2\)"):
        loss(lookup)([column([2, 3, 4]), column([5, 6, 7])], labels)
    with pytest.raises(InputError, match=r"\(rows 0, 2 of the batch, column 1\)"):
        loss(lookup)([column([7, 3, 7]), column([5, 6, 4])], labels)
    assert math.isfinite(loss(lookup)([column([2, 3, 4]), column([5, 6, 8])], labels).item())


def test_vectors_that_only_sum_to_infinity_are_no_fault() -> None:
    lookup = model()
    with torch.no_grad():
        lookup.table.weight.fill_(1e308)
    loss = CosineRankLoss(lookup)([column([2, 3]), column([5, 6])], torch.tensor([1.0, 0.0]))
    assert torch.isfinite(loss)


@pytest.mark.parametrize("loss", [InBatchNegativesLoss, JointAngleLoss])
def test_scores_and_weights_that_are_no_numbers_are_named_by_their_rows(loss: type[nn.Module]) -> None:
    features = [column([2, 3, 4]), column([5, 6, 7])]
    with pytest.raises(InputError, match=r"A score is NaN or infinite \(rows 0, 2 of the batch\)"):
        loss(model())(features, torch.tensor([math.nan, 1.0, -math.inf]))
    weighted = torch.tensor([[1.0, 1.0], [0.0, math.nan], [1.0, -1.0]])
    with pytest.raises(InputError, match=r"A weight is negative, NaN or infinite \(rows 1, 2 of the batch\)"):
        loss(model())(features, weighted)
