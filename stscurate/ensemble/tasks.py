"""Pairs for people to label, as files that a spreadsheet, Argilla and Label Studio read."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from stscurate.disk import atomic, write_json
from stscurate.errors import InputError
from stscurate.files import read_table
from stscurate.resources import definition
from stscurate.wording import counted

_KNOWN = ("machine_score", "spread", "missing_mass", "entropy", "order_gap")
COLUMNS = ("pair_id", "text1", "text2", "score", *_KNOWN)
_STUDIO = """<View>
  <Header value="How close are the meanings? 0: nothing to do with each other, 5: the same"/>
  <Text name="text1" value="$text1"/>
  <Text name="text2" value="$text2"/>
  <Number name="score" toName="text1" min="0" max="5" step="0.5"/>
</View>
"""


def write_tasks(folder: Path, rows: list[dict[str, Any]], pairs: pa.Table) -> None:
    """Write labelling tasks for the pairs of `rows` (as `review.doubts` gives them), in their order.

    pairs.csv: a row a pair, the column `score` to be filled in; it begins with a byte order mark, without which
    spreadsheets misread anything but ASCII. argilla.json: records with the fields text1 and text2 and, as metadata,
    what is known; the question is to be named `score`. label_studio.json and label_studio.xml: tasks and their
    labelling interface. guidelines.md: how to label. Each file is there whole or not at all.

    InputError where the folder holds other files, or a pair isn't in the run.
    """
    texts = dict(
        zip(
            pairs["pair_id"].to_pylist(),
            zip(*(pairs[side].to_pylist() for side in ("text1", "text2")), strict=True),
            strict=True,
        )
    )
    missing = [row["pair_id"] for row in rows if row["pair_id"] not in texts]
    if missing:
        raise InputError(f"The run has scores of pairs that it doesn't have, such as {missing[0]}: annotate it again.")
    check_tasks_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    full = [
        {**row, "text1": texts[row["pair_id"]][0], "text2": texts[row["pair_id"]][1]}
        | {"score": None, "machine_score": row["score"]}
        for row in rows
    ]
    _write(folder / "pairs.csv", "\ufeff" + _csv(full))
    write_json(folder / "argilla.json", [_argilla(row) for row in full])
    write_json(folder / "label_studio.json", [_studio(row) for row in full])
    _write(folder / "label_studio.xml", _STUDIO)
    _write(folder / "guidelines.md", definition("labelling/guidelines.md").read_text("utf-8"))


def check_tasks_folder(folder: Path) -> None:
    """InputError where tasks can't go there: it is a file, holds others than theirs, or what people filled in."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and tasks are several: name a folder.")
    if not folder.is_dir():
        return
    # Hidden files are those of the system, or of a spreadsheet that is open.
    if not {path.name for path in folder.iterdir() if not path.name.startswith(".")} <= _files():
        raise InputError(f"{folder} holds other things: name a folder of its own for the tasks.")
    if filled := _filled(folder / "pairs.csv"):
        raise InputError(
            f"{folder / 'pairs.csv'} {filled}: name another folder, or move the file away. Its labels are read by "
            f"`stscurate annotate RUN --llm file:{folder / 'pairs.csv'}`."
        )


def _filled(path: Path) -> str:
    """What keeps a file of tasks from being written anew; "" where it is as it was written, or isn't there."""
    if not path.exists():
        return ""
    try:
        scores = read_table(path).columns["score"]
    except (InputError, KeyError):
        return "isn't as it was written"
    labelled = sum(score not in (None, "") for score in scores)
    return f"holds {counted(labelled, 'label')}" if labelled else ""


def _argilla(row: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: row[name] for name in _KNOWN}
    fields = {"text1": row["text1"], "text2": row["text2"]}
    return {"id": row["pair_id"], "fields": fields, "metadata": known, "responses": {}, "suggestions": {}}


def _studio(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"data": {name: row[name] for name in COLUMNS if name != "score"}}


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\r\n")  # RFC 4180
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _files() -> set[str]:
    return {"pairs.csv", "argilla.json", "label_studio.json", "label_studio.xml", "guidelines.md"}


def _write(path: Path, text: str) -> None:
    with atomic(path) as file:
        file.write(text.encode("utf-8"))
