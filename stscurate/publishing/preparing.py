"""What of a run is to be published, and by which settings: the same for a folder, a push, and a look before either."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.publishing.card import read_front_matter, template_path
from stscurate.publishing.facts import in_order
from stscurate.publishing.hub_words import check_languages
from stscurate.publishing.ids import ids_layout, of_issues
from stscurate.publishing.layouts import Layout, layouts, scored_pairs
from stscurate.publishing.licences import set_licences
from stscurate.publishing.writing import SHARD_ROWS
from stscurate.records import PAIRS
from stscurate.store import Run


@dataclass(frozen=True)
class Prepared:
    """A run's tables as they are to be published."""

    found: Mapping[str, pa.Table]  # pairs, votes, scores, triplets, where the run has them
    pairs: pa.Table  # of `layouts.scored_pairs`
    published: Sequence[Layout]
    from_issues: bool
    by_ids: bool  # without texts
    settings: dict[str, Any]
    inputs: dict[str, str]


def prepare(
    run: Run,
    *,
    title: str | None = None,
    licence: str | None = None,
    language: Sequence[str] = ("en",),
    accept: Sequence[str] = (),
    texts: bool = False,
) -> Prepared:
    """Read the run, and lay its rows out. Arguments and errors as of `publish_folder`."""
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
    return Prepared(found, pairs, published, from_issues, by_ids, settings, inputs)


def card_there(folder: Path) -> Mapping[str, Any] | None:
    """The YAML of the card that stands in a folder; None where there is no card."""
    path = folder / "README.md"
    return read_front_matter(path.read_text("utf-8")) if path.is_file() else None


def _manifest_hash(run: Run) -> str:
    """SHA-256 of what the card tells of the run's stages: counts, drops and settings can change, the rows not."""
    told = [entry.as_dict() for entry in in_order(run.entries)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
