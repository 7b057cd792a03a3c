"""What is shown: whatever a file holds can be printed, and no row is left out without a word."""

import io
import json
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer

from stscurate.audit.size_bias import read_corpus
from stscurate.cli import refused as refusal
from stscurate.cli.console import Console
from stscurate.cli.options import check_place
from stscurate.cli.tallies import lines_of
from stscurate.cli.training import Shared, draw_curve
from stscurate.publishing import publish_folder
from stscurate.records import Tally
from stscurate.store import Run
from stscurate.training.gate import held_out
from tests.conftest import Command
from tests.publishing.samples import PUBLISHED_PAIRS, write_run

HALF = '{"text1": "a \\ud800 b", "text2": "c", "score": NaN}\n'
SENTENCES = ["It crashes at start.", "The start crashes.", "It rains.", "The sun shines.", "A cat sleeps."]


def test_show_prints_what_neither_json_nor_a_terminal_can_hold(tmp_path: Path, command: Command) -> None:
    (tmp_path / "half.jsonl").write_text(HALF)
    assert "text1: a \\ud800 b" in command("show", tmp_path / "half.jsonl").stdout
    found = json.loads(command("show", tmp_path / "half.jsonl", "--json").stdout)
    assert found["rows"] == [{"text1": "a \ud800 b", "text2": "c", "score": None}]
    pq.write_table(pa.table({"text": pa.array([b"\xff"])}), tmp_path / "bytes.parquet")
    assert json.loads(command("show", tmp_path / "bytes.parquet", "--json").stdout)["rows"] == [{"text": "b'\\xff'"}]


def test_control_characters_are_shown_and_never_obeyed(tmp_path: Path, command: Command) -> None:
    (tmp_path / "odd.jsonl").write_text(json.dumps({"text": "a\x1b[2Jb\x07\x00\x9b1m", "\x1bc": "c"}))
    shown = command("show", tmp_path / "odd.jsonl").stdout
    assert "    text: a\\x1b[2Jb\\x07\\x00\\x9b1m\n    \\x1bc: c\n" in shown
    assert not set(shown) & {"\x1b", "\x07", "\x00", "\x9b"}
    assert json.loads(command("show", tmp_path / "odd.jsonl", "--json").stdout)["rows"][0]["text"].startswith(
        "a\x1b[2J"
    )
    refused = command("triplets", tmp_path / "odd.jsonl", "--columns", "text=\x1b", "--out", tmp_path / "run")
    assert refused.stderr == f"stscurate: {tmp_path / 'odd.jsonl'} has no column \\x1b; it has text, \\x1bc.\n"
    leaks = command("audit", "leaks", f"a\x1b[1m={tmp_path / 'odd.jsonl'}", f"b={tmp_path / 'odd.jsonl'}")
    assert "a\\x1b[1m" in leaks.stdout
    assert "\x1b" not in leaks.stdout


def test_counts_of_numbered_things_are_told_from_the_numbers() -> None:
    tally = Tally(dropped=Counter({"empty_text": 1, "repeated_text": 2}))
    tally.counts["tier"] = Counter({"1": 30, "3": 12, "2": 1200})
    assert list(lines_of(tally)) == ["tier: 2 = 1,200, 1 = 30, 3 = 12", "dropped: repeated text 2, empty text 1"]


def test_counts_are_told_in_words_and_names_of_users_as_they_are() -> None:
    tally = Tally()
    tally.drop("other_split", 2)
    tally.drop("split_dev_2")
    tally.count("tokens", "texts_over_128", 5)
    tally.count("claims", "weakly_said")
    tally.count("not_asked", "my_judge", 3)
    tally.count("failed", "my_judge: not_finite")
    tally.count("broken_lines", "2015_01_01.json")
    tally.count("rows of my_pairs.csv", "not_reached", 4)
    assert list(lines_of(tally)) == [
        "broken lines: 2015_01_01.json 1",
        "claims: weakly said 1",
        "failed: my_judge: not finite 1",
        "not asked: my_judge 3",
        "rows of my_pairs.csv: not reached 4",
        "tokens: texts over 128 = 5",
        "dropped: other split = 2, split dev_2 = 1",
    ]


