"""The four trainings, each a loss with its settings."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from torch import nn

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.training.data import TrainingRows
from stscurate.training.losses import ArcCSELoss, CosineRankLoss, JointAngleLoss, NTXentLoss
from stscurate.training.losses.angle import SIMILARITIES, Variant
from stscurate.training.parts import Objective, Part
from stscurate.training.row_losses import Ended, Floats, Terms, rank_row_losses
from stscurate.training.trainer import Common, train

Three = tuple[float, float, float]
Rows = TrainingRows | Sequence[TrainingRows]
# The papers and the losses alone have 0.05 (1.0 for the angle of `symmetric`), by which a model that is good already
# gets worse: it hangs on the few pairs of a batch whose order is most wrong (benchmarks/README.md, temperatures).
TAU = 0.2
TAUS: Three = (TAU, 0.05, TAU)  # of AnglE's cosine, in-batch and angle objective


def angle_objective(
    weights: Three = (1.0, 1.0, 1.0), taus: Three = TAUS, variant: Variant = "code", threshold: float = 0.8
) -> Objective:
    """AnglE's joint objective (arXiv 2309.12871); arguments as in `train_angle`.

    The loss of a single row is its cosine and angle terms over all rows; the in-batch term is left out, since it
    belongs to the batch that a row happened to be in.
    """

    def loss(encoder: nn.Module) -> nn.Module:
        return JointAngleLoss(encoder, *weights, *taus, variant=variant, threshold=threshold)

    settings = {"weights": weights, "taus": taus, "variant": variant, "threshold": threshold}

    def rule(ended: Ended) -> tuple[Floats, Terms]:
        score, weight = ended.labels.T
        cosine = ended.cosines(0, 1)
        angle = SIMILARITIES[variant](*ended.vectors).numpy().astype(np.float64)
        terms = {
            "cosine_loss": rank_row_losses(cosine, score, weight, tau=taus[0]),
            "angle_loss": rank_row_losses(angle, score, weight, tau=taus[2]),
        }
        total = weights[0] * terms["cosine_loss"] + weights[2] * terms["angle_loss"]
        return total, {**terms, "cosine": cosine, "angle": angle}

    return Objective("angle", loss, settings, together=True, apart=False, rule=rule)


def positives_objective(weight: float = 1.0, tau: float = 0.05) -> Objective:
    """The in-batch term of AnglE's objective alone, for positives alone (query, positive).

    There is nothing to rank among pairs of one label. InputError where the term weighs nothing.
    """
    if weight == 0:
        raise InputError("Positives alone teach the in-batch objective alone: give it a weight, as in --weights 1,1,1.")

    def loss(encoder: nn.Module) -> nn.Module:
        return JointAngleLoss(encoder, 0.0, weight, 0.0, tau_in_batch=tau)

    def rule(ended: Ended) -> tuple[Floats, Terms]:
        found = ended.in_batch(tau=tau)
        return weight * found, {"in_batch_loss": found, "cosine": ended.cosines(0, 1)}

    return Objective("in-batch", loss, {"weight": weight, "tau": tau}, together=True, apart=False, rule=rule)


def angle_parts(
    rows: Rows,
    weights: Three = (1.0, 1.0, 1.0),
    taus: Three = TAUS,
    variant: Variant = "code",
    threshold: float = 0.8,
) -> list[Part]:
    """Sources for `train_angle`: scored pairs by the joint objective, positives alone by its in-batch term alone."""
    joint = angle_objective(weights, taus, variant, threshold)
    return [Part(own, positives_objective(weights[1], taus[1]) if own.positives else joint) for own in _each(rows)]


def train_angle(
    rows: Rows,
    out: Path,
    *,
    weights: Three = (1.0, 1.0, 1.0),
    taus: Three = TAUS,
    variant: Variant = "code",
    threshold: float = 0.8,
    **common: Unpack[Common],
) -> Entry:
    """Train by AnglE's joint objective (arXiv 2309.12871) on pairs, and write the model to the folder `out`.

    weights and taus: of the cosine, in-batch and angle objective (the paper's taus are 0.05, and 1.0 for the angle that
    it describes, the variant "symmetric"; see TAU); threshold: the score from which a pair is an in-batch positive. Of
    several sources no batch holds two; one of positives alone (data.TrainingRows) is trained by the in-batch term
    alone. The same call after a kill goes on at the last whole checkpoint and ends at the same bytes.
    """
    return train(angle_parts(rows, weights, taus, variant, threshold), out, common)


def cosent_objective(tau: float = TAU) -> Objective:
    """CoSENT's rank loss over cosines alone (doi:10.1109/TASLP.2024.3402087)."""

    def loss(encoder: nn.Module) -> nn.Module:
        return CosineRankLoss(encoder, tau)

    def rule(ended: Ended) -> tuple[Floats, Terms]:
        cosine, (score, weight) = ended.cosines(0, 1), ended.labels.T
        return rank_row_losses(cosine, score, weight, tau=tau), {"cosine": cosine}

    return Objective("cosent", loss, {"tau": tau}, together=True, apart=False, rule=rule)


