"""Numbers with what they count, in what a person reads."""

from pathlib import Path

import pytest

from stscurate.cli.console import Console
from stscurate.manifest import Entry
from stscurate.records import Tally
from stscurate.wording import counted


def test_one_is_told_apart_from_several() -> None:
    assert [counted(number, "pair") for number in (0, 1, 2, 12_345)] == ["0 pairs", "1 pair", "2 pairs", "12,345 pairs"]
    assert counted(1, "row holds", "rows hold") == "1 row holds"
    assert counted(3, "repository", "repositories") == "3 repositories"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (1, "a: 1 row in; 1 pair, 1 repository, 1 judged; in here"),
        (2, "a: 2 rows in; 2 pairs, 2 repositories, 2 judged; in here"),
    ],
)
def test_a_stages_line_says_so(rows: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {name: {"rows": rows} for name in ("pairs", "repositories", "judged")}
    Console(as_json=False, quiet=False).stage(Entry("a", {}, outputs, Tally(rows_in=rows), {}, Path("here")))
    assert capsys.readouterr().out.splitlines()[0] == told
