"""The four trainings, each a loss with its settings."""

from pathlib import Path
from typing import Literal, Unpack

from torch import nn

from stscurate.manifest import Entry
from stscurate.training.data import TrainingRows
from stscurate.training.fitting import Objective
from stscurate.training.losses import ArcCSELoss, CosineRankLoss, JointAngleLoss, NTXentLoss
from stscurate.training.trainer import Common, train

Three = tuple[float, float, float]


def angle_objective(
    weights: Three, taus: Three | None, variant: Literal["code", "symmetric"], threshold: float
) -> Objective:
    """AnglE's joint objective (arXiv 2309.12871); arguments as in `train_angle`."""

    def loss(encoder: nn.Module) -> nn.Module:
        cosine, in_batch, angle = taus or (0.05, 0.05, None)
        return JointAngleLoss(encoder, *weights, cosine, in_batch, angle, variant=variant, threshold=threshold)

    settings = {"weights": weights, "taus": taus, "variant": variant, "threshold": threshold}
    return Objective("angle", loss, settings, together=True, apart=False)


def train_angle(
    rows: TrainingRows,
    out: Path,
    *,
    weights: Three = (1.0, 1.0, 1.0),
    taus: Three | None = None,
    variant: Literal["code", "symmetric"] = "code",
    threshold: float = 0.8,
    **common: Unpack[Common],
) -> Entry:
    """Train by AnglE's joint objective (arXiv 2309.12871) on pairs, and write the model to the folder `out`.

    weights and taus: of the cosine, in-batch and angle objective (taus 0.05, 0.05, and the variant's own unless
    given); threshold: the score from which a pair is an in-batch positive. The same call after a kill goes on at
    the last whole checkpoint and ends at the same bytes.
    """
    return train(rows, out, angle_objective(weights, taus, variant, threshold), common)


def train_cosent(rows: TrainingRows, out: Path, *, tau: float = 0.05, **common: Unpack[Common]) -> Entry:
    """Train by CoSENT's rank loss over cosines alone (doi:10.1109/TASLP.2024.3402087); as `train_angle` otherwise."""

    def loss(encoder: nn.Module) -> nn.Module:
        return CosineRankLoss(encoder, tau)

    return train(rows, out, Objective("cosent", loss, {"tau": tau}, together=True, apart=False), common)


def train_arccse(
    rows: TrainingRows,
    out: Path,
    *,
    margin_degrees: float = 10.0,
    tau: float = 0.05,
    triplet_weight: float = 0.1,
    triplet_margin: float = 0.0,
    **common: Unpack[Common],
) -> Entry:
    """Train by ArcCSE (Zhang et al., ACL 2022) on nested masked triplets; as `train_angle` otherwise.

    Triplets of one anchor never stand in one batch, where they would be negatives of each other.
    """
    settings = {
        "margin_degrees": margin_degrees,
        "tau": tau,
        "triplet_weight": triplet_weight,
        "triplet_margin": triplet_margin,
    }

    def loss(encoder: nn.Module) -> nn.Module:
        return ArcCSELoss(encoder, **settings)

    return train(rows, out, Objective("arccse", loss, settings, together=False, apart=True), common)


def train_simcse(rows: TrainingRows, out: Path, *, tau: float = 0.05, **common: Unpack[Common]) -> Entry:
    """Train by unsupervised SimCSE (arXiv 2104.08821) on bare texts: NT-Xent, dropout makes the twins."""

    def loss(encoder: nn.Module) -> nn.Module:
        return NTXentLoss(encoder, tau)

    return train(rows, out, Objective("simcse", loss, {"tau": tau}, together=False, apart=True), common)
