"""A set that was published by ids gets its texts back, from GitHub, from a dump, and from the Hub's copy of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stscurate.publishing import publish_folder, published_templates
from stscurate.sources import fetch_again
from stscurate.store import Run
from tests.conftest import ROOT, Command
from tests.local_github import LocalGitHub, faults
from tests.local_hub import LocalHub
from tests.publishing.samples import files
from tests.sources.collecting import INKPOT, TIDEPOOL

pytestmark = pytest.mark.usefixtures("github_schema")

TEXT_CONFIGS = ("pairs", "pair-class", "gis")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, command: Command, sample_issues: Path) -> Path:
    """A folder with a run of the sample, published by ids in `set` and with its texts in `whole`."""
    folder = tmp_path_factory.mktemp("made")
    assert command("collect-issues", "--from", sample_issues, "--out", folder / "run").exit_code == 0
    publish = ("publish", folder / "run", "--licence", "apache-2.0", "--title", "Sample")
    assert command(*publish, "--to", folder / "set").exit_code == 0
    assert command(*publish, "--to", folder / "whole", "--texts", "--accept", "licence").exit_code == 0
    return folder


def rows(folder: Path, config: str) -> list[dict[str, Any]]:
    paths = sorted((folder / "data" / config).glob("*.parquet"))
    return [{**row, "split": path.name.split("-")[0]} for path in paths for row in pq.read_table(path).to_pylist()]


def rehydrated(command: Command, published: object, out: Path, *options: object) -> dict[str, dict[str, Any]]:
    result = command("rehydrate", published, "--out", out, *options, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return {stage["stage"]: stage for stage in json.loads(result.stdout)["stages"]}


def test_from_github_the_set_with_texts_comes_back_as_it_was(
    made: Path, address: LocalGitHub, command: Command, tmp_path: Path
) -> None:
    stages = rehydrated(command, made / "set", tmp_path / "run")
    back = tmp_path / "run" / "published"
    for config in TEXT_CONFIGS:  # byte for byte
        assert files(back / "data" / config) == files(made / "whole" / "data" / config)
    old = rows(made / "whole", "provenance")
    same = {"text1_state": "same", "text2_state": "same"}
    assert [{name: row[name] for name in old[0]} for row in rows(back, "provenance")] == old
    assert all(same.items() <= row.items() for row in rows(back, "provenance"))
    assert stages["rehydrate"]["counts"]["pairs"] == {"same": len(old)}
    assert stages["rehydrate"]["dropped"] == {}
    import datasets

    data = datasets.load_dataset(str(back), cache_dir=str(tmp_path / "cache"))
    assert data["train"].column_names == ["sentence1", "sentence2", "score"]
    card = (back / "README.md").read_text()
    assert f"Of its {len(old)} pairs\n{len(old)} have the texts" in card
    assert "stscurate rehydrate" not in card


def test_edited_issues_are_marked_and_gone_ones_left_out_and_counted(
    made: Path, address: LocalGitHub, command: Command, tmp_path: Path
) -> None:
    edited, deleted, moved = (TIDEPOOL, 2), (TIDEPOOL, 17), (INKPOT, 12)
    old = rows(made / "whole", "provenance")
    of = {
        name: [row["pair_id"] for row in old if f"{place[0]}#{place[1]}" in (row["id1"], row["id2"])]
        for name, place in (("edited", edited), ("deleted", deleted), ("moved", moved))
    }
    assert all(of.values())
    address.store.edit(edited, body="Words that weren't there when the set was made.")
    address.store.edit((TIDEPOOL, 4), state="open")  # no change of its text
    address.store.delete(deleted)
    address.store.transfer(moved, TIDEPOOL)
    address.store.rename("bramblecode/hedgerow", "bramblecode/renamed")
    stages = rehydrated(command, made / "set", tmp_path / "run")
    gone = {*of["deleted"], *of["moved"]}
    changed = {*of["edited"]} - gone
    assert stages["issues"]["dropped"] == {"gone": 2}
    assert stages["rehydrate"]["dropped"] == {"gone": len(gone)}
    same = len(old) - len(gone) - len(changed)
    assert stages["rehydrate"]["counts"]["pairs"] == {"changed": len(changed), "same": same}
    found = rows(tmp_path / "run" / "published", "provenance")
    assert [row["pair_id"] for row in found] == [row["pair_id"] for row in old if row["pair_id"] not in gone]
    assert {row["pair_id"] for row in found if "changed" in (row["text1_state"], row["text2_state"])} == changed
    pairs = rows(tmp_path / "run" / "published", "pairs")
    new = [pair for pair, row in zip(pairs, found, strict=True) if row["pair_id"] in changed]
    assert all("Words that weren't there" in pair["sentence1"] + pair["sentence2"] for pair in new)

    strict = rehydrated(command, made / "set", tmp_path / "run", "--unchanged-only", "--yes")["rehydrate"]
    assert strict["dropped"] == {"changed": len(changed), "gone": len(gone)}
    assert len(rows(tmp_path / "run" / "published", "pairs")) == same
    card = (tmp_path / "run" / "published" / "README.md").read_text()
    assert f"was edited since were left out: {len(changed)}." in card
    assert f"with an issue that is gone were left out: {len(gone)}." in card


def test_nothing_is_fetched_twice_and_what_is_finished_needs_no_token(
    made: Path, address: LocalGitHub, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehydrated(command, made / "set", tmp_path / "run")
    sent = address.requests()
    rehydrated(command, made / "set", tmp_path / "run", "--unchanged-only", "--yes")
    assert address.requests() == sent
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("PATH", "")
    assert not rehydrated(command, made / "set", tmp_path / "run", "--unchanged-only")["issues"]["fresh"]
    assert address.requests() == sent


KILLED = """
import os, signal, sys
from stscurate.cli import app
from stscurate.services.answers import Answers

