"""Collecting from a local GitHub: the records that a dump gives, and all that its searches can find."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from stscurate.errors import InputError
from stscurate.records import Tally
from stscurate.sources.collect import collect_issues
from stscurate.sources.github import make_plans
from stscurate.sources.github.search import Window, find_issues
from stscurate.sources.lists import Listed, read_opt_out
from stscurate.store import Run
from tests.local_github import LocalGitHub, faults
from tests.local_github.asking import TOKEN
from tests.local_github.limits import FakeClock
from tests.sources.collecting import INKPOT, LABELS, MADE, TIDEPOOL, client, collected, issues_of, links_of

pytestmark = pytest.mark.usefixtures("github_schema")

# -- what is collected


def test_the_records_are_those_of_a_dump_of_the_same_issues(hub: LocalGitHub, tmp_path: Path) -> None:
    names = [home.name for home in hub.store.repositories.values()]
    rows = []
    for home in hub.store.repositories.values():
        for number, issue in home.issues.items():
            if not issue.pull_request:
                place = f"{hub.url}/repos/{home.name}/issues/{number}"
                found, events = (
                    requests.get(url, headers=TOKEN, timeout=9).json() for url in (place, f"{place}/timeline")
                )
                rows.append(json.dumps({"issue": found | {"repository": home.name}, "events": events}))
    (tmp_path / "dump.jsonl").write_text("\n".join(rows))
    with Run.open(tmp_path / "dump") as run:
        collect_issues(run, tmp_path / "dump.jsonl")
    collected(hub, tmp_path / "github", names)
    dump, github = issues_of(tmp_path / "dump"), issues_of(tmp_path / "github")
    assert len(github) == 124
    for key, row in github.items():
        # REST and GraphQL give an issue's labels in an order of their own
        assert row | {"source": "", "labels": sorted(row["labels"])} == dump[key] | {
            "source": "",
            "labels": sorted(dump[key]["labels"]),
        }
    assert links_of(tmp_path / "github") == links_of(tmp_path / "dump")
    assert len(links_of(tmp_path / "github")) > 40


def test_search_finds_every_duplicate_that_it_can_see_with_its_original(
    large: LocalGitHub, made: Any, tmp_path: Path
) -> None:
    entry = collected(large, tmp_path / "run", [MADE])
    with client(large) as github:
        (plan,) = make_plans(github, [Listed(MADE, LABELS)], negatives=1)
    assert plan.way == "search"
    links, issues = links_of(tmp_path / "run"), issues_of(tmp_path / "run")
    for (_, duplicate), (_, canonical) in made.duplicates.items():
        if made.shown_by[MADE, duplicate] != "event":
            ((target, evidence, tier),) = links[f"{MADE}#{duplicate}"]
            assert target == f"{MADE}#{canonical}"
            assert target in issues
            assert evidence == ("event" if (MADE, duplicate) in made.marks else "comment")
            assert tier == (2 if made.shown_by[MADE, duplicate] == "label" else 1)
    assert entry.tally.counts["fetched"]["for_negatives"] >= len(links) - 3
    assert len(issues) < 150  # of 600


def test_a_repository_that_is_small_is_swept_whole(hub: LocalGitHub, tmp_path: Path) -> None:
    collected(hub, tmp_path / "run", [TIDEPOOL])
    assert len(issues_of(tmp_path / "run")) == 30
    assert hub.requests() == 3  # counting, the schema, one page


def test_marks_are_replayed_in_their_order(hub: LocalGitHub, tmp_path: Path) -> None:
    """12 is marked, 15 too but taken back, which takes its comment's word away; 4 is marked by a pull request."""
    before = links_of_sample(hub, tmp_path)
    assert before[f"{TIDEPOOL}#15"] == [(f"{TIDEPOOL}#5", "comment", 1)]
    at = datetime(2025, 1, 1, tzinfo=UTC)
    pull_request = next(
        issue.number for issue in hub.store.repositories[TIDEPOOL].issues.values() if issue.pull_request
    )
    hub.store.unmark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 4), at=at)
    hub.store.mark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 4), at=at - timedelta(days=1))
    hub.store.mark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 2), at=at)
    hub.store.mark_duplicate((TIDEPOOL, 15), (TIDEPOOL, 5), at=at)
    hub.store.unmark_duplicate((TIDEPOOL, 15), (TIDEPOOL, 5), at=at + timedelta(days=1))
    hub.store.mark_duplicate((TIDEPOOL, 4), (TIDEPOOL, pull_request), at=at)
    after = links_of_sample(hub, tmp_path)
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed == {f"{TIDEPOOL}#12", f"{TIDEPOOL}#15"}
    assert after[f"{TIDEPOOL}#12"] == [(f"{TIDEPOOL}#2", "event", 1)]
    assert f"{TIDEPOOL}#15" not in after


