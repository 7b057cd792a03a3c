"""The look before publishing: what gates find and which files there would be, with nothing written."""

import json
from pathlib import Path

from typer.testing import CliRunner

from stscurate.cli import app
from stscurate.publishing import publish_folder, review
from stscurate.store import Run
from tests.publishing.samples import files, pair, write_pairs, write_run


def test_a_dry_run_tells_gates_and_files_and_writes_nothing(tmp_path: Path) -> None:
    rows = [
        pair("p", "same text", "Mail jo@example.org", label=1, split="train"),
        pair("q", "same text", "x", label=0, split="test"),
    ]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
    before = files(tmp_path)
    command = [
        "publish",
        str(tmp_path / "run"),
        "--to",
        str(tmp_path / "set"),
        "--licence",
        "mit",
        "--accept",
        "personal",
    ]
    done = CliRunner().invoke(app, [*command, "--dry-run", "--json"])
    assert done.exit_code == 0, done.output
    assert {name: data for name, data in files(tmp_path).items() if not name.endswith(".lock")} == {
        name: data for name, data in before.items() if not name.endswith(".lock")
    }
    told = json.loads(done.stdout)
    states = {gate["gate"]: (gate["state"], gate["findings"]) for gate in told["gates"]}
    assert states == {
        **dict.fromkeys(("empty", "scale", "duplicate", "secret", "near", "licence", "size"), ("passes", 0)),
        "schema": ("not asked for", 0),
        "leak": ("refuses", 1),
        "personal": ("accepted", 1),
    }
    assert told["findings"]["personal"]["found"] == ["e-mail address in pairs row 0 (p), text2, in train"]
    assert told["findings"]["leak"]["mend"] == "Split by component, or drop the rows of one side"
    assert {file["path"]: (file["state"], file["rows"]) for file in told["files"]} == {
        f"data/{config}/{split}-00000-of-00001.parquet": ("added", 1)
        for config in ("pairs", "pair-class", "gis", "provenance")
        for split in ("train", "test")
    }
    plain = CliRunner().invoke(app, [*command, "--dry-run"]).stdout
    assert "Splits leak: the same text in pairs row 0 (p), text1, in train and pairs row 1 (q)" in plain
    assert "These gates would refuse: leak." in plain


def test_sizes_and_hashes_are_those_of_the_files_and_states_those_of_the_folder(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_run(run)
        entry = publish_folder(run, tmp_path / "set", licence="mit")
        found = review(run, tmp_path / "set", licence="mit")
        assert {file.state for file in found.files} == {"same"}
        for file in found.files:
            assert file.bytes == (tmp_path / "set" / file.path).stat().st_size
        assert sum(file.rows for file in found.files) == sum(output["rows"] for output in entry.outputs.values())
        (tmp_path / "set" / "data" / "gis" / "test-00000-of-00001.parquet").write_bytes(b"other")
        (tmp_path / "set" / "data" / "pairs" / "test-00001-of-00002.parquet").write_bytes(b"of a larger set")
        (tmp_path / "set" / "data" / "triplets" / "train-00000-of-00001.parquet").unlink()
        states = {file.path: file.state for file in review(run, tmp_path / "set", licence="mit").files}
    assert {path.removeprefix("data/"): state for path, state in states.items() if state != "same"} == {
        "gis/test-00000-of-00001.parquet": "changed",
        "triplets/train-00000-of-00001.parquet": "added",
        "pairs/test-00001-of-00002.parquet": "removed",
    }
