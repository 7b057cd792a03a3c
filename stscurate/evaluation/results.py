"""What an evaluation found, as data."""

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from stscurate.evaluation.metrics.density import Density


@dataclass(frozen=True)
class Numbers:
    """Over `rows` pairs: correlations within -1 and 1, the rest within 0 and 1, thresholds on the model's own scale.

    None where it doesn't apply (as to fewer than 3 rows, or to graded gold); nan where it has no value, since all
    similarities or all gold are the same. low and high are the ends of the 95 % bootstrap interval of Spearman.
    """

    rows: int
    spearman: float | None = None
    low: float | None = None
    high: float | None = None
    pearson: float | None = None
    average_precision: float | None = None  # this and all below: where gold is 0 and 1 only
    average_precision_low: float | None = None
    average_precision_high: float | None = None
    f1: float | None = None  # at its threshold, which is the best one on these very rows
    f1_threshold: float | None = None
    accuracy: float | None = None
    accuracy_threshold: float | None = None
    f1_transferred: float | None = None  # at the thresholds that were best on another set
    accuracy_transferred: float | None = None


@dataclass(frozen=True)
class Result:
    """One model on one gold set, or on a part of it (kind: subset, tokens or word overlap; "set" is the whole)."""

    model: str
    set: str
    kind: str
    part: str
    dropped: dict[str, int]
    conflicting: int | None  # pairs whose texts stand in the set again with other gold
    tokens_cut_share: float | None  # of the tokens of the set's texts, those that the model didn't see
    alignment: float | None
    uniformity: float | None
    full: Numbers
    clean: Numbers | None  # over pairs of which neither text was trained on; None where that isn't known
    variant: str = ""  # what was made of the model's vectors first; "" for nothing
    words_unknown_share: float | None = None  # of word vectors: of the set's words, those without one
    texts_unknown: int | None = None  # and its distinct texts without any word that has one

    @property
    def spearman(self) -> float | None:
        """Over all rows."""
        return self.full.spearman

    @property
    def rows_clean(self) -> int | None:
        """Leak-clean rows; None where training texts aren't known."""
        return self.clean.rows if self.clean else None

    @property
    def spearman_clean(self) -> float | None:
        """Over leak-clean rows."""
        return self.clean.spearman if self.clean else None

    def as_dict(self) -> dict[str, Any]:
        """Plain, flat data for JSON, which has no nan: null stands for it. Leak-clean numbers end with _clean."""
        own = {name: value for name, value in asdict(self).items() if name not in ("full", "clean")}
        names = [one.name for one in fields(Numbers)]
        clean = asdict(self.clean) if self.clean else dict.fromkeys(names)
        return plain({**own, **asdict(self.full), **{f"{name}_clean": clean[name] for name in names}})


@dataclass(frozen=True)
class Comparison:
    """One model against another on the same rows of a set or of a part of it.

    metric: spearman or average_precision, or one of a task's, which kind names then. difference: the second's value
    less the first's, with its 95 % paired bootstrap interval and two-sided p. clean: whether the rows are those that
    neither model is known to have been trained on. None as in Numbers.
    """

    first: str
    second: str
    set: str
    kind: str
    part: str
    metric: str
    clean: bool
    rows: int
    first_value: float | None
    second_value: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return plain(asdict(self))


@dataclass(frozen=True)
class Mean:
    """A number over several sets of one model, or over several models on one set or task (seeds of one training).

    kind: set, or a task's; metric: as in Numbers, Spearman alone over sets, or a task's. over: what was averaged
    ("sets" or "models"), of which there are `count`. deviation: the sample standard deviation over models; None over
    sets and for a single one. low, high: the bootstrap interval, over sets alone.
    """

    model: str
    set: str
    kind: str
    metric: str
    over: str
    count: int
    value: float | None
    low: float | None
    high: float | None
    deviation: float | None
    value_clean: float | None
    deviation_clean: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return plain(asdict(self))


@dataclass(frozen=True)
class TaskNumber:
    """One model's number on a task (kind: retrieval or probe), within 0 and 1, over `rows` texts.

    low, high: the 95 % bootstrap interval. *_clean: over texts that the model wasn't trained on; None where nothing is
    known of that, and without any.
    """

    model: str
    kind: str
    set: str
    metric: str
    rows: int
    value: float | None
    low: float | None
    high: float | None
    rows_clean: int | None
    value_clean: float | None
    low_clean: float | None
    high_clean: float | None
    variant: str = ""
    tokens_cut_share: float | None = None  # these three as in Result
    words_unknown_share: float | None = None
    texts_unknown: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return plain(asdict(self))


@dataclass(frozen=True)
class Evaluation:
    """All that was found. notes: what makes some of the numbers mean less than they seem, each once, by set."""

    results: list[Result]
    parts: list[Result] = field(default_factory=list)
    means: list[Mean] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    densities: list[Density] = field(default_factory=list)
    tasks: list[TaskNumber] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = {"results": [result.as_dict() for result in self.results]}
        for name in ("parts", "means", "comparisons", "tasks"):
            found[name] = [one.as_dict() for one in getattr(self, name)]
        return {**found, "density": [row for one in self.densities for row in one.rows()], "notes": self.notes}


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """The same with None for each nan."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}
