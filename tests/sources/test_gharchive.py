"""From hours of GH Archive to issues and links: merged by issue, the same after kills and with any workers."""

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import connection
from pathlib import Path
from typing import Any

import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError, StscurateError
from stscurate.manifest import Entry
from stscurate.sources.dumps import placeholder
from stscurate.sources.gharchive import collect_from_archive, is_archive, read_archive
from stscurate.sources.gharchive import merging as merging_module
from stscurate.sources.lists import Listed
from stscurate.store import Run
from tests.sources.archives import (
    REPOSITORY,
    WEB,
    closed,
    commented,
    event,
    hours,
    issue,
    of_2012,
    opened,
    trimmed,
    write,
)

Rows = dict[int, dict[str, Any]]


def collected(folder: Path, source: Path, *, workers: int = 1, **options: Any) -> tuple[Entry, Entry]:
    with Run.open(folder) as run:
        asked = {name: options[name] for name in ("repositories", "opt_out") if name in options}
        return read_archive(run, source, workers=workers, **asked), collect_from_archive(run, **options)


def issues_of(folder: Path) -> Rows:
    return {row["number"]: row for row in Run(folder).table("issues").to_pylist()}


def links_of(folder: Path) -> dict[tuple[int, int], tuple[int, str | None]]:
    rows = Run(folder).table("links").to_pylist()
    return {(row["duplicate"], row["canonical"]): (row["tier"], row["author_association"]) for row in rows}


def test_events_of_an_issue_are_merged_across_hours(tmp_path: Path) -> None:
    read, made = collected(tmp_path / "run", hours(tmp_path / "hours"))
    rows = issues_of(tmp_path / "run")
    assert sorted(rows) == [1, 2, 3, 4]  # 4 was seen by a comment alone
    assert (rows[2]["state"], rows[2]["labels"]) == ("closed", ["duplicate"])
    assert rows[2]["author"] == placeholder("wader")
    assert rows[3]["title"] == "Nesting fails when the tide table is empty"  # the last event's, not the one before
    assert {row["source"] for row in rows.values()} == {"gharchive:hours"}
    assert links_of(tmp_path / "run") == {(2, 1): (1, "MEMBER"), (3, 1): (2, "MEMBER"), (4, 77): (3, "MEMBER")}
    assert made.tally.counts["links"] == {"original_not_in_archive": 1}
    assert made.tally.dropped == {"event_of_repository_without_duplicates": 1}
    assert (read.rows, read.tally.rows_in) == (9, 9)


def test_a_comment_counts_by_its_last_edit_in_whatever_order_it_comes(tmp_path: Path) -> None:
    early = commented(2, "Duplicate of #1", key=7)
    late = commented(2, "Not sure. Related: #1", key=7, updated_at="2015-01-01T18:00:00Z", action="edited")
    gone = commented(3, "Duplicate of #1", key=8, action="deleted")
    for name, events in (("a", (early, late)), ("b", (late, early))):
        write(tmp_path / name / "2015-01-01-15.json.gz", events[0], opened(1), gone)
        write(tmp_path / name / "2015-01-01-16.json.gz", events[1], early)
        collected(tmp_path / f"run-{name}", tmp_path / name)
        assert links_of(tmp_path / f"run-{name}") == {}
        assert 2 in issues_of(tmp_path / f"run-{name}")


def test_without_association_only_whoever_closed_it_has_standing(tmp_path: Path) -> None:
    """Since October 2025: the tier falls to 3 unless the comment's author closed the issue within ten minutes."""
    write(
        tmp_path / "hours" / "2026-01-01-0.json.gz",
        trimmed(commented(2, "Duplicate of #1", key=1, at="2026-01-01T00:10:00Z", by="keeper")),
        trimmed(commented(3, "Duplicate of #1", key=2, at="2026-01-01T00:10:00Z", by="keeper")),
        trimmed(commented(4, "Duplicate of #1", key=3, at="2026-01-01T00:10:00Z", by="passer-by")),
        trimmed(closed(3, at="2026-01-01T00:11:00Z", by="keeper")),
        trimmed(closed(4, at="2026-01-01T00:11:00Z", by="keeper")),
        trimmed(opened(1)),
    )
    collected(tmp_path / "run", tmp_path / "hours")
    assert links_of(tmp_path / "run") == {(2, 1): (3, None), (3, 1): (1, None), (4, 1): (3, None)}


def test_fields_that_a_later_event_lacks_stay_as_they_were(tmp_path: Path) -> None:
    bare = {"number": 2, "title": "Now renamed", "state": "closed", "html_url": f"{WEB}/issues/2"}
    late = event("IssuesEvent", {"action": "closed", "issue": bare}, at="2026-01-02T00:00:00Z", actor="keeper")
    write(tmp_path / "hours" / "2026-01-01-0.json.gz", commented(2, "Duplicate of #1", of={"labels": [{"name": "x"}]}))
    write(tmp_path / "hours" / "2026-01-02-0.json.gz", late)
    collected(tmp_path / "run", tmp_path / "hours")
    row = issues_of(tmp_path / "run")[2]
    assert (row["title"], row["state"], row["labels"], row["author"]) == (
        "Now renamed",
        "closed",
        ["x"],
        placeholder("wader"),
    )
    assert row["body"] == issue(2)["body"]


