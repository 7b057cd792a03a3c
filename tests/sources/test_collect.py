import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.sources.collect import collect_issues
from stscurate.store import Run

SAMPLE = Path(__file__).parents[2] / "datasets" / "github-issues" / "sample.jsonl"
TIDEPOOL, INKPOT, HEDGEROW, SIGNALBOX = (
    "lanternfish-db/tidepool",
    "quillworks-tty/inkpot",
    "bramblecode/hedgerow",
    "copperlark/signalbox",
)
Links = dict[tuple[str, str], int]


def collected(path: Path, out: Path, **options: Any) -> tuple[Entry, dict[str, dict[str, Any]], Links]:
    with Run.open(out) as run:
        entry = collect_issues(run, path, **options)
        issues = {f"{row['repository']}#{row['number']}": row for row in run.table("issues").to_pylist()}
        links = {
            (
                f"{row['repository']}#{row['duplicate']}",
                f"{row['canonical_repository']}#{row['canonical']}",
            ): row["tier"]
            for row in run.table("links").to_pylist()
        }
    return entry, issues, links


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Entry, dict[str, dict[str, Any]], Links]:
    return collected(SAMPLE, tmp_path_factory.mktemp("sample") / "run")


def test_the_sample_gives_the_links_that_its_readme_counts(
    sample: tuple[Entry, dict[str, dict[str, Any]], Links],
) -> None:
    entry, issues, links = sample
    assert len(issues) == 124
    assert entry.tally.dropped == {"pull_request": 2}
    assert entry.tally.counts["tier"] == {"1": 30, "2": 11, "3": 12}
    assert len(links) == entry.tally.counts["evidence"]["comment"] == 53


@pytest.mark.parametrize(
    ("repository", "tier", "numbers"),
    [
        (TIDEPOOL, 1, "12>2 15>5 18>4 26>12 36>33 50>4"),
        (TIDEPOOL, 2, "17>7 24>20 37>14"),
        (TIDEPOOL, 3, "31>28 42>39 48>5"),
        (INKPOT, 1, "19>10 22>21 39>41 41>39"),
        (INKPOT, 2, "13>6 18>4 48>9999"),
        (INKPOT, 3, "30>27 44>15 47>42"),
        (HEDGEROW, 1, "8>2 15>5 17>11 38>35 42>47"),
        (HEDGEROW, 2, "11>3 23>6"),
        (HEDGEROW, 3, "26>18 29>17 50>2"),
    ],
)
def test_links_of_the_sample_have_the_tiers_that_its_readme_lists(
    sample: tuple[Entry, dict[str, dict[str, Any]], Links], repository: str, tier: int, numbers: str
) -> None:
    for link in numbers.split():
        duplicate, canonical = link.split(">")
        assert sample[2][f"{repository}#{duplicate}", f"{repository}#{canonical}"] == tier


def test_the_sample_s_traps_give_no_link(sample: tuple[Entry, dict[str, dict[str, Any]], Links]) -> None:
    traps = {
        TIDEPOOL: (11, 21, 29, 40, 43, 46),
        INKPOT: (16, 31, 45),
        HEDGEROW: (14, 20, 24, 36, 44, 48),
        SIGNALBOX: (10, 32, 46),
    }
    trapped = {f"{repository}#{number}" for repository, numbers in traps.items() for number in numbers}
    assert {duplicate for duplicate, _ in sample[2]} & trapped == set()
    assert (f"{SIGNALBOX}#14", f"{TIDEPOOL}#4") in sample[2]


def test_rows_of_the_sample_are_clean_and_keep_the_original(
    sample: tuple[Entry, dict[str, dict[str, Any]], Links],
) -> None:
    issue = sample[1][f"{TIDEPOOL}#2"]
    assert issue["title"] == "Compaction takes all the memory of a small machine"
    assert issue["clean_text"].startswith(f"{issue['title']}\n\n### What happened\n\nOnce a day")
    assert "<!--" in issue["body"] not in issue["clean_text"]
    assert "- [x]" not in issue["clean_text"]
    assert (issue["author"], issue["source"], issue["fetched_at"]) == ("user-5e01d6f568", "dump:sample.jsonl", None)
    assert sample[1][f"{TIDEPOOL}#12"]["mentions"] == [f"{TIDEPOOL}#2"]
    assert f"{HEDGEROW}#6" in sample[1][f"{HEDGEROW}#24"]["mentions"]
    assert sample[1][f"{TIDEPOOL}#23"]["clean_text"] == sample[1][f"{TIDEPOOL}#23"]["title"]


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"repository": "o/new", "title": "t"} | row) + "\n" for row in rows))
    return path


