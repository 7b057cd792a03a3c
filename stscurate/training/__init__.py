"""Training: pairs or texts in, a sentence-embedding model out that `SentenceTransformer(folder)` loads."""

from stscurate.training.data import TrainingRows, pair_rows, text_rows, triplet_rows
from stscurate.training.gate import HeldOut, held_out
from stscurate.training.grid import Cell, grid_cells, train_grid
from stscurate.training.objectives import (
    TAUS,
    angle_objective,
    angle_parts,
    arccse_objective,
    cosent_objective,
    simcse_objective,
    train_angle,
    train_arccse,
    train_cosent,
    train_simcse,
)
from stscurate.training.parts import Objective, Part
from stscurate.training.schedule import Backbone, Schedule
from stscurate.training.validation import Validation, own_validation, validation_set

__all__ = [
    "TAUS",
    "Backbone",
    "Cell",
    "HeldOut",
    "Objective",
    "Part",
    "Schedule",
    "TrainingRows",
    "Validation",
    "angle_objective",
    "angle_parts",
    "arccse_objective",
    "cosent_objective",
    "grid_cells",
    "held_out",
    "own_validation",
    "pair_rows",
    "simcse_objective",
    "text_rows",
    "train_angle",
    "train_arccse",
    "train_cosent",
    "train_grid",
    "train_simcse",
    "triplet_rows",
    "validation_set",
]