@pytest.mark.parametrize("group", [(), ("audit",), ("train",)])
def test_help_lists_each_command_with_its_whole_sentence(command: Command, group: tuple[str, ...]) -> None:
    listed = command(*group, "--help").stdout.partition("Commands:\n")[2]
    told = "".join(listed.split())  # "non-duplicate" is broken in two
    assert "..." not in told
    names = [line.split()[0] for line in listed.splitlines() if line[2:3].strip()]
    assert len(names) >= 4
    for name in names:
        own = command(*group, name, "--help").stdout.split("\n\n")[1]
        assert name + "".join(own.split()) in told


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("width", "drawn"), [(80, True), (20, False)])
def test_a_table_that_is_too_wide_is_told_row_by_row(monkeypatch: pytest.MonkeyPatch, width: int, drawn: bool) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    rows = [{"set": "stsb", "pairs": 1379, "Spearman": 0.82034, "paired": True}, {"set": "sick", "pairs": 4927}]
    Console(as_json=False, quiet=False).table("gold", rows)
    shown = terminal.getvalue()
    whole = "gold\n\n  set: stsb\n  pairs: 1,379\n  Spearman: 0.8203\n  paired: yes\n\n  set: sick\n  pairs: 4,927\n\n"
    assert (shown == whole) is not drawn
    assert all(number in shown for number in ("1,379", "0.8203", "4,927", "stsb", "sick", "yes"))


def test_a_table_is_kept_by_its_key_and_drawn_by_its_title_and_headers(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"rows_in": 3, "set": "stsb"}]
    for as_json in (True, False):
        console = Console(as_json=as_json, quiet=False)
        console.table("sets", rows, title="sets, of stsb", headers={"rows_in": "rows read"})
        console.draw("the same", rows)
        console.finish()
        if as_json:
            assert json.loads(capsys.readouterr().out) == {"sets": rows}
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "sets, of stsb"
    assert lines[2].split() == ["rows", "read", "set"]
    assert lines[4].split() == ["3", "stsb"]
    assert "the same" in lines


def test_a_curve_names_its_columns_in_words_and_its_sources_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = {"step": 3, "loss": 0.5, "my_pairs.csv: in_batch": 0.25, "spearman": 0.8}
    curve = {"pooling": "mean", "points": [point], "best": None, "padding_share": 0.0}
    (tmp_path / "training_curve.json").write_text(json.dumps(curve))
    draw_curve(Console(as_json=False, quiet=False), Shared(data=[], out=tmp_path, learning_rate=1e-5))
    headers = capsys.readouterr().out.splitlines()[2]
    assert re.split(r"\s{2,}", headers.strip()) == ["step", "loss", "my_pairs.csv: in-batch", "Spearman"]


def test_numbers_that_are_none_are_a_dash_and_no_zero_is_negative(capsys: pytest.CaptureFixture[str]) -> None:
    Console(as_json=False, quiet=False).table("t", [{"a": float("nan"), "b": -1e-9, "c": -0.5, "d": False}])
    assert capsys.readouterr().out.splitlines()[4].split() == ["-", "0.0000", "-0.5000", "no"]


def test_a_folder_that_holds_no_rows_is_told_in_one_line_with_the_mend(tmp_path: Path, command: Command) -> None:
    (tmp_path / "empty").mkdir()
    told = command("show", tmp_path / "empty").stderr
    assert told.endswith(
        "give a file of rows, a run, or a folder that holds such files or that `save_to_disk` wrote.\n"
    )
    (tmp_path / "texts.txt").write_text("one two three four five six\n")
    for name in ("runs/a", "runs/b"):
        assert command("triplets", tmp_path / "texts.txt", "--out", tmp_path / name).exit_code == 0
    told = command("show", tmp_path / "runs").stderr
    assert told == (
        f"stscurate: {tmp_path / 'runs'} is no run, but holds a, b: name one of them, as in {tmp_path / 'runs/a'}.\n"
    )