def links_of_sample(hub: LocalGitHub, folder: Path) -> dict[str, list[tuple[str, str, int]]]:
    out = folder / str(hub.requests())
    collected(hub, out, [TIDEPOOL])
    return links_of(out)


def test_an_original_that_is_gone_leaves_a_mark_without_a_target(hub: LocalGitHub, tmp_path: Path) -> None:
    hub.store.mark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 2), at=datetime(2025, 1, 1, tzinfo=UTC))
    hub.store.delete((TIDEPOOL, 2))
    entry = collected(hub, tmp_path / "run", [TIDEPOOL])
    assert entry.tally.counts["events"] == {"canonical_gone": 1}
    assert links_of(tmp_path / "run")[f"{TIDEPOOL}#12"] == [(f"{TIDEPOOL}#2", "comment", 1)]
    assert entry.tally.counts["originals"]["deleted"] == 1


def test_a_mark_alone_is_dropped_with_its_original_and_counted(hub: LocalGitHub, tmp_path: Path) -> None:
    """Of two issues that only events call duplicates, one's original is deleted and the other's moved away."""
    first, second, third, fourth = (hub.store.insert(TIDEPOOL, title=f"Number {at}").number for at in range(4))
    hub.store.mark_duplicate((TIDEPOOL, first), (TIDEPOOL, second))
    hub.store.mark_duplicate((TIDEPOOL, third), (TIDEPOOL, fourth))
    collected(hub, tmp_path / "before", [TIDEPOOL])
    assert links_of(tmp_path / "before")[f"{TIDEPOOL}#{first}"] == [(f"{TIDEPOOL}#{second}", "event", 1)]
    hub.store.delete((TIDEPOOL, second))
    hub.store.transfer((TIDEPOOL, fourth), "some/where")
    entry = collected(hub, tmp_path / "run", [TIDEPOOL])
    assert not {f"{TIDEPOOL}#{first}", f"{TIDEPOOL}#{third}"} & links_of(tmp_path / "run").keys()
    assert entry.tally.counts["events"]["canonical_gone"] == 2


def test_a_server_that_knows_duplicate_of_is_asked_for_it(sample_issues: Path, tmp_path: Path) -> None:
    """Where the event is too old to show, GitHub's own field names the original."""
    with LocalGitHub(clock=FakeClock(), duplicate_of=True) as hub:
        hub.seed(sample_issues)
        hub.store.mark_duplicate((TIDEPOOL, 12), (TIDEPOOL, 5), at=datetime(2025, 1, 1, tzinfo=UTC))
        hub.fail(faults.put("timelineItems", None), every=1)
        collected(hub, tmp_path / "run", [TIDEPOOL])
    assert links_of(tmp_path / "run")[f"{TIDEPOOL}#12"] == [(f"{TIDEPOOL}#5", "state_reason", 1)]