def test_of_the_timeline_of_2012_closings_are_read_and_the_rest_is_counted(tmp_path: Path) -> None:
    """Its payloads name issues by number: who closed one when is there, its text and its comments' aren't."""
    write(
        tmp_path / "hours" / "2012-03-11-15.json.gz",
        of_2012("IssuesEvent", {"action": "closed", "issue": 77, "number": 2}, url=f"{WEB}/issues/2"),
        of_2012("IssuesEvent", {"action": "opened", "issue": 78, "number": 3}, url=f"{WEB}/issues/3"),
        of_2012("IssuesEvent", {"action": "closed", "issue": 79, "number": 4}, url=f"{WEB}/issues/4"),
        of_2012("IssueCommentEvent", {"issue_id": 77, "comment_id": 5}, url=f"{WEB}/issues/2#issuecomment-5"),
        of_2012("PushEvent", {"size": 1}, url=f"{WEB}/compare/a...b"),
    )
    said = commented(2, "Duplicate of #1", at="2012-03-11T15:00:30Z", association=None, updated_at=None)
    said["payload"]["comment"].pop("author_association")
    write(tmp_path / "hours" / "2012-03-11-16.json.gz", said, opened(1))
    read, made = collected(tmp_path / "run", tmp_path / "hours")
    assert read.tally.dropped == {"without_texts": 2, "other_event": 1}
    assert made.tally.dropped == {"issue_without_snapshot": 1}  # 4
    assert links_of(tmp_path / "run") == {(2, 1): (1, None)}  # keeper closed it at 07:01:03 -0800


def test_pull_requests_transferred_issues_and_bots_are_out(tmp_path: Path) -> None:
    pull = {"pull_request": {"url": "x"}, "html_url": f"{WEB}/pull/5"}
    moved_away = event("IssuesEvent", {"action": "transferred", "issue": issue(6)}, at="2015-01-02T00:00:00Z", number=9)
    write(
        tmp_path / "hours" / "2015-01-01-15.json.gz",
        opened(1),
        commented(5, "Duplicate of #1", of=pull, key=5),
        commented(6, "Duplicate of #1", key=6),
        moved_away,
        commented(7, "Duplicate of #1", key=7, user={"login": "helper", "type": "Bot"}),
        opened(8, pull_request={"html_url": None, "diff_url": None, "patch_url": None}),  # no pull request: until 2014
    )
    read, made = collected(tmp_path / "run", tmp_path / "hours")
    assert sorted(issues_of(tmp_path / "run")) == [1, 7, 8]
    assert links_of(tmp_path / "run") == {}
    assert read.tally.dropped == {"pull_request": 1}
    assert made.tally.dropped == {"issue_transferred": 2}
    assert made.tally.counts["comments"]["by_bots_left_out"] == 1


def test_originals_in_other_repositories_and_renamed_ones_are_there(tmp_path: Path) -> None:
    there = opened(5) | {"repo": {"id": 5, "name": "saltmarsh/egret"}}
    beside = opened(6) | {"repo": {"id": 5, "name": "saltmarsh/egret"}}
    old = opened(3) | {"repo": {"id": 99, "name": "saltmarsh/old-heron"}}
    write(
        tmp_path / "hours" / "2015-01-01-15.json.gz", commented(2, "Duplicate of saltmarsh/egret#5"), there, beside, old
    )
    collected(tmp_path / "run", tmp_path / "hours", moved={"SaltMarsh/Old-Heron": REPOSITORY})
    rows = Run(tmp_path / "run").table("issues").to_pylist()
    assert {(row["repository"], row["number"]) for row in rows} == {
        (REPOSITORY, 2),
        (REPOSITORY, 3),
        ("saltmarsh/egret", 5),
    }


def test_listed_repositories_keep_all_their_issues(tmp_path: Path) -> None:
    other = opened(4) | {"repo": {"id": 5, "name": "quiet/place"}}
    write(tmp_path / "hours" / "2015-01-01-15.json.gz", opened(1), opened(2), other)
    read, made = collected(tmp_path / "run", tmp_path / "hours", repositories=[Listed("Quiet/Place", ())])
    assert sorted(issues_of(tmp_path / "run")) == [4]
    assert (read.tally.dropped, made.tally.dropped) == ({"not_listed": 2}, {})


def test_templates_are_found_over_all_hours(tmp_path: Path) -> None:
    ask = "Please tell us what you did before that"
    for hour in range(3):
        shown = [opened(number, body=f"Number {number}.\n\n{ask}") for number in (hour + 1, hour + 4)]
        write(tmp_path / "hours" / f"2015-01-01-{10 + hour}.json.gz", *shown)
    collected(tmp_path / "run", tmp_path / "hours", repositories=[Listed(REPOSITORY, ())])
    texts = [row["clean_text"].partition("\n\n")[2] for row in issues_of(tmp_path / "run").values()]
    assert sorted(texts) == [f"Number {number}." for number in range(1, 7)]


