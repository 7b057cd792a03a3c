"""What is read of an hour's lines without parsing them is what a loop that parses every line finds."""

import bz2
import gzip
import json
import lzma
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import InputError
from stscurate.records import Tally
from stscurate.sources.gharchive import lines as lines_module
from stscurate.sources.gharchive.events import rows_of
from stscurate.sources.gharchive.lines import Hour
from stscurate.sources.gharchive.reading import Task, read_file
from stscurate.sources.lists import OptOut
from tests.sources.archives import commented, event, line, of_2012, opened, write

PULL = {"pull_request": {"url": "https://api.github.com/x"}, "html_url": "https://github.com/saltmarsh/heron/pull/3"}
PUSH = event("PushEvent", {"commits": [{"message": 'See "type":"IssuesEvent" and {"type":"IssuesEvent"}'}]})


def adversarial() -> list[bytes]:
    plain = line(opened(1))
    tricky = 'He wrote {"type":"PushEvent","actor":{}} and \\"pull_request\\":{\\"url\\":\\"http and "html_url":"https://github.com/a/b/pull/1"'
    return [
        plain,
        line(PUSH),
        line(opened(2, body=tricky)),
        line(commented(3, "Duplicate of #1", of=PULL)),
        line(commented(4, "Duplicate of #1 重复", key=4, of={"body": tricky})),
        json.dumps(opened(5)).encode(),  # spaces after colons and commas
        line(opened(6, title="Nested")).replace(b"Nested", b"\\u004eested"),
        plain.replace(b'"IssuesEvent"', b'"Issue\\u0073Event"').replace(b'"id":"101"', b'"id":"107"'),
        plain.replace(b'"type":"IssuesEvent"', b'"\\u0074ype":"\\u0049ssuesEvent"', 1),
        line(opened(8)) + b"\r",
        b"",
        b"   ",
        line(opened(9, body="x" * 700_000)),
        line(commented(10, "Ça se répète: 重复 of #1", key=10)),
        line(opened(11)).replace(b"Seen 11", b"half \\ud83d of it"),
        line({"id": "1", "type": "WatchEvent", "actor": {"login": "Issue"}, "repo": {"id": 1, "name": "Issue/Issues"}}),
        line(of_2012("IssuesEvent", {"action": "closed", "issue": 77, "number": 12}, url="https://github.com/saltmarsh/heron/issues/12")),
        line(of_2012("WatchEvent", {"action": "started"}, url="https://github.com/saltmarsh/heron")),
        line(event("IssuesEvent", {"action": "opened", "issue": {"number": 13, "title": "{}[]"}}, actor='a"b{c}')),
        line(opened(14)),
    ]  # fmt: skip


def parsed_one_by_one(lines: list[bytes]) -> list[tuple[str, int, str]]:
    """The oracle: every line by the standard library's parser."""
    found = []
    for text in b"\n".join(lines).decode("utf-8").split("\n"):
        value: Any = json.loads(text) if text.strip() else {}
        issue = value.get("payload", {}).get("issue")
        if value.get("type") in ("IssuesEvent", "IssueCommentEvent") and not (
            isinstance(issue, dict) and "pull_request" in issue
        ):
            number = issue["number"] if isinstance(issue, dict) else value["payload"]["number"]
            found.append((value.get("id", ""), number, value["payload"]["action"]))
    return found


def read(path: Path, **options: Any) -> tuple[list[tuple[str, int, str]], Tally]:
    options = {"repositories": None, "opt_out": OptOut(), **options}
    parts = list(read_file(Task(0, path, path.name, **options)))
    rows = [row for part in parts for row in part.events.to_pylist()]
    return [(row["event"], row["number"], row["action"].partition("_")[2]) for row in rows], parts[-1].tally