@pytest.mark.parametrize("known", ["both", "issue", "closing"])
def test_the_closing_that_holds_names_the_original_where_a_server_knows_it(
    sample_issues: Path, tmp_path: Path, known: str
) -> None:
    """12 is closed as a duplicate of 5, then of 2; 15 of 5, but is open again; 4 of what is gone by then."""
    with LocalGitHub(clock=FakeClock(), duplicate_of=True) as hub:
        hub.seed(sample_issues)
        lost = hub.store.insert(TIDEPOOL).number
        for number, canonical in ((12, 5), (12, 2), (15, 5), (4, lost)):
            hub.store.close((TIDEPOOL, number), reason="duplicate", canonical=(TIDEPOOL, canonical))
        hub.store.reopen((TIDEPOOL, 15))
        hub.store.delete((TIDEPOOL, lost))
        for kind in {"issue", "closing"} - {known}:
            if known != "both":
                hub.fail(faults.put(kind, {"fields": []}), when=lambda asked: "__type" in asked.query)
        hub.store.issue((TIDEPOOL, 12)).events = [
            event for event in hub.store.issue((TIDEPOOL, 12)).events if event.kind == "ClosedEvent"
        ]
        collected(hub, tmp_path / "run", [TIDEPOOL])
        assert ("ClosedEvent { duplicateOf" in hub.log[-1].query) == (known != "issue")
    found = links_of(tmp_path / "run")
    assert (found.get(f"{TIDEPOOL}#12") == [(f"{TIDEPOOL}#2", "state_reason", 1)]) == (known != "issue")
    assert all(evidence != "state_reason" for key in (4, 15) for _, evidence, _ in found.get(f"{TIDEPOOL}#{key}", []))


def test_what_is_gone_is_counted_by_why(large: LocalGitHub, made: Any, tmp_path: Path) -> None:
    """Originals that only comments name: one deleted, one moved, one converted; a candidate that is locked."""
    said = [duplicate for duplicate, kind in made.shown_by.items() if kind == "comment"]
    originals = list(dict.fromkeys(made.duplicates[duplicate] for duplicate in said))
    large.store.delete(originals[0])
    large.store.transfer(originals[1], "made/other")
    large.store.convert_to_discussion(originals[2])
    large.store.edit(said[0], locked=True)
    entry = collected(large, tmp_path / "run", [MADE])
    assert entry.tally.counts["originals"]["deleted"] == entry.tally.counts["originals"]["transferred"] == 1
    assert entry.tally.dropped == {"converted_to_discussion": 1}
    assert entry.tally.counts["issues"] == {"locked": 1}


def test_an_original_of_another_listed_repository_is_fetched_and_of_others_counted(
    hub: LocalGitHub, tmp_path: Path
) -> None:
    hub.store.comment((TIDEPOOL, 4), f"Duplicate of {INKPOT}#6", author="somebody", association="OWNER")
    hub.store.comment((TIDEPOOL, 5), "Duplicate of some/where#6", author="somebody", association="OWNER")
    entry = collected(hub, tmp_path / "run", [TIDEPOOL, INKPOT], max_issues=5)
    assert f"{INKPOT}#6" in issues_of(tmp_path / "run")
    assert entry.tally.counts["originals"]["in_repositories_not_listed"] == 1
    assert entry.outputs["issues"]["rows"] <= 10 + entry.tally.counts["originals"]["fetched"]


def test_a_renamed_repository_goes_by_its_present_name(hub: LocalGitHub, tmp_path: Path) -> None:
    collected(hub, tmp_path / "old", [TIDEPOOL])
    hub.store.comment((TIDEPOOL, 4), f"Duplicate of {TIDEPOOL}#5", author="somebody", association="OWNER")
    hub.store.rename(TIDEPOOL, "lanternfish-db/rockpool")
    collected(hub, tmp_path / "new", [TIDEPOOL, "Lanternfish-DB/rockpool"])
    old, new = links_of(tmp_path / "old"), links_of(tmp_path / "new")
    assert len(issues_of(tmp_path / "new")) == 30
    assert new.pop("lanternfish-db/rockpool#4") == [("lanternfish-db/rockpool#5", "comment", 1)]
    assert json.dumps(new) == json.dumps(old).replace("tidepool", "rockpool")


def test_who_wants_to_be_left_out_is(hub: LocalGitHub, tmp_path: Path) -> None:
    whole = collected(hub, tmp_path / "whole", [TIDEPOOL, INKPOT])
    user = hub.store.issue((TIDEPOOL, 12)).comments[-1].author
    assert user
    (tmp_path / "out.txt").write_text(f"# asked on Monday\n@{user.upper()}\n{INKPOT}\n{TIDEPOOL}#5\n")
    opt_out = read_opt_out(tmp_path / "out.txt")
    entry = collected(hub, tmp_path / "run", [TIDEPOOL, INKPOT], opt_out=opt_out)
    own = sum(issue.author == user for issue in hub.store.repositories[TIDEPOOL].issues.values())
    assert entry.tally.dropped == {"opted_out": 1 + own}
    assert entry.outputs["issues"]["rows"] == 29 - own
    said = sum(
        comment.author == user
        for issue in hub.store.repositories[TIDEPOOL].issues.values()
        for comment in issue.comments
    )
    assert entry.tally.counts["comments"]["opted_out"] >= said - 3 > 0
    assert user not in (tmp_path / "run" / "manifest.json").read_text()
    assert whole.key != entry.key


