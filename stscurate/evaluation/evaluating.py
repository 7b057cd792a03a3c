"""Several models on several gold sets: all that is told of them, kept as JSON, Markdown, Parquet and a figure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stscurate.artifacts import Artifact
from stscurate.disk import write_json
from stscurate.evaluation.averaging import over_models, over_sets
from stscurate.evaluation.comparing import compare
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.measuring import Measured, measure, measure_parts
from stscurate.evaluation.metrics.binary import Thresholds, choose
from stscurate.evaluation.metrics.density import Density, densities
from stscurate.evaluation.notes import notes
from stscurate.evaluation.results import Comparison, Evaluation, Mean, Result, TaskNumber
from stscurate.evaluation.scoring import Scored, Scorer, Unseen
from stscurate.evaluation.tasks import Task, Told, compare_tasks, measure_task
from stscurate.evaluation.wanted import Wanted
from stscurate.evaluation.writing import write_tables
from stscurate.manifest import Entry
from stscurate.methods.leaks import text_digest
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.answers import Answers


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
    sets, wanted = _apart(sets, wanted)
    wanted.check(models, sets)
    names = _distinct([name for name, _ in wanted.identify(models)])
    if wanted.calibration:
        names = [f"{name}, {wanted.calibration.method.name}" for name in names]
    measured: list[dict[str, list[Measured]]] = []  # of each model: by variant, in the order of the sets
    parts: list[Result] = []
    spread: list[Density] = []
    comparisons: list[Comparison] = []
    numbers: list[list[TaskNumber]] = []  # of each model
    first: dict[str, Scored] = {}
    first_told: dict[tuple[str, str], Told] = {}
    for number, (model, name) in enumerate(zip(models, names, strict=True)):
        scorer = wanted.open(model, answers)
        chosen = _thresholds(scorer, wanted, progress)
        measured.append({})
        numbers.append([])
        for place, gold in enumerate(sets):
            progress(f"sets; {name} on {gold.name}", number * len(sets) + place, len(models) * len(sets))
            for found in scorer.score(gold, seed=wanted.seed, progress=progress):
                scored = replace(found, model=_varied(name, found.variant))
                own = chosen.get(found.variant) if gold.binary else None
                measured[-1].setdefault(found.variant, []).append(measure(scored, wanted, own))
                parts += measure_parts(scored, wanted, own)
                spread += densities(scored) if wanted.density else []
                if wanted.paired and gold.name in first:
                    comparisons += compare(first[gold.name], scored, wanted)
                first.setdefault(gold.name, scored)
        for told, variant, unseen in _tasks(scorer, name, wanted, progress):
            numbers[-1] += [replace(one, variant=variant, **vars(unseen)) for one in measure_task(told, wanted)]
            base = first_told.setdefault((told.kind, told.set), told)
            comparisons += compare_tasks(base, told, wanted) if wanted.paired and base is not told else []
    progress("sets", len(models) * len(sets), len(models) * len(sets))
    everything = [one for of_model in measured for of_variant in of_model.values() for one in of_variant]
    tasks = [one for of_model in numbers for one in of_model]
    results = [one.result for one in everything]
    collections = {gold.name: gold.collection for gold in sets if gold.collection}
    return Evaluation(
        results=results,
        parts=parts,
        means=[*over_sets(everything, collections), *_over_groups(wanted.groups, measured, numbers)],
        comparisons=comparisons,
        densities=spread,
        tasks=tasks,
        notes=[*notes(sets, results, parts, tasks, wanted), *(task.note for task in wanted.tasks)],
    )


def evaluate_into(
    out: Path,
    models: Sequence[str],
    sets: Sequence[GoldSet],
    wanted: Wanted | None = None,
    *,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Evaluate each model on each set into the folder `out`; embeddings so far survive a kill.

    wanted: all that is to be told; without it, each model's numbers on each set.
    """
    sets, wanted = _apart(sets, wanted or Wanted())
    wanted.check(models, sets)
    inputs = {
        f"model {index}: {name}": found.fingerprint for index, (name, found) in enumerate(wanted.identify(models))
    }
    inputs |= {f"set {index}: {gold.name}": gold.fingerprint for index, gold in enumerate(sets)}
    inputs |= {f"{task.kind}: {task.data.name}": task.data.fingerprint for task in wanted.tasks}
    if wanted.dev:
        inputs[f"dev: {wanted.dev.name}"] = wanted.dev.fingerprint
    if wanted.train_texts is not None:
        inputs["training texts"] = text_digest("\n".join(sorted(map(text_digest, wanted.train_texts))))
    if wanted.calibration:
        inputs["calibration"] = wanted.calibration.fingerprint
    with Artifact.open(
        out, stage="evaluate", inputs=inputs, settings=wanted.settings, seed=wanted.seed, replace=replace
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        with Answers(artifact.work / "embeddings.sqlite") as answers:
            found = evaluate_all(models, sets, wanted, answers=answers, progress=progress)
        folder = artifact.clear_result()
        write_json(folder / "results.json", found.as_dict())
        outputs = write_tables(folder, found)
        tally = Tally()
        for rows, dropped in [
            *((len(gold.pairs), gold.dropped) for gold in sets),
            *((len(task.data.texts), task.data.dropped) for task in wanted.tasks),
        ]:
            tally.rows_in += rows + sum(dropped.values())
            for reason, count in dropped.items():
                tally.drop(reason, count)
        return artifact.commit(outputs, tally)


def _apart(sets: Sequence[GoldSet], wanted: Wanted) -> tuple[list[GoldSet], Wanted]:
    """The sets and tasks, different ones of the same name with a number; the same one twice keeps its name twice."""
    names = _distinct([gold.name for gold in sets], [gold.fingerprint for gold in sets])
    kinds: dict[str, list[Task]] = defaultdict(list)
    for task in wanted.tasks:
        kinds[task.kind].append(task)
    own = {
        kind: iter(_distinct([task.data.name for task in some], [task.data.fingerprint for task in some]))
        for kind, some in kinds.items()
    }
    tasks = [task.named(next(own[task.kind])) for task in wanted.tasks]
    return [replace(gold, name=name) for gold, name in zip(sets, names, strict=True)], replace(wanted, tasks=tasks)


def _tasks(scorer: Scorer, name: str, wanted: Wanted, progress: Progress) -> Iterator[tuple[Told, str, Unseen]]:
    """What the model makes of each task, in each variant, that variant's name, and what it doesn't see of the texts."""
    for task in wanted.tasks:
        clean = scorer.clean(task.data.texts)
        unseen = scorer.unseen(list(dict.fromkeys(task.data.texts)))
        for variant, vectors in scorer.vectors(task.data.texts, progress):
            progress(f"{task.kind}; {_varied(name, variant)} on {task.data.name}", 0, None)
            yield task.told(_varied(name, variant), vectors, clean, wanted.seed), variant, unseen


def _thresholds(scorer: Scorer, wanted: Wanted, progress: Progress) -> dict[str, Thresholds]:
    """By variant."""
    if not wanted.dev:
        return {}
    return {
        scored.variant: choose(wanted.dev.gold, scored.similarities)
        for scored in scorer.score(wanted.dev, progress=progress)
    }


def _over_groups(
    groups: Mapping[str, Sequence[int]],
    measured: Sequence[Mapping[str, list[Measured]]],
    numbers: Sequence[Sequence[TaskNumber]],
) -> Iterator[Mean]:
    """Means over each group's models, for each variant that all of them have."""
    variants = dict.fromkeys(variant for of_model in measured for variant in of_model)
    variants |= dict.fromkeys(one.variant for of_model in numbers for one in of_model)
    for variant in variants:
        found: list[list[Measured | TaskNumber]] = [
            [*of_model.get(variant, []), *(one for one in own if one.variant == variant)]
            for of_model, own in zip(measured, numbers, strict=True)
        ]
        those = {
            _varied(name, variant): places for name, places in groups.items() if all(found[place] for place in places)
        }
        yield from over_models(those, found)


def _varied(name: str, variant: str) -> str:
    return f"{name}, {variant}" if variant else name


def _distinct(names: Sequence[str], of: Sequence[str] | None = None) -> list[str]:
    """The names, those that stand again with a number. of: what is named; the same again has the name it had."""
    seen: Counter[str] = Counter()
    known: dict[tuple[str, str], str] = {}
    for place, name in enumerate(names):
        key = name, of[place] if of else str(place)
        if key not in known:
            seen[name] += 1
            known[key] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return [known[name, of[place] if of else str(place)] for place, name in enumerate(names)]
