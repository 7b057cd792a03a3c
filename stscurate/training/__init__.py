"""Training: pairs or texts in, a sentence-embedding model out that `SentenceTransformer(folder)` loads."""

from stscurate.training.data import TrainingRows, pair_rows, triplet_rows
from stscurate.training.trainer import Schedule, train_angle, train_arccse

__all__ = ["Schedule", "TrainingRows", "pair_rows", "train_angle", "train_arccse", "triplet_rows"]