def test_long_threads_and_timelines_are_read_to_their_end(hub: LocalGitHub, tmp_path: Path) -> None:
    place = (TIDEPOOL, 4)
    for day in range(230):
        at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=day)
        hub.store.comment(place, f"word {day}", at=at, author="somebody")
        hub.store.event(place, "ClosedEvent", at=at)
    hub.store.comment(place, "Duplicate of #2", at=at + timedelta(seconds=5), author="somebody", association="OWNER")
    before = len(hub.store.issue(place).comments)
    entry = collected(hub, tmp_path / "run", [TIDEPOOL])
    assert links_of(tmp_path / "run")[f"{TIDEPOOL}#4"] == [(f"{TIDEPOOL}#2", "comment", 1)]
    read = sum(
        len(issue.comments) for issue in hub.store.repositories[TIDEPOOL].issues.values() if not issue.pull_request
    )
    assert entry.tally.counts["comments"]["read"] == read > before > 230


def test_odd_values_are_taken_calmly(hub: LocalGitHub, tmp_path: Path) -> None:
    longest = "語" * 65_536
    hub.store.edit((TIDEPOOL, 2), body=longest, title="\U0001f980 null \0 byte")
    out = []
    for field in ("author", "body", "stateReason", "labels"):
        hub.rules.clear()
        hub.fail(faults.put(field, {"stateReason": "BRAND_NEW"}.get(field), every=5))
        out.append(tmp_path / field)
        collected(hub, out[-1], [TIDEPOOL])
        assert len(issues_of(out[-1])) == 30
    assert "ghost" in {row["author"] for row in issues_of(out[0]).values()}
    assert issues_of(out[0])[f"{TIDEPOOL}#2"]["body"] == longest
    assert "" in {row["body"] for row in issues_of(out[1]).values()}
    assert "brand_new" in {row["state_reason"] for row in issues_of(out[2]).values()}


def test_a_repository_that_is_not_there_is_named(hub: LocalGitHub, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no/where"):
        collected(hub, tmp_path / "run", [TIDEPOOL, "no/where"])


# -- search


def test_more_than_search_shows_is_found_by_windows() -> None:
    with LocalGitHub(clock=FakeClock()) as hub:
        start = datetime(2020, 1, 1, tzinfo=UTC)
        for at in range(2_300):  # most of them within a few hours
            created = start + (timedelta(days=at) if at < 300 else timedelta(days=300, seconds=7 * at))
            hub.store.insert(MADE, labels=["duplicate"], created_at=created)
        window = Window(start, start + timedelta(days=400))
        with client(hub) as github:
            tally = Tally()
            hits = find_issues(github, f'repo:{MADE} is:issue label:"duplicate"', window, 2_300, tally)
        assert [hit.number for hit in hits] == list(range(1, 2_301))
        assert tally.counts == {}
        assert hub.points() < 50


def test_a_search_that_shows_less_than_it_counts_is_asked_again_in_halves(hub: LocalGitHub) -> None:
    words = f"repo:{TIDEPOOL} is:issue"
    window = Window(datetime(2020, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
    with client(hub) as github:
        whole = find_issues(github, words, window, 30, Tally())
    hub.fail(faults.put("nodes", []), at=1)
    with client(hub) as github:
        tally = Tally()
        assert find_issues(github, words, window, 30, tally) == whole
        assert len(whole) == 30
        assert tally.counts == {}
    hub.fail(faults.put("issueCount", 31), every=1)
    with client(hub) as github:
        assert find_issues(github, words, window, 30, tally) == whole
    assert tally.counts["search"]["incomplete"] > 0