@pytest.mark.parametrize("block", [1 << 10, 1 << 12, 1 << 19])
@pytest.mark.parametrize("end", [b"\n", b"", b"\n\n"])
def test_adversarial_lines_give_what_parsing_each_gives(
    tmp_path: Path, block: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    lines = adversarial()
    path = write(tmp_path / "2015-01-01-15.json.gz", *lines, end=end)
    found, tally = read(path)
    assert found == parsed_one_by_one(lines)
    assert len(found) == 14
    assert tally.dropped == {"other_event": 3, "pull_request": 1}
    assert tally.rows_in == sum(bool(text.strip()) for text in lines)


def test_most_lines_are_never_parsed(tmp_path: Path) -> None:
    path = write(tmp_path / "hour.json.gz", *[PUSH] * 50, opened(1), *[PUSH] * 50)
    hour = Hour(path)
    assert list(hour.lines()) == [line(opened(1))]
    assert hour.counts == {"lines": 101, "other_event": 100}


def test_only_listed_repositories_are_read_by_whatever_case(tmp_path: Path) -> None:
    other = opened(2) | {"repo": {"id": 1, "name": "saltmarsh/egret"}}
    spaced = json.dumps(opened(3) | {"repo": {"id": 1, "name": "saltmarsh/egret"}}).encode()
    path = write(tmp_path / "hour.json.gz", opened(1) | {"repo": {"id": 9, "name": "SaltMarsh/Heron"}}, other, spaced)
    found, tally = read(path, repositories=frozenset({"saltmarsh/heron"}))
    assert [number for _, number, _ in found] == [1]
    assert tally.dropped == {"not_listed": 2}


@pytest.mark.parametrize("block", [1 << 10, 1 << 19])
def test_events_glued_into_one_line_are_all_read(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first of them is: another event, of another repository, of a pull request."""
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    elsewhere = opened(2) | {"repo": {"id": 1, "name": "saltmarsh/egret"}}
    pull = commented(3, "Duplicate of #1", of=PULL)
    glued = [
        line(PUSH) + line(opened(4)),
        line(elsewhere) + line(opened(5)),
        line(pull) + line(opened(6)) + line(PUSH),
        line(PUSH) + line(PUSH),
        line(opened(7)) + line(opened(8)),
    ]
    path = write(tmp_path / "hour.json.gz", *[PUSH] * 20, opened(1), b"", *glued, *[PUSH] * 20, glued[0], b"", b"")
    for listed, others in ((frozenset({"saltmarsh/heron"}), {"not_listed": 1}), (None, {})):
        found, tally = read(path, repositories=listed)
        numbers = sorted(number for _, number, _ in found)
        assert numbers == sorted([1, 4, 4, 5, 6, 7, 8] + [2] * (listed is None))
        assert tally.dropped == {"other_event": 45, "pull_request": 1, **others}
        assert tally.rows_in == len(numbers) + sum(tally.dropped.values()) == 54


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, bytes])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_hour_is_read_however_it_is_packed(tmp_path: Path, pack: Any, mark: bytes, end: bytes) -> None:
    path = tmp_path / "2015-01-01-15.json"
    path.write_bytes(pack(mark + end.join([line(opened(1)), line(PUSH), line(opened(2)), b""])))
    found, tally = read(path)
    assert ([number for _, number, _ in found], tally.dropped) == ([1, 2], {"other_event": 1})


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_damaged_hour_is_told_of(tmp_path: Path, pack: Any) -> None:
    packed = bytearray(pack(line(PUSH) * 100))
    packed[len(packed) // 3 : len(packed) // 2] = bytes(len(packed) // 2 - len(packed) // 3)
    path = tmp_path / "2015-01-01-15.json"
    path.write_bytes(packed)
    with pytest.raises(InputError, match="is a damaged archive: copy or download it again"):
        read(path)


def test_files_of_2012_with_all_events_in_one_line(tmp_path: Path) -> None:
    events = [
        of_2012("IssuesEvent", {"action": "closed", "issue": 7, "number": number}, url="https://github.com/saltmarsh/heron/issues/1")
        for number in (3, 4)
    ]  # fmt: skip
    path = write(tmp_path / "2012-03-11-7.json.gz", line(events[0]) + line(PUSH) + line(events[1]))
    found, tally = read(path)
    assert [number for _, number, _ in found] == [3, 4]
    assert (tally.rows_in, tally.dropped) == (3, {"other_event": 1})


def test_a_file_that_was_cut_off_gives_its_whole_lines_and_is_named(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.json.gz", *(opened(number) for number in range(1, 3_001))).read_bytes()
    cut = tmp_path / "2015-01-01-15.json.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    found, tally = read(cut)
    assert 0 < len(found) < 3_000
    assert [number for _, number, _ in found] == list(range(1, len(found) + 1))
    assert tally.counts == {"files_cut_off": {"2015-01-01-15.json.gz": 1}}
    assert not tally.dropped


def test_broken_lines_are_counted_by_file_up_to_one_in_a_hundred(tmp_path: Path) -> None:
    glued = line(opened(1))[:-50] + line(opened(2))
    path = write(tmp_path / "hour.json.gz", *[PUSH] * 198, glued, b"not JSON")
    assert read(path)[1].counts == {"broken_lines": {"hour.json.gz": 2}}
    write(path, *[PUSH] * 196, glued, b"not JSON", b"[")
    with pytest.raises(InputError, match=r"hour\.json\.gz isn't an hour of GH Archive: 3 of its 199 lines"):
        read(path)


def test_a_line_too_long_to_hold_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_BLOCK", 1 << 10)
    monkeypatch.setattr(lines_module, "LONGEST", 1 << 16)
    long = line(opened(2, body="x" * 300_000))
    path = write(tmp_path / "hour.json.gz", opened(1), long, opened(3), *[PUSH] * 250, long)
    found, tally = read(path)
    assert [number for _, number, _ in found] == [1, 3]
    assert (tally.rows_in, tally.dropped["broken_line"]) == (254, 2)


def test_what_no_shape_has_is_counted_by_what_it_lacks() -> None:
    tally = Tally()
    cases = [
        event("IssuesEvent", {"action": "opened", "issue": {"title": "no number"}}),
        event("IssuesEvent", {"action": "labeled", "number": 4}),
        event("IssueCommentEvent", {"issue_id": 1, "comment_id": 2}) | {"url": "https://github.com/a/b/issues/7#issuecomment-2"},
        event("IssuesEvent", {"action": "closed", "number": 4}) | {"repo": {"name": "/"}},
        event("IssuesEvent", {"action": "closed", "number": 4}) | {"url": "https://github.com/a/b/pull/4"},
        {"type": ["IssuesEvent"]},
    ]  # fmt: skip
    assert [list(rows_of(line(found), OptOut(), None, tally)) for found in cases] == [[]] * len(cases)
    assert tally.dropped == {"without_place": 2, "without_texts": 2, "pull_request": 1, "broken_line": 1}


def test_no_login_is_kept_and_those_who_opted_out_are_left_out(tmp_path: Path) -> None:
    out = OptOut(users=frozenset({"shy"}), issues=frozenset({("saltmarsh/heron", 3)}))
    events = [
        opened(1),
        opened(2, user={"login": "Shy"}),
        opened(3),
        commented(4, "me too", by="shy"),
        commented(4, "so do I", by="renovate[bot]", key=2),
    ]
    path = write(tmp_path / "hour.json.gz", *events)
    (part,) = read_file(Task(0, path, path.name, None, out))
    assert part.tally.dropped == {"opted_out": 2}
    assert part.tally.counts == {"comments": {"opted_out": 1}}
    assert part.events["number"].to_pylist() == [1, 4, 4]
    kept = str(part.events.to_pylist())
    assert not any(login in kept.lower() for login in ("shy", "wader", "keeper", "renovate"))
    assert '"type":"Bot"' in kept


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stscurate.sources.gharchive.reading._PART", 1 << 16)
    monkeypatch.setattr(lines_module, "_BLOCK", 1 << 16)
    peaks = {}
    for size in (1, 1, 8):  # the first warms up
        path = tmp_path / f"{size}.json.gz"
        with gzip.open(path, "wb") as file:
            for number in range(size * 1_500):
                file.write(line(opened(number + 1)) + b"\n" + line(PUSH) + b"\n")
        tracemalloc.start()
        assert sum(part.events.num_rows for part in read_file(Task(0, path, path.name, None, OptOut()))) == size * 1_500
        peaks[size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[8] < 1.2 * peaks[1]
