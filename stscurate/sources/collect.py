"""The stage `issues`: from a dump to the tables of issues and of duplicate links."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from stscurate.disk import fingerprint
from stscurate.manifest import Entry
from stscurate.methods.markdown import without_code
from stscurate.methods.references import find_references, gives_label_away
from stscurate.methods.templates import Template, templates_of, without_template
from stscurate.methods.texts import clean_issue
from stscurate.progress import Progress, silent
from stscurate.records import Tally, from_rows
from stscurate.sources.comments import Link, duplicate_links
from stscurate.sources.dumps import Issue, read_bodies, read_issues
from stscurate.store import Run

_SHARD = 2_000  # issues
_NO_TEMPLATE = Template({})


class Made(NamedTuple):
    """An issue as a row of the table `issues`, and its rows of `links`."""

    issue: dict[str, Any]
    links: list[dict[str, Any]]


def collect_issues(
    run: Run, path: Path, *, moved: Mapping[str, str] | None = None, progress: Progress = silent
) -> Entry:
    """Read the issues of a file or folder (see `dumps`) into the run's tables `issues` and `links`.

    moved: old -> new name of repositories that were renamed, so that references by the old name are understood.
    InputError where the path, a row or a line is at fault.
    """
    moved = {old.lower(): new for old, new in sorted((moved or {}).items())}
    name = path.resolve().name
    if not path.exists():
        next(read_issues(path, size=_SHARD))  # says what is wrong
    stage = run.stage(
        "issues",
        tables=["issues", "links"],
        inputs={name: fingerprint(path)},
        settings={"source": name, "moved": moved},
    )
    if stage.entry:
        return stage.entry
    done = 0
    templates: Mapping[str, Template] | None = None
    for shard, (issues, tally) in enumerate(read_issues(path, size=_SHARD, moved=moved)):
        if not stage.has(shard):
            if templates is None:  # the file is read twice: what many issues share shows once all were seen
                templates = templates_of(read_bodies(path, moved=moved))
            made = [rows_of(issue, f"dump:{name}", moved, tally) for issue in issues]
            stage.write(shard, tables_of(made, tally, templates), tally)
        done += len(issues)
        progress("issues", done, None)
    return stage.commit()


def rows_of(issue: Issue, source: str, moved: Mapping[str, str], tally: Tally) -> Made:
    """The rows of an issue; what is left out is counted. moved: old names in lower case."""
    return Made(_row(issue, source, moved, tally), _link_rows(issue, moved, tally))


def tables_of(
    made: Sequence[Made], tally: Tally, templates: Mapping[str, Template] | None = None
) -> dict[str, pa.Table]:
    """The tables `issues` and `links` of some issues, in their order, without what issue templates put into the texts.

    templates: by repository, of `templates_of`; of these issues alone where they aren't given, as is right for a
    repository whose issues are all here.
    """
    if templates is None:
        templates = templates_of((each.issue["repository"], each.issue["body"]) for each in made)
    issues = [_without_template(each.issue, templates, tally) for each in made]
    links = [row for each in made for row in each.links]
    return {"issues": from_rows(issues, "issues"), "links": from_rows(links, "links")}


def _without_template(row: dict[str, Any], templates: Mapping[str, Template], tally: Tally) -> dict[str, Any]:
    text = without_template(row["clean_text"], templates.get(row["repository"], _NO_TEMPLATE))
    if text != row["clean_text"]:
        tally.count("cleaned", "template")
    if row["body"].strip() and "\n" not in text:
        tally.count("cleaned", "nothing_but_title_left" if text else "nothing_left")
    return {**row, "clean_text": text}


def _row(issue: Issue, source: str, moved: Mapping[str, str], tally: Tally) -> dict[str, Any]:
    cleaned = clean_issue(issue.title, issue.body)
    for what in cleaned.removed:
        tally.count("cleaned", what)
    for what in cleaned.replaced:
        tally.count("replaced", what)
    if gives_label_away(cleaned.text, issue.repository):
        tally.count("texts", "label_in_text")
    tally.count("comments", "read", len(issue.comments))
    return {
        "repository": issue.repository,
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "clean_text": cleaned.text,
        "state": issue.state,
        "state_reason": issue.state_reason,
        "labels": issue.labels,
        "author": issue.author,
        "author_association": issue.association,
        "created_at": issue.created_at,
        "closed_at": issue.closed_at,
        "url": issue.url,
        "source": source,
        "fetched_at": None,  # no result depends on the clock
        "mentions": _mentions(issue, moved),
    }


def _mentions(issue: Issue, moved: Mapping[str, str]) -> list[str]:
    """The other issues that the title, the body or a comment refers to, code left aside."""
    texts = [issue.title, issue.body, *(comment.body for comment in issue.comments)]
    found = {
        (reference.repository, reference.number)
        for text in texts
        if "#" in text or "/issues/" in text or "GH-" in text
        for reference in find_references(without_code(text), issue.repository, moved)
    }
    return [f"{repository}#{number}" for repository, number in sorted(found - {(issue.repository, issue.number)})]


def _link_rows(issue: Issue, moved: Mapping[str, str], tally: Tally) -> list[dict[str, Any]]:
    links = duplicate_links(issue, tally, moved=moved)
    if issue.state_reason == "duplicate" and not links:
        tally.count("links", "closed_as_duplicate_without_target")
    for link in links:
        tally.count("tier", link.tier)
        tally.count("evidence", link.evidence)
    return [_link_row(issue, link) for link in links]


def _link_row(issue: Issue, link: Link) -> dict[str, Any]:
    return {
        "repository": issue.repository,
        "duplicate": issue.number,
        "canonical_repository": link.repository,
        "canonical": link.number,
        "evidence": link.evidence,
        "tier": link.tier,
        "author_association": link.association,
        "at": link.at,
    }
