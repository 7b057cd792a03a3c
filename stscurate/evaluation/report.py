"""Several models on several gold sets: all that is told of them, kept as JSON, Markdown, Parquet and a figure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stscurate.artifacts import Artifact
from stscurate.disk import write_json
from stscurate.errors import InputError
from stscurate.evaluation.averaging import over_models, over_sets
from stscurate.evaluation.comparing import compare
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.measuring import Measured, Options, measure, measure_parts
from stscurate.evaluation.metrics.binary import Thresholds, choose
from stscurate.evaluation.metrics.density import Density, densities
from stscurate.evaluation.results import Comparison, Evaluation, Result
from stscurate.evaluation.scoring import EmbeddingScorer, Scored
from stscurate.evaluation.writing import write_tables
from stscurate.manifest import Entry
from stscurate.methods.calibration.saved import Calibration
from stscurate.methods.leaks import text_digest
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.answers import Answers
from stscurate.services.models import locate


@dataclass(frozen=True)
class Wanted(Options):
    """What is to be told besides each model's numbers on each set.

    paired: each model after the first against the first. groups: name -> places of models of several seeds. dev:
    binary pairs on which thresholds are chosen. train_texts: what all these models were trained on, where that is
    known from elsewhere. density: the similarities' spread over bands of gold. calibration: of the one model's cosines;
    accept_corpus: though it was fitted to other texts than the sets'.
    """

    paired: bool = False
    density: bool = False
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dev: GoldSet | None = None
    train_texts: Sequence[str] | None = None
    calibration: Calibration | None = None
    accept_corpus: bool = False

    def check(self, models: Sequence[str], sets: Sequence[GoldSet]) -> None:
        """InputError where it can't be told of these models and sets."""
        if not models:
            raise InputError("No model to evaluate: name one, or several by --group NAME=A,B.")
        if self.calibration and len(models) > 1:
            raise InputError("--calibration belongs to one model: evaluate the others by themselves.")
        if self.paired and len(models) < 2:
            raise InputError("--paired compares models on the same rows: name at least two.")
        if self.dev and not self.dev.binary:
            raise InputError(f"--dev {self.dev.name} is graded: a threshold is chosen on pairs with gold 0 or 1.")
        if self.dev and not any(gold.binary for gold in sets):
            raise InputError(f"--dev {self.dev.name} chooses a threshold, and no --set has gold 0 and 1 to hold it to.")
        for name, times in Counter(gold.name for gold in sets).items():
            if times > 1:
                raise InputError(f"--set {name} stands {times} times: name each set once.")


def evaluate(
    model_name: str,
    sets: Sequence[GoldSet],
    *,
    answers: Answers | None = None,
    resamples: int = 1000,
    seed: int = 0,
    train_texts: Iterable[str] | None = None,
    progress: Progress = silent,
) -> list[Result]:
    """One model on each set: Spearman of its cosines with gold, its 95 % bootstrap interval, and what goes with it.

    Where it is known what the model was trained on (`train_texts`, and the digests in a model folder of ours), all
    is given again over the pairs of which neither text was: the leak-clean numbers.
    """
    texts = None if train_texts is None else list(train_texts)
    wanted = Wanted(resamples=resamples, seed=seed, train_texts=texts)
    return evaluate_all([model_name], sets, wanted, answers=answers, progress=progress).results


