"""Made-up repositories have the duplicates that they were asked for, the same each time; dumps become issues."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from stscurate.methods.references import find_claims, mark_references
from tests.local_github.invented import make_repository
from tests.local_github.searching import search_issues
from tests.local_github.seeds import RUST, fill, read_dump
from tests.local_github.store import Store


def test_duplicates_show_by_what_was_asked_for() -> None:
    made = make_repository("a/b", issues=4_000, duplicate_rate=0.1, seed=3)
    assert made == make_repository("a/b", issues=4_000, duplicate_rate=0.1, seed=3)
    assert made.issues != make_repository("a/b", issues=4_000, duplicate_rate=0.1, seed=4).issues
    assert len(made.duplicates) == pytest.approx(400, abs=60)
    shares = {kind: count / len(made.duplicates) for kind, count in Counter(made.shown_by.values()).items()}
    wanted = {"event": 0.1, "label": 0.1, "comment": 0.3, "reason": 0.2, "all": 0.3}
    assert shares == pytest.approx(wanted, abs=0.08)
    store = Store(lambda: datetime.now(UTC))
    fill(store, made.issues, made.marks)
    found = {kind: {place for place, shown in made.shown_by.items() if shown == kind} for kind in wanted}
    assert places(store, "label:duplicate") == found["label"]
    assert places(store, "reason:duplicate") == found["reason"]
    assert places(store, '"duplicate of" in:comments') >= found["comment"] | found["all"]
    assert not places(store, '"duplicate of" in:comments') & (found["event"] | found["reason"] | found["label"])
    for place, kind in made.shown_by.items():
        events = [event.canonical for event in store.issue(place).events if event.kind == "MarkedAsDuplicateEvent"]
        named = {(event.repository.name, event.number) for event in events if event and event.number != place[1]}
        assert (made.duplicates[place] in named) == (kind in ("event", "reason", "all"))
        claims = [
            claim
            for comment in store.issue(place).comments
            for claim in find_claims(*mark_references(comment.body or "", "a/b"))
        ]
        assert bool(claims) == (kind in ("label", "comment", "all"))


def places(store: Store, query: str) -> set[tuple[str, int]]:
    return {(issue.repository.name, issue.number) for issue in search_issues(store, query).page(first=9_999).items}


@pytest.mark.skipif(not RUST.exists(), reason=f"{RUST.name} isn't beside the project")
def test_the_rust_issues_can_be_served() -> None:
    store = Store(lambda: datetime.now(UTC))
    fill(store, read_dump(RUST, at_most=300))
    issue = store.issue(("rust-lang/rust", 1))
    assert (issue.state, len(issue.comments), len(issue.events)) == ("closed", 5, 1)
    assert len(store.repositories["rust-lang/rust"].issues) == 300
