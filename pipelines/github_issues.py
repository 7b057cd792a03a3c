"""From GitHub issues to pairs, pseudo-labels, trained models, their evaluation, and a set ready to publish.

    stscurate run github_issues --out runs/mine --set source=issues.jsonl --set title=Mine

The labels that people gave by marking duplicates aren't trained on here: they are what the models are tested by.
"""

from collections.abc import Iterator
from pathlib import Path

from stscurate.annotators import annotate
from stscurate.ensemble import score_votes
from stscurate.evaluation import Wanted, evaluate_into, gold_set
from stscurate.manifest import Entry
from stscurate.pairing import make_pairs
from stscurate.progress import Progress, silent
from stscurate.publishing import publish_folder
from stscurate.resources import definition
from stscurate.sources import collect_issues, note_licences
from stscurate.store import Run
from stscurate.tables import texts_source
from stscurate.training import Schedule, pair_rows, train_angle, train_arccse, triplet_rows
from stscurate.triplets import make_triplets

SAMPLE = definition("github-issues/sample.jsonl")  # written for this project


def recipe(
    run: Run,
    *,
    source: Path = SAMPLE,
    model: str = "all-MiniLM-L6-v2",
    llm: tuple[str, ...] = ("local:SmolLM2-135M-Instruct", "embedding:all-MiniLM-L6-v2"),
    title: str = "Sample of stscurate: written, not collected",
    licence: str = "apache-2.0",
    max_tokens: int = 96,
    epochs: int = 3,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """Each stage in turn, in the run's folder; a stage that is finished is found, not made again."""
    folder = run.folder
    yield collect_issues(run, source, progress=progress)
    yield note_licences(run)
    yield make_pairs(run, negatives=2, shares=(0.5, 0.1, 0.4), seed=seed, progress=progress)
    yield make_triplets(run, texts_source(folder), seed=seed, progress=progress)
    yield annotate(run, llm, split="train", max_tokens=max_tokens, seed=seed, progress=progress)
    yield score_votes(run, progress=progress)
    schedule = Schedule(epochs=epochs, batch_size=16, max_tokens=max_tokens, seed=seed)
    inputs = {name: run.fingerprint(name) for name in ("pairs", "scores")}
    pairs = pair_rows(run.table("pairs"), inputs=inputs, labels="pseudo", scores=run.table("scores"))
    more = {"model": model, "schedule": schedule, "replace": run.replace, "progress": progress}
    yield train_angle(pairs, folder / "model", **more)  # type: ignore[arg-type]
    triplets = triplet_rows(run.table("triplets"), inputs={"triplets": run.fingerprint("triplets")})
    place = folder / "model-arccse"
    yield train_arccse(triplets, place, **more)  # type: ignore[arg-type]
    models, sets = [model, str(folder / "model"), str(place)], [gold_set(str(folder)), gold_set("lee-news")]
    yield evaluate_into(folder / "evaluation", models, sets, Wanted(seed=seed), replace=run.replace, progress=progress)
    place, ours = folder / "published", source == SAMPLE  # the texts of others' issues aren't ours to publish
    accept = ["licence"] if ours else []  # the sample's repositories are made up
    yield publish_folder(run, place, title=title, licence=licence, texts=ours, accept=accept, replace=run.replace)