put, left = Answers.put, int(sys.argv.pop(1))

def deadly(self, kind, values):
    global left
    put(self, kind, values)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

Answers.put = deadly
app()
"""


@pytest.mark.parametrize("kept", [1, 4])
def test_a_kill_costs_no_answer_that_had_come(
    made: Path, address: LocalGitHub, command: Command, tmp_path: Path, kept: int
) -> None:
    rehydrated(command, made / "set", tmp_path / "unbroken")
    whole = address.requests()
    call = ["rehydrate", str(made / "set"), "--out", str(tmp_path / "run")]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(kept), *call], cwd=ROOT, check=False)
    assert killed.returncode == -9
    rehydrated(command, made / "set", tmp_path / "run")
    # Requests that were under way when it was killed may be sent again: as many as go out at once.
    assert whole <= address.requests() - whole <= whole + 8
    assert files(tmp_path / "run" / "published") == files(tmp_path / "unbroken" / "published")


def test_a_failing_github_is_asked_again_and_gives_the_same_bytes(
    made: Path, address: LocalGitHub, command: Command, tmp_path: Path
) -> None:
    rehydrated(command, made / "set", tmp_path / "unbroken")
    address.fail(faults.partial(3), at=2)
    address.fail(faults.bad_gateway(), at=4)
    rehydrated(command, made / "set", tmp_path / "run")
    assert files(tmp_path / "run" / "published") == files(tmp_path / "unbroken" / "published")


def test_a_dump_does_as_well_and_lacks_are_counted(
    made: Path, sample_issues: Path, command: Command, tmp_path: Path
) -> None:
    stages = rehydrated(command, made / "set", tmp_path / "run", "--from", sample_issues)
    for config in TEXT_CONFIGS:
        assert files(tmp_path / "run" / "published" / "data" / config) == files(made / "whole" / "data" / config)
    assert stages["rehydrate"]["dropped"] == {}
    lines = [line for line in sample_issues.read_text("utf-8").splitlines() if f'"{TIDEPOOL}"' in line]
    (tmp_path / "part.jsonl").write_text("\n".join(lines))
    stages = rehydrated(command, made / "set", tmp_path / "part", "--from", tmp_path / "part.jsonl")
    ids = {name for row in rows(made / "set", "ids") for name in (row["id1"], row["id2"])}
    assert stages["issues"]["dropped"] == {"not_in_the_dump": sum(not name.startswith(TIDEPOOL) for name in ids)}
    kept = sum(row["id1"].startswith(TIDEPOOL) and row["id2"].startswith(TIDEPOOL) for row in rows(made / "set", "ids"))
    assert stages["rehydrate"]["outputs"]["pairs"]["rows"] == kept > 0


def test_what_the_template_had_put_there_is_taken_out_again(
    sample_issues: Path, command: Command, tmp_path: Path
) -> None:
    issues = [json.loads(line) for line in sample_issues.read_text("utf-8").splitlines()]
    for issue in issues:
        issue["body"] = f"{issue['body'] or ''}\n\nPlease tell us what you did before that"
    (tmp_path / "issues.jsonl").write_text("\n".join(map(json.dumps, issues)))
    assert command("collect-issues", "--from", tmp_path / "issues.jsonl", "--out", tmp_path / "made").exit_code == 0
    publish = ("publish", tmp_path / "made", "--licence", "apache-2.0", "--to", tmp_path / "set")
    assert command(*publish).exit_code == 0
    card = json.loads((tmp_path / "set" / "card.json").read_text())
    assert set(card["templates"]) == {row["repository"] for row in rows(tmp_path / "set", "ids")}
    assert "Please tell us" not in (tmp_path / "set" / "card.json").read_text()
    # A few of the issues don't show what all of them share.
    wanted = {name for row in rows(tmp_path / "set", "ids") for name in (row["id1"], row["id2"])}
    few = [issue for issue in issues if f"{issue['repository']}#{issue['number']}" in sorted(wanted)[:4]]
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, few)))
    rehydrated(command, tmp_path / "set", tmp_path / "again", "--from", tmp_path / "issues.jsonl")
    states = {row["text1_state"] for row in rows(tmp_path / "again" / "published", "provenance")}
    assert states == {"same"}
    with Run.open(tmp_path / "few") as run:
        fetch_again(
            run,
            [(issue["repository"], issue["number"]) for issue in few],
            dump=tmp_path / "few.jsonl",
            templates=published_templates(tmp_path / "set"),
        )
        texts = run.table("issues")["clean_text"].to_pylist()
    assert len(texts) == 4
    assert not any("Please tell us" in text for text in texts)


def test_a_set_on_the_hub_is_found_by_its_name(
    made: Path, sample_issues: Path, tmp_path: Path, command: Command
) -> None:
    def run(name: str, address: str, cache: Path) -> subprocess.CompletedProcess[str]:
        """In a process of its own: the client reads HF_ENDPOINT when it is imported."""
        environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0"}
        environment["HF_HUB_DISABLE_XET"] = "1"
        call = ["rehydrate", name, "--from", str(sample_issues), "--out", str(tmp_path / "run"), "--quiet"]
        command = [sys.executable, "-m", "stscurate", *call]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    with LocalHub.serve(tmp_path / "storage") as hub:
        commit = hub.create("dataset", "some/set", folder=made / "set").head.oid
        done = run(f"some/set@{commit}", hub.address, tmp_path / "cache")
        assert (done.returncode, done.stderr) == (0, "")
        assert not [asked for asked in hub.log if asked.path.endswith(("README.md", "manifest.json"))]
        missing = run("some/other", hub.address, tmp_path / "cache")
        del hub.repositories["dataset", "some/set"]
        deleted = run("some/set", hub.address, tmp_path / "cache")
    assert (missing.returncode, "There is no data set some/other" in missing.stderr) == (2, True)
    assert (deleted.returncode, "There is no data set some/set" in deleted.stderr) == (2, True)
    assert rows(tmp_path / "run" / "published", "pairs") == rows(made / "whole", "pairs")
    away = run("some/third", "http://127.0.0.1:9", tmp_path / "cache")
    assert (away.returncode, "the Hub can't be asked" in away.stderr) == (1, True)


def test_votes_and_scores_of_the_set_stay(
    made: Path, sample_issues: Path, command: Command, tmp_path: Path, tiny_model: Path
) -> None:
    run = tmp_path / "run"
    assert command("collect-issues", "--from", sample_issues, "--out", run).exit_code == 0
    assert command("annotate", run, "--llm", f"embedding:{tiny_model}", "--split", "train").exit_code == 0
    with Run.open(run) as opened:
        publish_folder(opened, tmp_path / "set", licence="other")
        publish_folder(opened, tmp_path / "whole", licence="other", texts=True, accept=["licence"])
    rehydrated(command, tmp_path / "set", tmp_path / "back", "--from", sample_issues)
    back = tmp_path / "back" / "published"
    assert rows(back, "pairs") == rows(tmp_path / "whole", "pairs")
    whole = rows(tmp_path / "whole", "provenance")
    assert [row["raw"] for row in rows(back, "provenance")] == [row["raw"] for row in whole]
    assert "annotators" in {row["score_from"] for row in whole}
    assert "Models were asked how similar each pair is." in (back / "README.md").read_text()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda place: (place / "card.json").unlink(), "isn't a set that stscurate has published by ids"),
        (lambda place: (place / "card.json").write_text("{"), "isn't as it was written"),
        (lambda place: next((place / "data" / "ids").glob("train*")).write_bytes(b"x"), "is broken"),
        (lambda place: next((place / "data" / "provenance").glob("train*")).unlink(), "is broken"),
    ],
)
def test_a_set_that_is_broken_or_has_texts_is_told_of(
    made: Path,
    sample_issues: Path,
    command: Command,
    tmp_path: Path,
    spoil: Callable[[Path], object],
    told: str,
) -> None:
    for name, data in files(made / "set").items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_bytes(data)
    spoil(tmp_path / "set")
    result = command("rehydrate", tmp_path / "set", "--from", sample_issues, "--out", tmp_path / "run")
    assert (result.exit_code, told in result.stderr) == (2, True)


def test_a_set_with_nothing_left_is_told_of(made: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"repository": "a/b", "number": 1, "title": "Something else"}\n')
    result = command("rehydrate", made / "set", "--from", tmp_path / "other.jsonl", "--out", tmp_path / "run")
    assert (result.exit_code, "the issues are gone" in result.stderr) == (2, True)
    result = command("rehydrate", made / "whole", "--from", tmp_path / "other.jsonl", "--out", tmp_path / "run")
    assert (result.exit_code, "A set with texts needs no rehydration" in result.stderr) == (2, True)
