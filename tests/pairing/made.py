"""Issues and links made for the tests of pairing, and what came of them."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stscurate.manifest import Entry
from stscurate.pairing import make_pairs
from stscurate.records import Tally, from_rows
from stscurate.store import Run

Rows = list[dict[str, Any]]


def issue(number: int, text: str | None = None, *, repository: str = "o/r", **fields: Any) -> dict[str, Any]:
    row = {
        "repository": repository,
        "number": number,
        "title": "t",
        "body": "b",
        "clean_text": f"Issue {repository} {number} is about the subject number {number}" if text is None else text,
        "state": "closed",
        "state_reason": None,
        "labels": [],
        "author": f"user-{number:010x}",
        "author_association": None,
        "created_at": datetime.fromtimestamp(1_700_000_000 + 86_400 * number, UTC),
        "closed_at": None,
        "url": None,
        "source": "test",
        "fetched_at": None,
        "mentions": [],
    }
    return row | fields


def link(duplicate: int | str, canonical: int | str, tier: int = 1) -> dict[str, Any]:
    (r1, n1), (r2, n2) = (
        name.split("#") if isinstance(name, str) else ("o/r", str(name)) for name in (duplicate, canonical)
    )
    row = {"repository": r1, "duplicate": int(n1), "canonical_repository": r2, "canonical": int(n2)}
    return row | {"evidence": "comment", "tier": tier, "author_association": None, "at": None}


def paired(out: Path, issues: Rows, links: Rows, **options: Any) -> tuple[Entry, Rows]:
    with Run.open(out) as run:
        stage = run.stage("issues", tables=["issues", "links"], inputs={}, settings={})
        if not stage.entry:
            stage.write(0, {"issues": from_rows(issues, "issues"), "links": from_rows(links, "links")}, Tally())
            stage.commit()
        return make_pairs(run, **options), run.table("pairs").to_pylist()


def positives(rows: Rows) -> dict[tuple[str, str], int]:
    return {(row["id1"], row["id2"]): row["tier"] for row in rows if row["label"] == 1}


def short(rows: Rows) -> dict[tuple[int, int], int]:
    return {(int(a.split("#")[1]), int(b.split("#")[1])): tier for (a, b), tier in positives(rows).items()}


def made_up(seed: int, n: int = 400) -> tuple[Rows, Rows]:
    """Issues of two repositories with common words, copies, references and duplicate links of every shape."""
    generator = random.Random(seed)
    words = [f"word{i}" for i in range(60)]
    rows: Rows = []
    links: Rows = []
    for number in range(1, n):
        repository = generator.choice(["o/r", "x/y"])
        text = " ".join(generator.choices(words, k=12))
        if rows and generator.random() < 0.1:
            text = generator.choice(rows)["clean_text"]
        if rows and generator.random() < 0.4:
            original = generator.choice(rows)
            links.append(link(f"{repository}#{number}", f"{original['repository']}#{original['number']}"))
        mentions = [f"{row['repository']}#{row['number']}" for row in rows if generator.random() < 0.02]
        rows.append(issue(number, text, repository=repository, mentions=mentions))
    return rows, links


def words(generator: random.Random, n: int = 30) -> str:
    return " ".join(f"w{generator.randrange(2_000)}" for _ in range(n))


def of_many_repositories(generator: random.Random, n: int = 60) -> tuple[Rows, Rows]:
    """Repositories of every size with duplicates, some of them across repositories."""
    issues, links = [], []
    for at in range(n):
        name = f"o/r{at}"
        for number in range(1, 2 + 2 * int(generator.lognormvariate(2.5, 1))):
            issues.append(issue(number, words(generator), repository=name))
            if number % 2 == 0:
                links.append(link(f"{name}#{number}", f"{name}#{number - 1}"))
        issues.append(issue(1_000, words(generator), repository=name))
    links += [link(f"o/r{at}#1000", f"o/r{at - 1}#1000") for at in range(1, 10)]
    return issues, links
