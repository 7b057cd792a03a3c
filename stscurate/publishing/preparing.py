"""What of a run is to be published, and by which settings: the same for a folder, a push, and a look before either."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.publishing.buckets import Joined, join
from stscurate.publishing.card import read_front_matter, template_path
from stscurate.publishing.facts import in_order
from stscurate.publishing.hub_words import check_languages
from stscurate.publishing.ids import ids_layout, of_issues
from stscurate.publishing.layouts import TRIPLET, VOTE_COLUMNS, VOTE_KEYS, Layout, layouts
from stscurate.publishing.licences import set_licences
from stscurate.publishing.parts import Parts
from stscurate.publishing.scored import rows_of, scored_pairs, spilled
from stscurate.publishing.writing import SHARD_ROWS
from stscurate.records import VOTES
from stscurate.services.answers import answer_key
from stscurate.store import Run


@dataclass(frozen=True)
class Prepared:
    """A run's tables as they are to be published."""

    rows: Mapping[str, int]  # of the run's pairs and triplets, where it has them
    pairs: Parts  # of `scored_pairs`
    triplets: Parts | None
    published: Sequence[Layout]
    from_issues: bool
    by_ids: bool  # without texts
    settings: dict[str, Any]
    inputs: dict[str, str]


def prepare(
    run: Run,
    scratch: Path,
    *,
    title: str | None = None,
    licence: str | None = None,
    language: Sequence[str] = ("en",),
    accept: Sequence[str] = (),
    texts: bool = False,
) -> Prepared:
    """Read the run, and lay its rows out. Arguments and errors as of `publish_folder`.

    scratch: an empty folder for what of the rows has to be sorted or joined; the result is read from there.
    """
    check_languages(language)
    found = [name for name in ("pairs", "votes", "scores", "triplets") if run.has(name)]
    pairs = scored_pairs(run, scratch)
    from_issues = of_issues(pairs)
    by_ids = from_issues and not texts
    triplets = spilled(run, "triplets", scratch, ("text_id", *TRIPLET)) if "triplets" in found else None
    published = layouts(pairs, _votes(run, pairs, scratch) if "votes" in found else None, triplets)
    if by_ids:
        issues = run.batches("issues", columns=["repository", "number", "url"]) if run.has("issues") else ()
        published = [ids_layout(pairs, issues), *(layout for layout in published if layout.name == "provenance")]
    if not published:
        raise InputError(
            f"{run.folder} has no pair with a score or label, and no triplets: run annotate or triplets first."
        )
    settings: dict[str, Any] = {
        "title": title or run.folder.resolve().name,
        "licences": set_licences(licence, _licences(pairs), of_code=from_issues),
        "languages": list(language),
        "accept": sorted(set(accept)),
        "texts": not by_ids,
        "shard_rows": SHARD_ROWS,
    }
    inputs = {name: run.fingerprint(name) for name in found}
    if "votes" in found and run.prompts:
        inputs["prompts"] = answer_key(**run.prompts)
    inputs |= {"manifest": _manifest_hash(run), "card template": fingerprint(template_path())}
    rows: dict[str, int] = {name: rows_of(run, name) for name in ("pairs", "triplets") if name in found}
    return Prepared(rows, pairs, triplets, published, from_issues, by_ids, settings, inputs)


def card_there(folder: Path) -> Mapping[str, Any] | None:
    """The YAML of the card that stands in a folder; None where there is no card."""
    path = folder / "README.md"
    return read_front_matter(path.read_text("utf-8")) if path.is_file() else None


def _votes(run: Run, pairs: Parts, scratch: Path) -> Joined:
    """The votes of the pairs, by the pairs' rows."""
    columns = pa.schema([VOTES.field(name) for name in VOTE_COLUMNS])
    votes = (batch.select(list(VOTE_COLUMNS)) for batch in run.parts("votes", columns=VOTE_COLUMNS))
    known = pairs.batches(["pair_id", "row"])
    return join(known, votes, columns, scratch / "votes", rows=rows_of(run, "pairs"), keys=VOTE_KEYS)


def _licences(pairs: Parts) -> Iterator[str | None]:
    """The licence of each row; without any row, none is known."""
    if not pairs.num_rows:
        yield None
    for batch in pairs.batches(["licence"]):
        yield from batch["licence"].to_pylist()


def _manifest_hash(run: Run) -> str:
    """SHA-256 of what the card tells of the run's stages: counts, drops and settings can change, the rows not."""
    told = [entry.as_dict() for entry in in_order(run.entries)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
