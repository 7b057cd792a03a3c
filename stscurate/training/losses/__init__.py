"""Losses, a file each; every module is called as ``loss(features, labels)``, as sentence-transformers does."""

from stscurate.training.losses.angle import AngleLoss, angle_similarity_code, angle_similarity_symmetric
from stscurate.training.losses.arccon import ArcConLoss
from stscurate.training.losses.arccse import ArcCSELoss
from stscurate.training.losses.cache import CachedLoss
from stscurate.training.losses.cosine import CosineRankLoss
from stscurate.training.losses.in_batch import InBatchNegativesLoss
from stscurate.training.losses.joint import JointAngleLoss
from stscurate.training.losses.nested_mask import NestedMaskTripletLoss
from stscurate.training.losses.ntxent import NTXentLoss
from stscurate.training.losses.rank import pairwise_rank_loss

__all__ = [
    "AngleLoss",
    "ArcCSELoss",
    "ArcConLoss",
    "CachedLoss",
    "CosineRankLoss",
    "InBatchNegativesLoss",
    "JointAngleLoss",
    "NTXentLoss",
    "NestedMaskTripletLoss",
    "angle_similarity_code",
    "angle_similarity_symmetric",
    "pairwise_rank_loss",
]
