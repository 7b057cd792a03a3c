"""Run folders: finished stages are skipped, killed ones go on, and no kill leaves anything in pieces."""

import hashlib
import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stscurate.artifacts import Artifact
from stscurate.disk import atomic, fingerprint, locked
from stscurate.errors import InputError, RunBusyError, SettingsChangedError
from stscurate.manifest import Entry
from stscurate.records import ISSUES, Tally, from_rows
from stscurate.store import Run


def texts(first: int, count: int = 2):  # type: ignore[no-untyped-def]
    rows = [{"text_id": str(i), "text": f"text {i}"} for i in range(first, first + count)]
    return from_rows(rows, "texts")


def work(folder: Path, *, seed: int = 0, shards: int = 3, replace: bool = False) -> Entry:
    """A stage of a few shards, as stages are written."""
    with Run.open(folder, replace=replace) as run:
        stage = run.stage("texts", tables=["texts"], inputs={"in": "0"}, settings={"shards": shards}, seed=seed)
        if stage.entry:
            return stage.entry
        for index in range(shards):
            if not stage.has(index):
                tally = Tally(rows_in=3)
                tally.drop("odd")
                stage.write(index, {"texts": texts(10 * index)}, tally)
        return stage.commit()


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a run but the side table of times and the lock."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timings.jsonl", ".lock")
    }


def test_a_stage_is_made_once_and_counts_what_it_dropped(tmp_path: Path) -> None:
    made = work(tmp_path / "run")
    assert (made.fresh, made.rows, made.tally.rows_in, made.tally.dropped) == (True, 6, 9, {"odd": 3})
    before = content(tmp_path / "run")
    found = work(tmp_path / "run")
    assert (found.fresh, found.rows, found.tally) == (False, 6, made.tally)
    assert content(tmp_path / "run") == before
    assert Run(tmp_path / "run").table("texts")["text_id"].to_pylist() == ["0", "1", "10", "11", "20", "21"]


def test_other_settings_are_refused_by_name_until_replaced(tmp_path: Path) -> None:
    work(tmp_path / "run")
    with pytest.raises(SettingsChangedError, match=r"texts was made otherwise \(shards was 3, now 2\).*--yes"):
        work(tmp_path / "run", shards=2)
    with pytest.raises(SettingsChangedError, match="seed was 0, now 5"):
        work(tmp_path / "run", seed=5)
    assert work(tmp_path / "run", shards=2, replace=True).rows == 4
    assert Run(tmp_path / "run").table("texts").num_rows == 4


def test_a_missing_table_names_what_there_is(tmp_path: Path) -> None:
    work(tmp_path / "run")
    with pytest.raises(InputError, match=r"no finished votes \(it has texts\)"):
        Run(tmp_path / "run").table("votes")


@pytest.mark.parametrize("content", ["", '{"format": 1, "stages": {"te', "[]", "{}", '{"stages": {"texts": null}}'])
def test_a_damaged_manifest_is_told(tmp_path: Path, content: str) -> None:
    work(tmp_path / "run")
    (tmp_path / "run" / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"run/manifest\.json isn't a whole manifest"):
        Run(tmp_path / "run").has("texts")


def test_a_changed_shard_is_never_read_in_silence(tmp_path: Path) -> None:
    work(tmp_path / "run")
    shards = sorted((tmp_path / "run" / "texts").iterdir())
    shards[1].write_bytes(shards[0].read_bytes())
    with pytest.raises(InputError, match="run/texts isn't as it was made"):
        Run(tmp_path / "run").table("texts")
    shards[1].unlink()
    with pytest.raises(InputError, match="run/texts isn't as it was made"):
        Run(tmp_path / "run").table("texts")


def test_a_table_that_was_removed_is_made_again(tmp_path: Path) -> None:
    made = work(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "texts")
    again = work(tmp_path / "run")
    assert (again.fresh, again.outputs) == (True, made.outputs)


def test_a_damaged_note_of_unfinished_work_means_beginning_anew(tmp_path: Path) -> None:
    (tmp_path / "run" / ".partial" / "texts").mkdir(parents=True)
    (tmp_path / "run" / ".lock").touch()
    (tmp_path / "run" / ".partial" / "texts" / "key.json").write_text("{")
    assert work(tmp_path / "run").fresh


def test_a_run_that_must_be_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no run"), Run.open(tmp_path / "run", new=False):
        pass
    assert not (tmp_path / "run").exists()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run"), pytest.raises(RunBusyError, match="Another process is working"):
        work(tmp_path / "run")
    assert work(tmp_path / "run").rows == 6