def test_show_counts_rows_as_people_do(tmp_path: Path, command: Command) -> None:
    (tmp_path / "texts.txt").write_text("a\n" * 7)
    assert command("show", tmp_path / "texts.txt").stdout.startswith(
        f"{tmp_path / 'texts.txt'}: 7 rows; the first 5:\n"
    )
    (tmp_path / "one.txt").write_text("a\n")
    assert command("show", tmp_path / "one.txt").stdout.startswith(f"{tmp_path / 'one.txt'}: 1 row:\n")


def test_show_tells_of_a_model_and_of_a_run_without_a_stage(tmp_path: Path, command: Command, tiny_model: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("text1,text2,score\n" + "".join(f"{text},A dog.,{i / 4}\n" for i, text in enumerate(SENTENCES)))
    train = ("train", "angle", "--data", pairs, "--model", tiny_model, "--out", tmp_path / "model")
    assert command(*train).exit_code == 0
    shown = command("show", tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokens = sum(len(tokenizer(text)["input_ids"]) for text in {*SENTENCES, "A dog."})
    assert shown.stdout == (
        f"train (finished before): 5 rows in; 5 trained; in {tmp_path / 'model'}\n"
        "    texts: distinct 6, truncated 0\n"
        f"    tokens: read {tokens}, cut 0\n"
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").touch()
    assert "has no finished stage" in command("show", tmp_path / "run").stdout


def test_show_tells_of_all_configs_of_a_published_set_with_their_first_rows(tmp_path: Path, command: Command) -> None:
    with Run.open(tmp_path / "run") as run:
        write_run(run)
        publish_folder(run, tmp_path / "set", licence="mit")
    found = json.loads(command("show", tmp_path / "set", "--rows", "2", "--json").stdout)["configs"]
    assert {name: config["splits"] for name, config in found.items()} == {
        "pairs": {"train": 4, "validation": 2, "test": 2},
        "pair-class": {"train": 3, "validation": 1, "test": 1},
        "gis": {"train": 3, "validation": 1, "test": 1},
        "provenance": {"train": 4, "validation": 2, "test": 2},
        "triplets": {"train": 2},
    }
    assert [tuple(row.values()) for row in found["pairs"]["rows"]] == PUBLISHED_PAIRS["train"][:2]
    assert found["triplets"]["rows"][0] == {
        "anchor": "one two three four", "positive": "one two three", "negative": "one two"
    }  # fmt: skip
    shown = command("show", tmp_path / "set", "--rows", "2").stdout
    assert shown.count(", split train; the first 2:") == 5
    assert "config gis, split train" in shown
    assert "    labels: 1\n" in shown
    place = tmp_path / "set" / "data" / "gis" / "test-00000-of-00001.parquet"
    place.write_bytes(place.read_bytes()[:-9])
    assert f"{place} isn't a whole Parquet file" in command("show", tmp_path / "set").stderr


def test_rows_that_reading_left_out_are_counted_on_screen(tmp_path: Path, command: Command, tiny_model: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "text1,text2,score\n" + "".join(f"{text},A dog.,{i / 4}\n" for i, text in enumerate(SENTENCES)) + ",A dog.,1\n"
    )
    annotated = command("annotate", pairs, "--llm", f"embedding:{tiny_model}", "--out", tmp_path / "run").stdout
    assert "pairs: 6 rows in; 5 pairs;" in annotated
    assert "dropped: empty text 1" in annotated
    train = ("train", "angle", "--data", pairs, "--model", tiny_model, "--out", tmp_path / "model", "--json")
    (stage,) = json.loads(command(*train).stdout)["stages"]
    assert (stage["rows_in"], stage["dropped"], stage["outputs"]["trained"]["rows"]) == (6, {"empty_text": 1}, 5)
    evaluated = json.loads(command("evaluate", tiny_model, "--set", pairs, "--json").stdout)
    assert [(row["rows"], row["dropped"]) for row in evaluated["results"]] == [(5, {"empty_text": 1})]
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join([*SENTENCES, "", SENTENCES[0], SENTENCES[0].upper()]))
    sampled = ("sample-pairs", texts, "--model", tiny_model, "--out", tmp_path / "sampled", "--json")
    (stage,) = json.loads(command(*sampled).stdout)["stages"]
    assert (stage["rows_in"], stage["dropped"]) == (8, {"empty_text": 1, "repeated_text": 2})


def test_names_are_shown_as_they_are_and_not_as_markup(tmp_path: Path, command: Command) -> None:
    splits = tmp_path / "splits.csv"
    splits.write_text("text,split\nThe same text.,[/b]\nThe same text.,test [red]x :smile:\n")
    shown = command("audit", "leaks", splits).stdout
    assert "[/b]" in shown
    assert "test [red]x :smile:" in shown


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="another user is tried in a child process, which this system has not"
)
def test_a_place_without_rights_is_told_before_the_work() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        child = os.fork()
        if not child:  # whoever may do anything has rights everywhere
            if os.getuid() == 0:
                os.setuid(65534)
            told = ""
            try:
                check_place(folder / "new" / "rows.parquet", [], yes=False)
            except PermissionError as error:
                told = refusal.told(error)[0]
            os._exit(told != f"No right to use {folder}: choose another place, or change its rights.")
        assert os.waitpid(child, 0)[1] == 0
        folder.chmod(0o755)
    check_place(folder / "new" / "rows.parquet", [], yes=False)


def test_what_is_read_is_never_written_over(tmp_path: Path, command: Command) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("text1,text2,score\nA cat.,A cat.,1\nA cat.,A cat.,0\n")
    (tmp_path / "other.csv").write_text("text\nA cat.\n")
    before = pairs.read_bytes()
    for given in (["labels", pairs], ["leaks", pairs, tmp_path / "other.csv"], ["leaks", f"a={pairs}", f"b={pairs}"]):
        refused = command("audit", *given, "--out", pairs, "--yes")
        assert refused.exit_code == 2
        assert "is the file that is read, and would be lost: name another" in refused.stderr
    assert "is a folder, and takes a file" in command("audit", "labels", pairs, "--out", tmp_path, "--yes").stderr
    below = command(
        "audit", "labels", pairs, "--model", "no-such-model", "--out", tmp_path / "other.csv" / "rows.parquet"
    )
    assert f"{tmp_path / 'other.csv'} can't be a file or folder here" in below.stderr  # told before the model is sought
    named = command("audit", "labels", pairs, "--out", tmp_path / "rows.csv").stderr
    assert "what is written is Parquet. Name it rows.parquet" in named
    assert pairs.read_bytes() == before
    assert command("audit", "labels", pairs, "--out", tmp_path / "rows.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 2


def test_scores_on_any_scale_are_no_matter_where_texts_alone_are_read(
    tmp_path: Path, command: Command, tiny_model: Path
) -> None:
    lines = [f"{one},{two},{number % 6}" for number, (one, two) in enumerate(pairwise(SENTENCES))]
    pairs, other = tmp_path / "pairs.csv", tmp_path / "other.csv"
    pairs.write_text("\n".join(["sentence1,sentence2,score", *lines]))
    other.write_text("\n".join(["q,d,s", *lines]))
    assert read_corpus(pairs).documents == SENTENCES
    assert len(held_out(pairs).rows) == 4
    evaluate = ("evaluate", tiny_model, "--set", other, "--columns", "q,d,s", "--scale", "0-5", "--json")
    for trained in (pairs, other):  # the columns are the set's, and a file of training texts may have the usual ones
        result = command(*evaluate, "--resamples", 100, "--train", trained)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["results"][0]["rows_clean"] == 0
