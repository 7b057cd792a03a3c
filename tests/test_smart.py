"""The SMART collections' format."""

from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.files import read_table
from stscurate.tables import text_rows
from tests.shared_data import DATA

RECORDS = (
    ".I 1\n.T\nA title\n.A\nHay, J.\n.W\n First line\nsecond. I am.\n.X\n1\t5\t1\n.I 2\n.W \nOther words\n.B\n(1966)\n"
)
CISI = DATA / "cisi" / "CISI.ALL"


def test_records_are_read_by_field_and_references_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine.ALL").write_text(RECORDS)
    found = read_table(tmp_path / "mine.ALL")
    assert found.columns == {
        "id": ["1", "2"],
        "title": ["A title", None],
        "author": ["Hay, J.", None],
        "source": [None, "(1966)"],
        "text": ["First line\nsecond. I am.", "Other words"],
    }
    assert found.places == ["line 1", "line 11"]


def test_a_file_that_has_no_records_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.all").write_text("just words\n")
    with pytest.raises(InputError, match=r"holds no record that begins with \.I"):
        read_table(tmp_path / "mine.all")


def test_cisi_has_the_published_counts() -> None:
    if not CISI.exists():
        pytest.skip(f"{CISI} isn't here")
    words = [len(row.texts["text"].split()) for row in text_rows(CISI)]
    mean = sum(words) / len(words)
    assert (len(words), max(words), min(words)) == (1_460, 550, 8)
    assert mean == pytest.approx(119.2, abs=0.05)
    assert (sum((word - mean) ** 2 for word in words) / len(words)) ** 0.5 == pytest.approx(63.3, abs=0.05)