def evaluate_all(
    models: Sequence[str],
    sets: Sequence[GoldSet],
    wanted: Wanted,
    *,
    answers: Answers | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Each model on each set, and what `wanted` says. With `answers`, embeddings so far survive a kill."""
    wanted.check(models, sets)
    names = _distinct([locate(model).name for model in models])
    if wanted.calibration:
        names = [f"{name}, {wanted.calibration.method.name}" for name in names]
    measured: list[list[Measured]] = []
    parts: list[Result] = []
    spread: list[Density] = []
    comparisons: list[Comparison] = []
    first: list[Scored] = []
    for number, (model, name) in enumerate(zip(models, names, strict=True)):
        scorer = EmbeddingScorer(
            model,
            answers=answers,
            train_texts=wanted.train_texts,
            calibration=wanted.calibration,
            accept_corpus=wanted.accept_corpus,
        )
        chosen = _thresholds(scorer, wanted, progress)
        measured.append([])
        for place, gold in enumerate(sets):
            progress(f"sets; {name} on {gold.name}", number * len(sets) + place, len(models) * len(sets))
            scored = replace(scorer.score(gold, seed=wanted.seed, progress=progress), model=name)
            own = chosen if gold.binary else None
            measured[-1].append(measure(scored, wanted, own))
            parts += measure_parts(scored, wanted, own)
            spread += densities(scored) if wanted.density else []
            if wanted.paired and number:
                comparisons += compare(first[place], scored, wanted)
            elif wanted.paired:
                first.append(scored)
    progress("sets", len(models) * len(sets), len(models) * len(sets))
    everything = [one for of_model in measured for one in of_model]
    collections = {gold.name: gold.collection for gold in sets if gold.collection}
    return Evaluation(
        results=[one.result for one in everything],
        parts=parts,
        means=[*over_sets(everything, collections), *over_models(wanted.groups, measured)],
        comparisons=comparisons,
        densities=spread,
        notes=list(_notes(sets, everything)),
    )


def evaluate_into(
    out: Path,
    models: Sequence[str],
    sets: Sequence[GoldSet],
    wanted: Wanted | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Evaluate each model on each set into the folder `out`; embeddings so far survive a kill.

    wanted: all that is to be told, resamples and seed included; without it, each model's numbers on each set.
    """
    wanted = wanted or Wanted(resamples=resamples, seed=seed)
    wanted.check(models, sets)
    located = [locate(model) for model in models]
    inputs = {f"model {index}: {model.name}": model.fingerprint for index, model in enumerate(located)}
    inputs |= {f"set {index}: {gold.name}": gold.fingerprint for index, gold in enumerate(sets)}
    if wanted.dev:
        inputs[f"dev: {wanted.dev.name}"] = wanted.dev.fingerprint
    if wanted.train_texts is not None:
        inputs["training texts"] = text_digest("\n".join(sorted(map(text_digest, wanted.train_texts))))
    if wanted.calibration:
        inputs["calibration"] = wanted.calibration.fingerprint
    settings = {
        "resamples": wanted.resamples,
        "interval": "95 % percentile bootstrap",
        "precision": "float32",
        **{name: True for name in ("subsets", "bands", "paired", "density", "accept_corpus") if getattr(wanted, name)},
        **({"groups": {name: list(places) for name, places in wanted.groups.items()}} if wanted.groups else {}),
    }
    with Artifact.open(
        out, stage="evaluate", inputs=inputs, settings=settings, seed=wanted.seed, replace=replace
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        with Answers(artifact.work / "embeddings.sqlite") as answers:
            found = evaluate_all(models, sets, wanted, answers=answers, progress=progress)
        folder = artifact.clear_result()
        write_json(folder / "results.json", found.as_dict())
        outputs = write_tables(folder, found)
        tally = Tally(rows_in=sum(len(gold.pairs) + sum(gold.dropped.values()) for gold in sets))
        for gold in sets:
            for reason, rows in gold.dropped.items():
                tally.drop(reason, rows)
        return artifact.commit(outputs, tally)


def _thresholds(scorer: EmbeddingScorer, wanted: Wanted, progress: Progress) -> Thresholds | None:
    if not wanted.dev:
        return None
    return choose(wanted.dev.gold, scorer.score(wanted.dev, progress=progress).similarities)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, those that stand again with a number."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _notes(sets: Sequence[GoldSet], measured: Sequence[Measured]) -> Iterator[str]:
    """Each note once, with the sets that it is of; then what the numbers themselves give to note."""
    of: dict[str, list[str]] = {}
    for gold in sets:
        for note in gold.notes:
            of.setdefault(note, []).append(gold.name)
        if gold.conflicting:
            yield f"{gold.name}: {gold.conflicting:,} pairs stand in it again with other gold: none is right on all."
    for note, names in of.items():
        yield f"{', '.join(names)}: {note}"
    unknown = dict.fromkeys(one.result.model for one in measured if one.result.clean is None)
    if unknown:
        yield (
            f"{', '.join(unknown)}: what was trained on isn't known, so there is no leak-clean number; --train FILE "
            "gives it where you have the training texts."
        )