def test_moved_repositories_and_labels_in_texts_are_understood(tmp_path: Path) -> None:
    said = {"body": "Duplicate of o/Old#1", "author_association": "OWNER", "user": {"login": "jo"}}
    rows = (
        {"number": 1, "body": "as in `#7`, o/old#3"},
        {"number": 2, "body": "A duplicate of #1.\n```\n#9\n```", "comments": [said]},
        {"number": 3, "state_reason": "duplicate"},
        {"number": 3, "repository": "o/OLD"},
        {"number": 4, "repository": "o/old", "comments": [said]},
    )
    path = write(tmp_path / "issues.jsonl", *rows)
    entry, issues, links = collected(path, tmp_path / "run", moved={"o/old": "o/new"})
    assert links == {("o/new#2", "o/new#1"): 1, ("o/new#4", "o/new#1"): 1}
    assert entry.tally.dropped == {"repeated_issue": 1}
    assert issues["o/new#1"]["mentions"] == ["o/new#3", "o/new#7"]
    assert issues["o/new#2"]["mentions"] == ["o/new#1"]
    assert entry.tally.counts["texts"] == {"label_in_text": 1}
    assert entry.tally.counts["links"] == {"closed_as_duplicate_without_target": 1}
    assert collected(path, tmp_path / "other")[2] == {("o/new#2", "o/Old#1"): 1, ("o/OLD#4", "o/OLD#1"): 1}


def test_a_finished_stage_is_found_and_nothing_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "issues.jsonl", {"number": 1})
    assert collected(path, tmp_path / "run")[0].fresh
    assert not collected(path, tmp_path / "run")[0].fresh


def test_a_missing_path_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run, pytest.raises(InputError, match=r"none\.jsonl doesn't exist"):
        collect_issues(run, tmp_path / "none.jsonl")


def test_a_killed_collection_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    long = "What happened is described here at length. " * 20
    rows = [{"number": n, "body": f"{long} {n}", "comments": [{"body": f"dup of #{n - 1}"}]} for n in range(1, 6_001)]
    path = write(tmp_path / "issues.jsonl", *rows, {"number": 1})
    whole = collected(path, tmp_path / "whole")[0]
    code = (
        "import sys; from pathlib import Path; from stscurate.store import Run; "
        "from stscurate.sources import collect_issues\n"
        "with Run.open(Path(sys.argv[2])) as run: collect_issues(run, Path(sys.argv[1]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path), str(tmp_path / "killed")])
    first = tmp_path / "killed" / ".partial" / "issues" / "00000.json"
    deadline = time.monotonic() + 60
    while not first.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert first.exists()
    assert not (tmp_path / "killed" / "manifest.json").exists()
    stamp = first.stat().st_mtime_ns
    seen = []
    with Run.open(tmp_path / "killed") as run:
        entry = collect_issues(run, path, progress=lambda label, done, total: seen.append(done))
        # the finished shard was moved into place, not written again
        assert (tmp_path / "killed" / "issues" / "00000.parquet").stat().st_mtime_ns <= stamp
    assert entry.as_dict() == whole.as_dict()
    assert entry.tally.dropped == {"repeated_issue": 1}
    assert seen[-1] == 6_000
    for table in ("issues", "links"):
        assert fingerprint(tmp_path / "killed" / table) == fingerprint(tmp_path / "whole" / table)


def test_what_a_repository_s_issues_share_goes_wherever_they_stand_in_the_file(tmp_path: Path) -> None:
    ask = "Please tell us what you did before that"
    rows = [
        {"number": n, "repository": f"o/r{n % 2}", "body": f"Words of number {n}.\n\n{ask if n % 2 or n < 5 else n}"}
        for n in range(1, 2_101)
    ]
    rows[-1]["body"] = ask
    entry, issues, _ = collected(write(tmp_path / "a.jsonl", *rows, rows[0]), tmp_path / "a")
    assert issues["o/r1#1"]["clean_text"] == "t\n\nWords of number 1."
    assert issues["o/r1#2099"]["clean_text"] == "t\n\nWords of number 2099."
    assert issues["o/r1#1"]["body"] == f"Words of number 1.\n\n{ask}"
    assert issues["o/r0#2"]["clean_text"] == f"t\n\nWords of number 2.\n\n{ask}"  # in three of its issues
    assert entry.tally.counts["cleaned"] == {"template": 1_050}
    rows[-1]["repository"] = "o/r1"
    entry, issues, _ = collected(write(tmp_path / "b.jsonl", *reversed(rows)), tmp_path / "b")
    assert issues["o/r1#2100"]["clean_text"] == "t"
    assert entry.tally.counts["cleaned"] == {"template": 1_051, "nothing_but_title_left": 1}


def test_what_cleaning_did_is_counted_by_kind(tmp_path: Path) -> None:
    token = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bD0fG3iJ6"
    rows = (
        {"number": 1, "body": f"- [x] I searched\n@ada {token}\n" + "12:00:00 x\n" * 20},
        {"number": 2, "body": "```\n" + "x\n" * 50 + "```\nmail a@b.org from 81.169.145.78\n-- \nAda"},
        {"number": 3, "title": "![](x.png)", "body": "<!-- nothing -->"},
    )
    entry, issues, _ = collected(write(tmp_path / "issues.jsonl", *rows), tmp_path / "run")
    assert entry.tally.counts["cleaned"] == {"checkbox": 1, "code": 1, "log": 1, "mail": 1, "nothing_left": 1}
    assert entry.tally.counts["replaced"] == {"GitHub token": 1, "user": 1, "email": 1, "ip": 1}
    assert token in issues["o/new#1"]["body"]
    assert token not in issues["o/new#1"]["clean_text"]
