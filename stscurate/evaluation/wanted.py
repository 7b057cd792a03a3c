"""What is to be told of models and sets, and whether it can be."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stscurate.errors import InputError
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.measuring import Options
from stscurate.evaluation.models import Opening, is_reranker
from stscurate.evaluation.scoring import Scorer, open_scorer
from stscurate.evaluation.tasks import Task
from stscurate.evaluation.variants import Variants
from stscurate.methods.calibration.saved import Calibration
from stscurate.services.answers import Answers
from stscurate.services.encoders import Identified


@dataclass(frozen=True)
class Wanted(Options):
    """What is to be told besides each model's numbers on each set.

    paired: each model after the first against the first. groups: name -> places of models of several seeds. dev:
    binary pairs on which thresholds are chosen. train_texts: what all these models were trained on, where that is
    known from elsewhere. density: the similarities' spread over bands of gold. calibration: of the one model's cosines;
    accept_corpus: though it was fitted to other texts than the sets'. opening: how models are opened; variants: what is
    made of their vectors besides. tasks: what the vectors are tried on beside the sets.
    """

    paired: bool = False
    density: bool = False
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dev: GoldSet | None = None
    train_texts: Sequence[str] | None = None
    calibration: Calibration | None = None
    accept_corpus: bool = False
    opening: Opening = field(default_factory=Opening)
    variants: Variants = field(default_factory=Variants)
    tasks: Sequence[Task] = ()

    def check(self, models: Sequence[str], sets: Sequence[GoldSet]) -> None:
        """InputError where it can't be told of these models and sets."""
        if not models:
            raise InputError("No model to evaluate: name one, or several by --group NAME=A,B.")
        if unused := [name for name in ("subsets", "bands", "density") if getattr(self, name) and not sets]:
            raise InputError(f"{' and '.join(f'--{name}' for name in unused)}: of pairs alone, and no --set is named.")
        if not sets and not self.tasks:
            raise InputError("Nothing to evaluate on: name a --set, or a file by --retrieve or --probe.")
        self.opening.check(models)
        self._check_vectors(models)
        if self.paired and len(models) < 2 and not self._varied:
            raise InputError("--paired compares models on the same rows: name at least two.")
        if self.dev:
            _check_dev(self.dev, [gold for gold in sets if gold.binary])
        for name, times in Counter(gold.name for gold in sets).items():
            if times > 1:
                raise InputError(f"--set {name} stands {times} times: name each set once.")
        self._check_tasks(models)

    def identify(self, models: Sequence[str]) -> list[tuple[str, Identified]]:
        """Each model as Opening.identify. InputError where a group holds one twice."""
        found = [self.opening.identify(model) for model in models]
        for name, places in self.groups.items():
            first: dict[str, int] = {}
            for number, place in enumerate(places):
                same = first.setdefault(found[place][1].fingerprint, number)
                if same != number:
                    one, two = models[places[same]], models[place]
                    raise InputError(
                        f"--group {name}: {f'{one} and {two} are' if one != two else f'{one} twice is'} one model, and "
                        "a mean is over several: name each once."
                    )
        return found

    def _check_vectors(self, models: Sequence[str]) -> None:
        if self.calibration and len(models) > 1:
            raise InputError("--calibration belongs to one model: evaluate the others by themselves.")
        if self.calibration and (self._varied or any(map(is_reranker, models))):
            raise InputError(
                "--calibration corrects a model's own cosines: leave --whiten, --dimensions and rerankers."
            )
        if self._varied and all(map(is_reranker, models)):
            raise InputError("--whiten and --dimensions are for vectors, and a reranker has none: name another model.")

    def _check_tasks(self, models: Sequence[str]) -> None:
        if self.tasks and (self.calibration or any(map(is_reranker, models))):
            raise InputError(
                "--retrieve and --probe take a model's own vectors: leave --calibration and rerankers out."
            )
        for (kind, name), times in Counter((task.kind, task.data.name) for task in self.tasks).items():
            if times > 1:
                raise InputError(f"{name} stands {times} times for {kind}: name each file once.")

    def open(self, model: str, answers: Answers | None = None) -> Scorer:
        """The model, ready to be held to gold."""
        return open_scorer(
            model,
            opening=self.opening,
            variants=self.variants,
            answers=answers,
            train_texts=self.train_texts,
            calibration=self.calibration,
            accept_corpus=self.accept_corpus,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """All that shapes the numbers beside models and sets, as a stage's settings."""
        told = ("subsets", "bands", "paired", "density", "accept_corpus")
        opened = {name: value for name, value in vars(self.opening).items() if value}
        return {
            "resamples": self.resamples,
            "interval": "95 % percentile bootstrap",
            "precision": "float32",
            **{name: True for name in told if getattr(self, name)},
            **({"groups": {name: list(places) for name, places in self.groups.items()}} if self.groups else {}),
            **({"opening": opened} if opened else {}),
            **({"whiten": True} if self.variants.whiten else {}),
            **({"dimensions": list(self.variants.dimensions)} if self.variants.dimensions else {}),
        }

    @property
    def _varied(self) -> bool:
        return bool(self.variants.whiten or self.variants.dimensions)


def _check_dev(dev: GoldSet, binary: Sequence[GoldSet]) -> None:
    if not dev.binary:
        raise InputError(f"--dev {dev.name} is graded: a threshold is chosen on pairs with gold 0 or 1.")
    if not binary:
        raise InputError(f"--dev {dev.name} chooses a threshold, and no --set has gold 0 and 1 to hold it to.")
    for gold in binary:
        if set(gold.keys) == set(dev.keys):
            raise InputError(
                f"--dev {dev.name} holds the very pairs of --set {gold.name}: the threshold chosen there is the "
                "best on them. Name other pairs."
            )