def train_cosent(rows: Rows, out: Path, *, tau: float = TAU, **common: Unpack[Common]) -> Entry:
    """Train by CoSENT's rank loss over cosines alone (doi:10.1109/TASLP.2024.3402087); as `train_angle` otherwise.

    tau: its temperature (theirs is 0.05, a scale of 20; see TAU).
    """
    return train(_parts(rows, cosent_objective(tau)), out, common)


def arccse_objective(
    margin_degrees: float = 10.0, tau: float = 0.05, triplet_weight: float = 0.1, triplet_margin: float = 0.0
) -> Objective:
    """ArcCSE (Zhang et al., ACL 2022) on nested masked triplets.

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

    def rule(ended: Ended) -> tuple[Floats, Terms]:
        near, far = ended.cosines(0, 1), ended.cosines(0, 2)
        arc = ended.twins(tau=tau, margin=math.radians(margin_degrees))
        triplet = np.maximum(0.0, far - near + triplet_margin)
        terms = {"arc_loss": arc, "triplet_loss": triplet, "cosine_positive": near, "cosine_negative": far}
        return arc + triplet_weight * triplet, terms

    return Objective("arccse", loss, settings, together=False, apart=True, rule=rule)


def train_arccse(
    rows: Rows,
    out: Path,
    *,
    margin_degrees: float = 10.0,
    tau: float = 0.05,
    triplet_weight: float = 0.1,
    triplet_margin: float = 0.0,
    **common: Unpack[Common],
) -> Entry:
    """Train by ArcCSE (Zhang et al., ACL 2022) on nested masked triplets; as `train_angle` otherwise.

    margin_degrees: added to the angle of the twins; tau: of the arc; triplet_weight, triplet_margin: of the triplets'
    term, the margin being one of cosines. The defaults are the paper's.
    """
    return train(_parts(rows, arccse_objective(margin_degrees, tau, triplet_weight, triplet_margin)), out, common)


def simcse_objective(tau: float = 0.05) -> Objective:
    """Unsupervised SimCSE (arXiv 2104.08821): NT-Xent, dropout makes the twins."""

    def loss(encoder: nn.Module) -> nn.Module:
        return NTXentLoss(encoder, tau)

    def rule(ended: Ended) -> tuple[Floats, Terms]:
        return ended.twins(tau=tau), {}

    return Objective("simcse", loss, {"tau": tau}, together=False, apart=True, rule=rule)


def train_simcse(rows: Rows, out: Path, *, tau: float = 0.05, **common: Unpack[Common]) -> Entry:
    """Train by unsupervised SimCSE (arXiv 2104.08821) on bare texts; as `train_angle` otherwise."""
    return train(_parts(rows, simcse_objective(tau)), out, common)


def _parts(rows: Rows, objective: Objective) -> list[Part]:
    return [Part(own, objective) for own in _each(rows)]


def _each(rows: Rows) -> list[TrainingRows]:
    return [rows] if isinstance(rows, TrainingRows) else list(rows)