def test_workers_do_not_shape_the_result(tmp_path: Path) -> None:
    source = hours(tmp_path / "hours")
    for workers in (1, 3):
        collected(tmp_path / str(workers), source, workers=workers)
    for table in ("events", "issues", "links"):
        assert fingerprint(tmp_path / "1" / table) == fingerprint(tmp_path / "3" / table)
    assert (tmp_path / "1" / "manifest.json").read_bytes() == (tmp_path / "3" / "manifest.json").read_bytes()


def test_issues_are_the_same_from_many_small_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = hours(tmp_path / "hours")
    collected(tmp_path / "one", source)
    monkeypatch.setattr(merging_module, "_BUCKET", 1 << 10)
    monkeypatch.setattr(merging_module, "_AT_ONCE", 2)
    collected(tmp_path / "many", source)
    for table in ("issues", "links"):
        one, many = (Run(tmp_path / name).table(table).to_pylist() for name in ("one", "many"))
        assert sorted(map(str, one)) == sorted(map(str, many))
    one, many = (Run(tmp_path / name).entries["issues"].tally.as_dict() for name in ("one", "many"))
    assert one == many


def test_a_worker_that_meets_a_mistake_says_so(tmp_path: Path) -> None:
    hours(tmp_path / "hours")
    write(tmp_path / "hours" / "2015-01-01-18.json.gz", *[b"no JSON"] * 3)
    with pytest.raises(InputError, match="2015-01-01-18"):
        collected(tmp_path / "run", tmp_path / "hours", workers=3)


def test_empty_missing_and_cut_hours_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "hours"
    whole = hours(folder) / "2015-01-01-15.json.gz"
    (folder / "2015-01-01-18.json.gz").write_bytes(b"")
    write(folder / "2015-01-01-19.json.gz")
    (folder / "2015-01-01-23.json.gz").write_bytes(whole.read_bytes()[:-5])
    write(folder / "2015-01-02-1.json.gz", opened(1))
    (folder / "README.txt").write_text("hours of GH Archive")
    read, _ = collected(tmp_path / "run", folder)
    assert read.tally.counts == {
        "hours_empty": {"2015-01-01-18.json.gz": 1, "2015-01-01-19.json.gz": 1},
        "files_cut_off": {"2015-01-01-23.json.gz": 1},
        "hours_missing": {"2015-01-01-20 to 2015-01-01-22": 3, "2015-01-02-0": 1},
    }


def test_formats_are_told_by_content(tmp_path: Path, sample_issues: Path) -> None:
    folder = hours(tmp_path / "hours")
    hour = folder / "2015-01-01-15.json.gz"
    renamed = tmp_path / "anything.jsonl.gz"
    renamed.write_bytes(hour.read_bytes())
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "1.json").write_text(json.dumps(issue(1)))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "2015-01-01-15.json.gz").write_bytes(b"")
    old = write(tmp_path / "old" / "x.json.gz", of_2012("WatchEvent", {}, url=WEB))
    assert all(is_archive(path) for path in (folder, hour, renamed, tmp_path / "empty", old, old.parent))
    assert not any(is_archive(path) for path in (sample_issues, tmp_path / "dump", tmp_path / "none"))


def test_a_finished_archive_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = hours(tmp_path / "hours")
    collected(tmp_path / "run", source)
    monkeypatch.setattr("stscurate.sources.gharchive.stage.read_files", None)
    read, made = collected(tmp_path / "run", source)
    assert (read.fresh, made.fresh) == (False, False)
    with Run.open(tmp_path / "run", replace=True) as run:  # other settings of the merge alone
        assert collect_from_archive(run, moved={"a/b": "c/d"}).fresh


def test_kill_9_at_any_moment_and_again_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "hours"
    for hour in range(12):
        events = [
            commented(number, f"Duplicate of #{number % 7 + 1}", key=100 * hour + number) for number in range(1, 60)
        ]
        write(source / f"2015-01-01-{hour}.json.gz", *events)
    call = [
        sys.executable,
        "-m",
        "stscurate",
        "collect-issues",
        "--from",
        str(source),
        "--workers",
        "2",
        "--quiet",
        "--out",
    ]
    collected(tmp_path / "whole", source)
    partial = tmp_path / "run" / ".partial" / "archive"
    process = subprocess.Popen([*call, str(tmp_path / "run")])
    while process.poll() is None and len(list(partial.glob("[0-9]*.json"))) < 4:
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    collected(tmp_path / "run", source)
    for table in ("events", "issues", "links"):
        assert fingerprint(tmp_path / "run" / table) == fingerprint(tmp_path / "whole" / table)


def test_a_worker_that_dies_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours(tmp_path / "hours")

    def kill_first(pipes: object) -> Any:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            ours = int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if ours and b"spawn_main" in (stat.parent / "cmdline").read_bytes():
                os.kill(int(stat.parent.name), signal.SIGKILL)
        return connection.wait(pipes)  # type: ignore[arg-type]

    monkeypatch.setattr("stscurate.sources.gharchive.reading.wait", kill_first)
    with pytest.raises(StscurateError, match="--workers"):
        collected(tmp_path / "run", tmp_path / "hours", workers=2)