def test_a_run_copied_without_hidden_files_goes_on(tmp_path: Path) -> None:
    work(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy", ignore=shutil.ignore_patterns(".*"))
    assert not work(tmp_path / "copy").fresh


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds files that aren't a run"):
        work(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def _killed(folder: Path, calls: int) -> None:
    """Do the work, but die by SIGKILL at the given number of flushes to the disk."""
    done = 0
    flush = os.fsync

    def fsync(descriptor: Any) -> None:
        nonlocal done
        done += 1
        if done == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        flush(descriptor)

    os.fsync = fsync  # type: ignore[assignment]
    work(folder)


def _kills(folder: Path) -> Iterator[int]:
    """Kill the work at every flush in turn; ends when it came through."""
    context = multiprocessing.get_context("fork")
    for calls in range(1, 100):
        process = context.Process(target=_killed, args=(folder, calls))
        process.start()
        process.join()
        if process.exitcode == 0:
            return
        yield calls


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork beside pyarrow's threads: nothing runs
def test_a_kill_at_any_flush_ends_at_the_same_bytes(tmp_path: Path) -> None:
    work(tmp_path / "unbroken")
    expected = content(tmp_path / "unbroken")
    kills = 0
    for kills in _kills(tmp_path / "each"):
        folder = tmp_path / f"after-{kills}"
        (tmp_path / "each").rename(folder)  # a fresh one for the next kill, this one to be gone on with
        assert work(folder).rows == 6
        assert content(folder) == expected
    assert kills == 10  # key, three shards with their tallies, the entry, the manifest without it and with it


def test_a_half_written_file_never_takes_the_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(TypeError), atomic(tmp_path / "file") as file:
        file.writelines([b"new", None])  # type: ignore[list-item]
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_fingerprint_is_the_hash_of_the_bytes_and_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    assert fingerprint(tmp_path / "a") == hashlib.sha256(b"1").hexdigest()
    listing = "".join(f"{name}\0{hashlib.sha256(data).hexdigest()}\n" for name, data in [("a", b"1"), ("b", b"2")])
    before = fingerprint(tmp_path)
    assert before == hashlib.sha256(listing.encode()).hexdigest()
    (tmp_path / "b").rename(tmp_path / "c")
    assert fingerprint(tmp_path) != before


def artifact(folder: Path, *, setting: int = 1, replace: bool = False) -> Entry:
    with Artifact.open(folder, stage="train", inputs={}, settings={"setting": setting}, replace=replace) as made:
        if made.entry:
            return made.entry
        (made.clear_result() / "model.bin").write_bytes(bytes([setting]))
        return made.commit({"model": {"rows": setting}}, Tally())


def test_an_artifact_appears_whole_and_is_found_again(tmp_path: Path) -> None:
    assert artifact(tmp_path / "model").fresh
    assert not artifact(tmp_path / "model").fresh
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["manifest.json", "model.bin"]


def test_an_artifact_of_other_settings_is_replaced_only_when_told(tmp_path: Path) -> None:
    artifact(tmp_path / "model")
    with pytest.raises(SettingsChangedError, match="setting was 1, now 2"):
        artifact(tmp_path / "model", setting=2)
    assert artifact(tmp_path / "model", setting=2, replace=True).rows == 2
    assert (tmp_path / "model" / "model.bin").read_bytes() == b"\x02"


def test_an_artifact_never_takes_a_folder_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds files that aren't a result of train"):
        artifact(tmp_path, replace=True)
    with pytest.raises(InputError, match=r"notes.txt is a file, and what train makes is a folder: name another\."):
        artifact(tmp_path / "notes.txt", replace=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_artifact_is_known_by_every_way_to_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("model")
    monkeypatch.chdir(tmp_path / "model" / "inner")
    for way in (Path("."), Path("")):  # taken whole, it would leave who works in it in a folder that is gone
        with pytest.raises(InputError, match=r"inner is the folder that you work in.* name one in it"):
            artifact(way)
    (tmp_path / "model" / "inner").rmdir()
    monkeypatch.chdir(tmp_path)
    assert artifact(Path("link")).fresh
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]
    assert not artifact(Path("model")).fresh
    monkeypatch.chdir(tmp_path / "model")
    assert not artifact(Path(".")).fresh
    with pytest.raises(SettingsChangedError, match=f"{tmp_path / 'model'}: "):
        artifact(Path("."), setting=2)
    assert content(tmp_path / "model").keys() == {"manifest.json", "model.bin"}


def test_a_link_that_leads_nowhere_and_the_root_take_no_artifact(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("none")
    with pytest.raises(InputError, match="link is a link that leads nowhere"):
        artifact(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    with pytest.raises(InputError, match="/ can't be made"):
        artifact(Path("/"))


def test_a_busy_artifact_is_told_by_its_own_name(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "model.partial.lock"),
        pytest.raises(RunBusyError, match=f"working in {tmp_path / 'model'}: wait"),
    ):
        artifact(tmp_path / "model")


def test_an_artifact_never_replaces_a_run(tmp_path: Path) -> None:
    work(tmp_path / "run")
    before = content(tmp_path / "run")
    with pytest.raises(InputError, match="holds files that aren't a result of train"):
        artifact(tmp_path / "run", replace=True)
    assert content(tmp_path / "run") == before


def test_an_abandoned_artifact_leaves_nothing(tmp_path: Path) -> None:
    with Artifact.open(tmp_path / "model", stage="train", inputs={}, settings={}) as made:
        (made.clear_result() / "model.bin").write_bytes(b"1")
        made.abandon()
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_behind_the_commit_has_left_is_tidied_up(tmp_path: Path) -> None:
    artifact(tmp_path / "model")
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial.lock").touch()
    with locked(tmp_path / "model.partial.lock"):  # another process, with --yes and other settings, is at work
        assert not artifact(tmp_path / "model").fresh
        assert (tmp_path / "model.partial").exists()
    assert not artifact(tmp_path / "model").fresh
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_times_come_back_as_they_were(tmp_path: Path) -> None:
    """Parquet stores no whole seconds: a table of issues must still read back by its contract."""
    moment = datetime(2024, 3, 1, 10, 0, 5, tzinfo=UTC)
    row = dict.fromkeys(ISSUES.names, "x") | {"number": 1, "labels": [], "mentions": []}
    row |= {"created_at": moment, "closed_at": None, "fetched_at": None}
    with Run.open(tmp_path / "run") as run:
        stage = run.stage("issues", tables=["issues"], inputs={}, settings={})
        stage.write(0, {"issues": from_rows([row], "issues")}, Tally(rows_in=1))
        stage.commit()
        assert run.table("issues").to_pylist() == [row]
