"""The events of all files brought together by issue: what is worth it, in memory that one bucket of issues fills.

Worth it are, where no repositories were listed, the issues of those repositories in which a comment speaks of
duplicates and refers to an issue, and the issues so referred to: all others can't be in a pair, since negatives stand
in the repositories of positives.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stscurate.errors import InputError
from stscurate.methods.references import find_references, known_as
from stscurate.records import EVENTS, Tally
from stscurate.sources.dumps import Issue, issue_of

_BUCKET = 1 << 25  # bytes of events that are sorted in memory
_AT_ONCE = 200  # files open at once
_SLICE = 500  # rows made into Python's values at once
_OF_DUPLICATES = "(?i)dup|重复"
_AS_DUPLICATE = '"state_reason":"duplicate"'

Row = dict[str, Any]


@dataclass
class Wanted:
    """Which issues are worth merging; all where `all` is True. Names in lower case, as they are known today."""

    all: bool
    repositories: set[str] = field(default_factory=set)
    places: set[tuple[str, int]] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)  # as the events write them, the last one counts


def find_wanted(
    shards: Sequence[Path], *, everything: bool, closed: bool, moved: Mapping[str, str], labels: frozenset[str]
) -> Wanted:
    """What the merge will keep. closed: also the repositories of issues with one of the labels, or so closed."""
    wanted = Wanted(all=everything)
    for shard in shards:
        table = pq.read_table(shard, columns=["repository"] + ["comment"] * (not everything) + ["issue"] * closed)
        for name in pc.unique(table["repository"]).to_pylist():
            present = known_as(name, moved)
            wanted.names[present.lower()] = present
        if everything:
            continue
        said = pc.fill_null(pc.match_substring_regex(table["comment"], _OF_DUPLICATES), False)
        for row in table.filter(said).select(["repository", "comment"]).to_pylist():
            repository = known_as(row["repository"], moved)
            body = json.loads(row["comment"]).get("body") or ""
            found = {(to.repository.lower(), to.number) for to in find_references(body, repository, moved)}
            wanted.places |= found
            wanted.repositories |= {repository.lower()} if found else set()
        if closed:
            marked = pc.fill_null(pc.match_substring(table["issue"], _AS_DUPLICATE), False)
            for label in sorted(labels):
                has = pc.match_substring(table["issue"], json.dumps(label, ensure_ascii=False), ignore_case=True)
                marked = pc.or_(marked, pc.fill_null(has, False))
            for name in pc.unique(table["repository"].filter(marked)).to_pylist():
                wanted.repositories.add(known_as(name, moved).lower())
    return wanted


def first_bodies(shards: Sequence[Path], wanted: Wanted, *, moved: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(repository, body) of each wanted issue, as its first snapshot in the shards' order has it."""
    seen: set[tuple[str, int]] = set()
    for shard in shards:
        table = pq.read_table(shard, columns=["repository", "number", "issue"])
        for row in _rows(table.filter(pc.is_valid(table["issue"]))):
            repository = known_as(row["repository"], moved)
            place = (repository.lower(), row["number"])
            if place not in seen and (wanted.all or place[0] in wanted.repositories or place in wanted.places):
                seen.add(place)
                body = json.loads(row["issue"]).get("body")
                yield wanted.names[place[0]], body if isinstance(body, str) else ""


def merged_issues(
    shards: Sequence[Path], wanted: Wanted, scratch: Path, *, moved: Mapping[str, str]
) -> Iterator[tuple[Issue | None, Tally]]:
    """The issues, each with its tally, or None for one that is left out; in an order that the events alone decide.

    scratch: a folder that this may fill and empties.
    """
    left_out = Tally()
    for bucket in _buckets(shards, wanted, scratch, moved, left_out):
        order = pc.sort_indices(bucket, [(name, "ascending") for name in ("key", "number", "at", "event", "action")])
        rows = _rows(bucket.take(order))
        for (key, number), events in groupby(rows, key=lambda row: (row["key"], row["number"])):
            tally = Tally()
            yield _merged(wanted.names[key], number, events, moved, tally), tally
    yield None, left_out
    shutil.rmtree(scratch, ignore_errors=True)


