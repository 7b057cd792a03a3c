"""A set of GitHub issues by its ids: what is published of it where the texts, which are their authors', stay out.

ids     repository, id1, id2, url1, url2, hash1, hash2, label, score, licence

hash1 and hash2 are SHA-256 of the two cleaned texts, in hexadecimal, as `text_hash` gives them; the licence is that of
the repository's code. `stscurate rehydrate` fetches the texts again and makes the other layouts of it.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.errors import InputError
from stscurate.methods.templates import Template, templates_of
from stscurate.publishing.layouts import Layout
from stscurate.records import first_true

_BATCH = 1_000  # issues
_ISSUE = r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+#[1-9][0-9]*$"


def of_issues(pairs: pa.Table) -> bool:
    """Whether any of the pairs is of two issues, named "owner/name#12"."""
    return bool(pc.any(_both(pairs)).as_py())


def ids_layout(pairs: pa.Table, issues: pa.Table | None) -> Layout:
    """The config `ids` of `layouts.scored_pairs`; issues: their table, if there is one, which knows their addresses.

    InputError where a pair isn't of issues: without its texts there would be nothing left of it.
    """
    row = first_true(pc.invert(_both(pairs)))
    if row >= 0:
        raise InputError(
            f"pairs: row {pairs['row'][row]} ({pairs['pair_id'][row]}) isn't of two issues of GitHub as others are, so "
            "that it can't be published by ids: publish with --texts, or take it out."
        )
    known = {}
    if issues is not None:
        names = (issues[name].to_pylist() for name in ("repository", "number", "url"))
        known = {f"{repository}#{number}": url for repository, number, url in zip(*names, strict=True)}
    columns = {"repository": pairs["repository"], "id1": pairs["id1"], "id2": pairs["id2"]}
    columns |= {f"url{side}": _addresses(pairs[f"id{side}"].to_pylist(), known) for side in "12"}
    columns |= {f"hash{side}": pa.array(map(text_hash, pairs[f"text{side}"].to_pylist())) for side in "12"}
    columns |= {"label": pairs["label"].cast(pa.int64()), "score": pairs["score"], "licence": pairs["licence"]}
    # a column of nulls alone says nothing, and libraries stumble over it
    kept = {name: column for name, column in columns.items() if column.null_count < len(column)}
    return Layout("ids", pa.table(kept), pairs["split"])


def known_templates(issues: pa.Table | None, pairs: pa.Table) -> dict[str, dict[str, int]]:
    """The issue templates of the pairs' repositories, as plain data: hash of a line -> issues that have it.

    Whoever fetches the texts again has but some of the issues, which don't show what all of them share.
    """
    if issues is None:
        return {}
    batches = issues.select(["repository", "body"]).to_batches(max_chunksize=_BATCH)
    found = templates_of((row["repository"], row["body"]) for batch in batches for row in batch.to_pylist())
    wanted = {place_of(issue)[0] for side in ("id1", "id2") for issue in pairs[side].to_pylist()}
    return {
        repository: {f"{line:016x}": count for line, count in sorted(found[repository].lines.items())}
        for repository in sorted(wanted & found.keys())
    }


def read_templates(plain: Mapping[str, Any]) -> dict[str, Template]:
    """The templates that `known_templates` gave."""
    return {
        repository: Template({int(line, 16): int(count) for line, count in lines.items()})
        for repository, lines in plain.items()
    }


def text_hash(text: str) -> str:
    """SHA-256 of a text as it stands, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def place_of(issue: str) -> tuple[str, int]:
    """("owner/name", 12) of "owner/name#12"; InputError where it is something else."""
    if not re.match(_ISSUE, issue):
        raise InputError(f"{issue!r:.80} is no issue's id: they look like owner/name#12.")
    repository, _, number = issue.rpartition("#")
    return repository, int(number)


def _both(pairs: pa.Table) -> pa.ChunkedArray:
    """Whether both sides of each pair are issues."""
    sides = (pc.fill_null(pc.match_substring_regex(pairs[name], _ISSUE), False) for name in ("id1", "id2"))
    return pc.and_(*sides)


def _addresses(ids: list[str], known: dict[str, str | None]) -> pa.Array:
    found = []
    for issue in ids:
        repository, number = place_of(issue)
        found.append(known.get(issue) or f"https://github.com/{repository}/issues/{number}")
    return pa.array(found, pa.string())
