"""A run as a folder that `datasets.load_dataset(folder, config)` loads, with its card; nothing is sent anywhere."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.artifacts import Artifact
from stscurate.disk import atomic, fingerprint, write_json
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.publishing.card import check_card, front_matter, merge, render, template_path
from stscurate.publishing.facts import gather, in_order
from stscurate.publishing.gates import check_gates
from stscurate.publishing.hub_words import check_languages
from stscurate.publishing.ids import ids_layout, known_templates, of_issues
from stscurate.publishing.layouts import Layout, layouts, scored_pairs
from stscurate.publishing.licences import set_licences
from stscurate.publishing.writing import SHARD_ROWS, output_of, write_layout
from stscurate.records import PAIRS, Tally
from stscurate.store import Run

CARD_FACTS = "card.json"


def publish_folder(
    run: Run,
    folder: Path,
    *,
    title: str | None = None,
    licence: str | None = None,
    language: Sequence[str] = ("en",),
    accept: Sequence[str] = (),
    texts: bool = False,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Write the run's pairs, triplets and provenance to `folder` as Parquet splits with a card (README.md).

    Pairs of GitHub issues are published by their ids (`ids.py`), without texts and triplets, unless `texts` says so:
    the texts are their authors', and whoever wants them can fetch them again. Other pairs always have their texts.
    title: the run's name by default. licence: SPDX identifier of the set, needed unless every pair names one.
    accept: names of gates (`gates.GATES`) whose findings are published all the same, and told on the card.
    Without a split a pair is for training; a pair without any score or label isn't published, and is counted.
    InputError where a gate refuses, nothing is there to publish, or `folder` holds something else.
    """
    check_languages(language)
    found = {name: run.table(name) for name in ("pairs", "votes", "scores", "triplets") if run.has(name)}
    pairs = scored_pairs(found.get("pairs", PAIRS.empty_table()), found.get("scores"))
    from_issues = of_issues(pairs)
    by_ids = from_issues and not texts
    published = layouts(pairs, found.get("votes"), found.get("triplets"))
    if by_ids:
        issues = run.table("issues") if run.has("issues") else None
        published = [ids_layout(pairs, issues), *(layout for layout in published if layout.name == "provenance")]
    if not published:
        raise InputError(
            f"{run.folder} has no pair with a score or label, and no triplets: run annotate or triplets first."
        )
    settings: dict[str, Any] = {
        "title": title or run.folder.resolve().name,
        "licences": set_licences(licence, pairs["licence"].to_pylist() or [None], of_code=from_issues),
        "languages": list(language),
        "accept": sorted(set(accept)),
        "texts": not by_ids,
        "shard_rows": SHARD_ROWS,
    }
    inputs = {name: run.fingerprint(name) for name in found}
    inputs |= {"manifest": _manifest_hash(run), "card template": fingerprint(template_path())}
    with Artifact.open(folder, stage="publish", inputs=inputs, settings=settings, replace=replace) as artifact:
        if artifact.entry:
            return artifact.entry
        accepted = check_gates(pairs, found.get("triplets"), accept=accept)
        told = (found.get("votes"), found.get("scores"), published, accepted, settings, from_issues, _dates(run))
        facts = gather(run.entries, pairs, *told)
        artifact.result.mkdir(exist_ok=True)
        sizes = {}
        for number, layout in enumerate(published):
            progress("publish", number, len(published))
            sizes[layout.name] = write_layout(layout, artifact.result)
        matter = front_matter(
            published,
            sizes,
            title=settings["title"],
            licences=settings["licences"],
            languages=settings["languages"],
            annotated=_annotators(pairs),
            original=run.has("issues") or run.has("texts"),
        )
        with atomic(artifact.result / "README.md") as file:
            file.write(edited(render(matter, facts), artifact).encode())
        if by_ids:  # what the card is made of, since it has to be made again once the texts are there
            templates = known_templates(run.table("issues") if run.has("issues") else None, pairs)
            write_json(artifact.result / CARD_FACTS, {"matter": matter, "facts": facts, "templates": templates})
        check_card(artifact.result)
        progress("publish", len(published), len(published))
        outputs = {layout.name: output_of(layout, artifact.result) for layout in published}
        return artifact.commit(outputs, _tally(found, pairs, published, by_ids))


def _tally(found: dict[str, pa.Table], pairs: pa.Table, published: list[Layout], by_ids: bool) -> Tally:
    tally = Tally(rows_in=sum(found[name].num_rows for name in ("pairs", "triplets") if name in found))
    if "pairs" in found:
        tally.drop("no_score_or_label", found["pairs"].num_rows - pairs.num_rows)
    if by_ids and "triplets" in found:
        tally.drop("triplets_are_texts", found["triplets"].num_rows)
    for layout in published:
        for split, rows in layout.counts().items():
            tally.count(layout.name, split, rows)
    return tally


def _annotators(pairs: pa.Table) -> list[str]:
    """The Hub's words for who labelled: models, or labels that were found with the data."""
    sources = set(pairs["score_from"].to_pylist())
    words = {"machine-generated": "annotators" in sources, "found": bool(sources & {"score", "label"})}
    return [word for word, holds in words.items() if holds]


def edited(card: str, artifact: Artifact) -> str:
    """The card, with what a person has written into the one that it replaces."""
    for place in (artifact.folder, artifact.replaced):  # a kill may have come between the commit's two renames
        if (place / "README.md").is_file():
            return merge((place / "README.md").read_bytes().decode("utf-8", "replace"), card)
    return card


def _dates(run: Run) -> tuple[str, str] | None:
    """The days when the first and the last of the run's issues were opened; None where they aren't known."""
    if not run.has("issues"):
        return None
    found = pa.Table.from_batches(run.batches("issues", columns=["created_at"]))["created_at"].drop_null()
    if not len(found):
        return None
    ends = pc.min_max(found).as_py()
    return ends["min"].date().isoformat(), ends["max"].date().isoformat()


def _manifest_hash(run: Run) -> str:
    """SHA-256 of what the card tells of the run's stages: counts, drops and settings can change, the rows not."""
    told = [entry.as_dict() for entry in in_order(run.entries)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