def _rows(table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches(max_chunksize=_SLICE):
        yield from batch.to_pylist()


def _buckets(
    shards: Sequence[Path], wanted: Wanted, scratch: Path, moved: Mapping[str, str], tally: Tally
) -> Iterator[pa.Table]:
    """Tables of the wanted events with a column `key` (the repository), all events of an issue in one of them."""
    size = sum(_size(shard) for shard in shards)
    count = size // _BUCKET + 1
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    schema = EVENTS.append(pa.field("key", pa.string(), nullable=False))
    paths = [scratch / f"{at:05}.arrow" for at in range(count)]
    for first in range(0, count, _AT_ONCE):
        with ExitStack() as stack:
            part = range(first, min(first + _AT_ONCE, count))
            writers = {at: stack.enter_context(pa.ipc.new_file(paths[at], schema)) for at in part}
            for shard in shards:
                table, numbers = _wanted_rows(
                    pq.read_table(shard), wanted, moved, count, tally if not first else Tally()
                )
                for at in part:
                    own = table.filter(pc.equal(numbers, at))
                    if own.num_rows:
                        writers[at].write_table(own)
    for path in paths:
        with pa.memory_map(str(path)) as file:
            yield pa.ipc.open_file(file).read_all()
        path.unlink()


def _wanted_rows(
    table: pa.Table, wanted: Wanted, moved: Mapping[str, str], count: int, tally: Tally
) -> tuple[pa.Table, pa.Array]:
    """The wanted events, and the bucket of each; the others are counted."""
    keys, buckets, kept = [], [], []
    known: dict[str, str] = {}
    for name, number in zip(table["repository"].to_pylist(), table["number"].to_pylist(), strict=True):
        key = known.get(name) or known.setdefault(name, known_as(name, moved).lower())
        keys.append(key)
        buckets.append(crc32(f"{key}#{number}".encode()) % count)
        kept.append(wanted.all or key in wanted.repositories or (key, number) in wanted.places)
    mask = pa.array(kept, pa.bool_())
    tally.rows_in += len(kept)
    tally.drop("event_of_repository_without_duplicates", len(kept) - sum(kept))
    column = pa.field("key", pa.string(), nullable=False)
    return table.append_column(column, pa.array(keys, pa.string())).filter(mask), pa.array(buckets).filter(mask)


def _size(shard: Path) -> int:
    found = pq.read_metadata(shard)
    return sum(found.row_group(at).total_byte_size for at in range(found.num_row_groups))


def _merged(
    repository: str, number: int, events: Iterator[Row], moved: Mapping[str, str], tally: Tally
) -> Issue | None:
    """One issue of its events in the order of their time: of each field the last word counts."""
    issue: Row = {}
    comments: dict[Any, Row] = {}
    closings: list[Row] = []
    gone, before, count = "", "", 0
    for row in events:
        count += 1
        if row["event"] and row["event"] == before:  # it stands in two files
            continue
        before = row["event"]
        issue |= json.loads(row["issue"]) if row["issue"] else {}
        kind, _, action = row["action"].partition("_")
        if kind == "comment" and row["comment"]:
            _take_comment(comments, json.loads(row["comment"]), deleted=action == "deleted")
        elif kind == "issue" and action in ("closed", "reopened"):
            gone = ""
            at = row["at"].isoformat() if row["at"] else None
            issue |= {} if row["issue"] else {"state": "closed" if action == "closed" else "open", "closed_at": at}
            if action == "closed":
                closings.append({"event": "closed", "actor": {"login": row["actor"]}, "created_at": at})
        elif kind == "issue" and action in ("transferred", "deleted"):
            gone = action
    if gone or "title" not in issue:
        tally.drop(f"issue_{gone}" if gone else "issue_without_snapshot", count)
        return None
    found = {"issue": issue | {"repository": repository}, "events": closings, "comments": _in_order(comments)}
    try:
        return issue_of(found, f"{repository}#{number}", moved, tally)
    except InputError:  # what the archive holds isn't the user's to mend
        tally.drop("issue_unreadable", count)
        return None


def _take_comment(comments: dict[Any, Row], comment: Row, *, deleted: bool) -> None:
    """Keep a comment's last edit. Without an id, what differs in anything is another comment."""
    key = comment.get("id") or json.dumps(comment, sort_keys=True)
    known = comments.get(key)
    if deleted:
        comments[key] = {"body": None}
    elif not known or (known["body"] is not None and _edited(comment) >= _edited(known)):
        comments[key] = (known or {}) | comment


def _edited(comment: Row) -> str:
    return str(comment.get("updated_at") or comment.get("created_at") or "")


def _in_order(comments: Mapping[Any, Row]) -> list[Row]:
    found = [(str(row.get("created_at") or ""), str(key), row) for key, row in comments.items()]
    return [row for *_, row in sorted(found, key=lambda entry: entry[:2]) if row["body"] is not None]
