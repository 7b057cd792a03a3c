"""A set of GitHub issues by its ids: what is published of it where the texts, which are their authors', stay out.

ids     repository, id1, id2, url1, url2, hash1, hash2, label, score, licence

hash1 and hash2 are SHA-256 of the two cleaned texts, in hexadecimal, as `text_hash` gives them; the licence is that of
the repository's code. `stscurate rehydrate` fetches the texts again and makes the other layouts of it.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.errors import InputError
from stscurate.methods.templates import Template, templates_of
from stscurate.publishing.layouts import Layout, Piece
from stscurate.publishing.parts import Parts
from stscurate.publishing.scored import counted, filled
from stscurate.records import first_true

_IDS = pa.schema(
    [
        *((name, pa.string()) for name in ("repository", "id1", "id2", "url1", "url2", "hash1", "hash2")),
        ("label", pa.int64()),
        ("score", pa.float64()),
        ("licence", pa.string()),
    ]
)
_MAY_BE_NULL = ("repository", "label", "licence")
_ISSUE = r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+#[1-9][0-9]*$"


def of_issues(pairs: Parts) -> bool:
    """Whether any of the pairs is of two issues, named "owner/name#12"."""
    return any(pc.any(_both(batch)).as_py() for batch in pairs.batches(["id1", "id2"]))


def ids_layout(pairs: Parts, issues: Iterable[pa.RecordBatch]) -> Layout:
    """The config `ids` of `scored_pairs`; issues: their repository, number and url, where the run has them.

    InputError where a pair isn't of issues: without its texts there would be nothing left of it.
    """
    for batch in pairs.batches(["pair_id", "id1", "id2", "row"]):
        other = first_true(pc.invert(_both(batch)))
        if other >= 0:
            raise InputError(
                f"pairs: row {batch['row'][other]} ({batch['pair_id'][other]}) isn't of two issues of GitHub as others "
                "are, so that it can't be published by ids: publish with --texts, or take it out."
            )
    known = _unusual(issues)
    # a column of nulls alone says nothing, and libraries stumble over it
    kept = filled(pairs, _MAY_BE_NULL)
    schema = pa.schema([field for field in _IDS if field.name in kept or field.name not in _MAY_BE_NULL])

    def read() -> Iterator[Piece]:
        for batch in pairs.batches(
            ["repository", "id1", "id2", "text1", "text2", "label", "score", "licence", "split"]
        ):
            columns = {"repository": batch["repository"], "id1": batch["id1"], "id2": batch["id2"]}
            columns |= {f"url{side}": _addresses(batch[f"id{side}"].to_pylist(), known) for side in "12"}
            columns |= {f"hash{side}": pa.array(map(text_hash, batch[f"text{side}"].to_pylist())) for side in "12"}
            columns |= {"label": batch["label"].cast(pa.int64()), "score": batch["score"], "licence": batch["licence"]}
            yield pa.record_batch([columns[name] for name in schema.names], schema=schema), batch["split"]

    return Layout("ids", schema, counted(pairs), read)


def known_templates(issues: Iterable[pa.RecordBatch], pairs: Parts) -> dict[str, dict[str, int]]:
    """The issue templates of the pairs' repositories, as plain data: hash of a line -> issues that have it.

    issues: their repository and body. Whoever fetches the texts again has but some of the issues, which don't show what
    all of them share.
    """
    found = templates_of((row["repository"], row["body"]) for batch in issues for row in batch.to_pylist())
    if not found:
        return {}
    ids = (issue for batch in pairs.batches(["id1", "id2"]) for side in batch.columns for issue in side.to_pylist())
    wanted = {place_of(issue)[0] for issue in ids}
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


def _both(pairs: pa.RecordBatch) -> pa.Array:
    """Whether both sides of each pair are issues."""
    sides = (pc.fill_null(pc.match_substring_regex(pairs[name], _ISSUE), False) for name in ("id1", "id2"))
    return pc.and_(*sides)


def _unusual(issues: Iterable[pa.RecordBatch]) -> dict[str, str]:
    """The addresses of issues that aren't where their number says; of millions of issues only these are held."""
    found = {}
    for batch in issues:
        for row in batch.to_pylist():
            if row["url"] and row["url"] != _address(row["repository"], row["number"]):
                found[f"{row['repository']}#{row['number']}"] = row["url"]
    return found


def _address(repository: str, number: int) -> str:
    return f"https://github.com/{repository}/issues/{number}"


def _addresses(ids: list[str], unusual: Mapping[str, str]) -> pa.Array:
    return pa.array([unusual.get(issue) or _address(*place_of(issue)) for issue in ids], pa.string())
