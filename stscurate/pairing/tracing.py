"""One row's whole story: its issues, the evidence, what joined them, votes, score, and why it was kept or dropped."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stscurate.errors import InputError
from stscurate.manifest import read_manifest
from stscurate.pairing.reasons import about_link, about_one, about_two
from stscurate.pairing.replay import Replay, link_rows
from stscurate.store import Run

_ISSUE = re.compile(r"(?:https://github\.com/)?([A-Za-z\d][A-Za-z\d-]*/[\w.-]+)(?:#|/issues/)([1-9]\d*)", re.ASCII)
_VOTE = ("annotator", "scoring", "order", "sample", "raw", "scale", "entropy", "missing_mass", "cut", "answer", "error")

Story = dict[str, Any]


def trace(run: Run, row: str, *, published: Sequence[Path] = ()) -> Story:
    """The story of a row as plain data.

    row: a pair_id or how it begins, if no other begins so; two issues, "owner/name#12 owner/name#34"; or one issue.
    published: folders to look for the pair in, beside those in the run's own folder.
    InputError where the run has no such row.
    """
    issues = [f"{match[1]}#{match[2]}" for match in _ISSUE.finditer(row)]
    rest = _ISSUE.sub("", row).strip(" ,;~\t")
    if issues and not rest and len(issues) <= 2:
        return _of_issues(run, issues, published)
    pair = _by_id(run, row.strip())
    story: Story = {"row": row, "pair": _without_texts(pair), "texts": _texts(pair), "kept": True}
    if pair["id1"] and pair["id2"] and run.has("issues") and run.has("links"):
        story = _of_issues(run, [pair["id1"], pair["id2"]], published) | {"row": row}
    else:
        story["why"] = f"it came with the data ({pair['origin']})" + ("" if pair["split"] else "; nobody has split it")
    return story | _labels(run, pair, published)


def _of_issues(run: Run, names: Sequence[str], published: Sequence[Path]) -> Story:
    replay = Replay(run)
    lower = [name.lower() for name in names]
    links = link_rows(replay.table, lower)
    known = [name in replay.corpus.index for name in lower]
    for name, there in zip(names, known, strict=True):
        if not there and not any(name.lower() in _sides(link) for _, link in links):
            counts = run.entries["issues"].tally.dropped if "issues" in run.entries else {}
            dropped = ", ".join(f"{reason} {issues:,}" for reason, issues in sorted(counts.items()))
            raise InputError(
                f"{run.folder} has no issue {name}, and no link names it (left out when issues were collected: "
                f"{dropped or 'nothing'}). Issues look like {replay.corpus.ids[0]}; `stscurate show` lists them."
            )
    story: Story = {"row": " ".join(names), "issues": _issues(run, lower)}
    if len(names) == 2:
        both = [(row, link) for row, link in links if _sides(link) == set(lower)]
        story["links"] = [about_link(replay, row, link) for row, link in both]
        pair = _pair_of(run, lower)
        story["pair"] = pair and _without_texts(pair)
        story |= about_two(replay, lower, pair) if all(known) else {"kept": False, "why": _absent(names, known)}
        return story | (_labels(run, pair, published) if pair else {})
    story["links"] = [about_link(replay, row, link) for row, link in links]
    if not known[0]:
        return story | {"kept": False, "why": _absent(names, known)}
    return story | about_one(replay, lower[0], _pairs_of(run, lower[0]))


def _issues(run: Run, names: Sequence[str]) -> list[Story]:
    wanted = {name: place for place, name in enumerate(names)}
    found: dict[int, Story] = {}
    for batch in run.batches("issues"):
        keys = [
            f"{row['repository']}#{row['number']}".lower() for row in batch.select(["repository", "number"]).to_pylist()
        ]
        for at, key in enumerate(keys):
            if key in wanted:
                found[wanted[key]] = _issue(batch.slice(at, 1).to_pylist()[0])
    return [found[place] for place in sorted(found)]


def _issue(row: Mapping[str, Any]) -> Story:
    names = (
        "title",
        "url",
        "state",
        "state_reason",
        "labels",
        "created_at",
        "closed_at",
        "author_association",
        "source",
    )
    return {
        "id": f"{row['repository']}#{row['number']}",
        **{name: row[name] for name in names},
        "raw_chars": len(row["title"]) + len(row["body"]),
        "clean_chars": len(row["clean_text"]),
        "cleaning": _cleaning(f"{row['title']}\n{row['body']}", row["clean_text"]),
    }


def _cleaning(raw: str, clean: str) -> Story:
    """What cleaning did, by lines: how many are as they were, were taken out or rewritten, and the first of them."""
    before = Counter(line.strip() for line in raw.splitlines() if line.strip())
    after = Counter(line.strip() for line in clean.splitlines() if line.strip())
    out, new = before - after, after - before
    return {
        "lines": before.total(),
        "taken_out_or_rewritten": out.total(),
        "new_or_rewritten": new.total(),
        "first_out": [line[:100] for line in list(out)[:3]],
        "first_new": [line[:100] for line in list(new)[:3]],
    }


def _labels(run: Run, pair: Mapping[str, Any], published: Sequence[Path]) -> Story:
    """Votes, score, and where the pair was published."""
    key = pair["pair_id"]
    votes = _rows(run, "votes", pc.equal(pc.field("pair_id"), key)) if run.has("votes") else []
    scores = _rows(run, "scores", pc.equal(pc.field("pair_id"), key)) if run.has("scores") else []
    order = ("annotator", "scoring", "order", "sample")
    votes.sort(key=lambda vote: [str(vote[name]) for name in order])
    return {
        "votes": [{name: vote.get(name) for name in _VOTE} for vote in votes],
        "score": scores[0] if scores else None,
        "published": list(_published(run, key, published)),
    }


def _published(run: Run, key: str, folders: Sequence[Path]) -> Iterator[Story]:
    inside = [
        path.parent for path in sorted(run.folder.glob("*/manifest.json")) if "publish" in read_manifest(path.parent)
    ]
    for folder in dict.fromkeys([*inside, *folders]):
        entry = read_manifest(folder).get("publish")
        if entry is None:
            raise InputError(f"{folder} isn't a published set: give a folder that stscurate publish has written.")
        current = entry.key["inputs"].get("pairs") == run.fingerprint("pairs")
        found: Story = {"folder": str(folder), "of_these_pairs": current, "split": None, "row": None}
        for path in sorted((folder / "data" / "provenance").glob("*.parquet")):
            ids = pq.read_table(path, columns=["pair_id"], partitioning=None)["pair_id"]
            place = pc.index(ids, key).as_py()
            if place >= 0:
                found |= {"split": path.name.split("-")[0], "file": path.name, "row": place}
        yield found


def _by_id(run: Run, key: str) -> dict[str, Any]:
    example = "none are there"
    if run.has("pairs"):
        found = (
            _pairs(run, pc.equal(pc.field("pair_id"), key)) or _pairs(run, pc.starts_with(pc.field("pair_id"), key))
            if key
            else []
        )
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(pair["pair_id"] for pair in found[:3])
            raise InputError(f"{key} begins {len(found):,} pairs ({names}, ...): give more of the pair_id.")
        first = next(iter(run.batches("pairs", columns=["pair_id", "id1", "id2"])), None)
        row = first.slice(0, 1).to_pylist()[0] if first and len(first) else None
        example = f"the first is {row['pair_id']}" if row else example
        example += f", of {row['id1']} {row['id2']}" if row and row["id1"] and row["id2"] else ""
    raise InputError(
        f"{run.folder} has no pair {key!r:.80}: give a pair_id or how it begins, one issue as owner/name#12, or two "
        f"({example})."
    )


def _pair_of(run: Run, names: Sequence[str]) -> dict[str, Any] | None:
    if not run.has("pairs"):
        return None
    one, other = (pc.utf8_lower(pc.field(side)) for side in ("id1", "id2"))
    a, b = names
    found = _pairs(run, (pc.equal(one, a) & pc.equal(other, b)) | (pc.equal(one, b) & pc.equal(other, a)))
    return found[0] if found else None


def _pairs_of(run: Run, name: str) -> list[dict[str, Any]]:
    one, other = (pc.equal(pc.utf8_lower(pc.field(side)), name) for side in ("id1", "id2"))
    return _pairs(run, one | other)


def _pairs(run: Run, where: pc.Expression) -> list[dict[str, Any]]:
    return _rows(run, "pairs", where)


def _rows(run: Run, table: str, where: pc.Expression) -> list[dict[str, Any]]:
    """The rows for which an expression holds, part by part: a table needn't fit into memory."""
    return [row for batch in run.batches(table) for row in pa.Table.from_batches([batch]).filter(where).to_pylist()]


def _without_texts(pair: Mapping[str, Any]) -> Story:
    return {name: value for name, value in pair.items() if name not in ("text1", "text2")}


def _texts(pair: Mapping[str, Any]) -> list[Story]:
    return [{"chars": len(pair[side]), "begins": " ".join(pair[side].split())[:200]} for side in ("text1", "text2")]


def _sides(link: Mapping[str, Any]) -> set[str]:
    return {
        f"{link['repository']}#{link['duplicate']}".lower(),
        f"{link['canonical_repository']}#{link['canonical']}".lower(),
    }


def _absent(names: Sequence[str], known: Sequence[bool]) -> str:
    gone = [name for name, there in zip(names, known, strict=True) if not there]
    return f"{' and '.join(gone)} isn't among the run's issues; only links name it"
