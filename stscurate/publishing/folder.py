"""A run as a folder that `datasets.load_dataset(folder, config)` loads, with its card; nothing is sent anywhere."""

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.artifacts import Artifact
from stscurate.disk import atomic, fingerprint
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.publishing.card import check_card, check_languages, front_matter, render, template_path
from stscurate.publishing.facts import gather, in_order
from stscurate.publishing.gates import check_gates
from stscurate.publishing.layouts import Layout, layouts, scored_pairs
from stscurate.publishing.licences import set_licences
from stscurate.records import PAIRS, Tally
from stscurate.store import Run

SHARD_ROWS = 100_000  # rows of a file at most
_GROUP_ROWS = 10_000  # rows of a Parquet row group: what a reader holds at once


def publish_folder(
    run: Run,
    folder: Path,
    *,
    title: str | None = None,
    licence: str | None = None,
    language: Sequence[str] = ("en",),
    accept: Sequence[str] = (),
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Write the run's pairs, triplets and provenance to `folder` as Parquet splits with a card (README.md).

    title: the run's name by default. licence: SPDX identifier of the set, needed unless every pair names one.
    accept: names of gates (`gates.GATES`) whose findings are published all the same, and told on the card.
    Without a split a pair is for training; a pair without any score or label isn't published, and is counted.
    InputError where a gate refuses, nothing is there to publish, or `folder` holds something else.
    """
    check_languages(language)
    found = {name: run.table(name) for name in ("pairs", "votes", "scores", "triplets") if run.has(name)}
    pairs = scored_pairs(found.get("pairs", PAIRS.empty_table()), found.get("scores"))
    published = layouts(pairs, found.get("votes"), found.get("triplets"))
    if not published:
        raise InputError(
            f"{run.folder} has no pair with a score or label, and no triplets: run annotate or triplets first."
        )
    settings: dict[str, Any] = {
        "title": title or run.folder.resolve().name,
        "licences": set_licences(licence, pairs["licence"].to_pylist() or [None]),
        "languages": list(language),
        "accept": sorted(set(accept)),
        "shard_rows": SHARD_ROWS,
    }
    inputs = {name: run.fingerprint(name) for name in found}
    inputs |= {"manifest": _manifest_hash(run), "card template": fingerprint(template_path())}
    with Artifact.open(folder, stage="publish", inputs=inputs, settings=settings, replace=replace) as artifact:
        if artifact.entry:
            return artifact.entry
        accepted = check_gates(pairs, found.get("triplets"), accept=accept)
        facts = gather(run.entries, pairs, found.get("votes"), found.get("scores"), published, accepted, settings)
        artifact.result.mkdir(exist_ok=True)
        sizes = {}
        for number, layout in enumerate(published):
            progress("publish", number, len(published))
            sizes[layout.name] = _write(layout, artifact.result)
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
            file.write(render(matter, facts).encode())
        check_card(artifact.result)
        progress("publish", len(published), len(published))
        outputs = {layout.name: _output(layout, artifact.result) for layout in published}
        return artifact.commit(outputs, _tally(found, pairs, published))


def _write(layout: Layout, result: Path) -> dict[str, int]:
    """Write the config's splits as shards of at most SHARD_ROWS rows, and give the bytes of each split in memory.

    Shards that a killed process finished are kept.
    """
    sizes: dict[str, int] = {}
    place = result / "data" / layout.name
    place.mkdir(parents=True, exist_ok=True)
    for split, rows in layout.splits():
        shards = math.ceil(rows.num_rows / SHARD_ROWS)
        for shard in range(shards):
            path = place / f"{split}-{shard:05}-of-{shards:05}.parquet"
            # in one chunk: how the run was cut into shards must not show in the bytes
            part = rows.slice(shard * SHARD_ROWS, SHARD_ROWS).combine_chunks()
            sizes[split] = sizes.get(split, 0) + part.nbytes
            if not path.exists():
                with atomic(path) as file:
                    pq.write_table(part, file, compression="zstd", row_group_size=_GROUP_ROWS)
    return sizes


def _output(layout: Layout, result: Path) -> dict[str, Any]:
    return {"rows": layout.table.num_rows, "sha256": fingerprint(result / "data" / layout.name)}


def _tally(found: dict[str, pa.Table], pairs: pa.Table, published: list[Layout]) -> Tally:
    tally = Tally(rows_in=sum(found[name].num_rows for name in ("pairs", "triplets") if name in found))
    if "pairs" in found:
        tally.drop("no_score_or_label", found["pairs"].num_rows - pairs.num_rows)
    for layout in published:
        for split, rows in layout.counts().items():
            tally.count(layout.name, split, rows)
    return tally


def _annotators(pairs: pa.Table) -> list[str]:
    """The Hub's words for who labelled: models, or labels that were found with the data."""
    sources = set(pairs["score_from"].to_pylist())
    words = {"machine-generated": "annotators" in sources, "found": bool(sources & {"score", "label"})}
    return [word for word, holds in words.items() if holds]


def _manifest_hash(run: Run) -> str:
    """SHA-256 of what the card tells of the run's stages: counts, drops and settings can change, the rows not."""
    told = [entry.as_dict() for entry in in_order(run.entries)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
