from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.publishing import publish_folder
from stscurate.publishing.card import read_front_matter
from stscurate.publishing.licences import hub_licence
from stscurate.store import Run
from tests.publishing.samples import pair, write_pairs


def test_licence_is_spelt_as_the_hub_does() -> None:
    assert [hub_licence(name) for name in ("MIT", "CC0-1.0", "LGPL-2.1-or-later", "ODbL-1.0")] == [
        "mit",
        "cc0-1.0",
        "lgpl-2.1",
        "odbl",
    ]
    with pytest.raises(InputError, match="Licence 'beerware' isn't an identifier"):
        hub_licence("beerware")


def publish(tmp_path: Path, *licences: str | None) -> str:
    """The card of pairs with these licences, one a row."""
    rows = [pair(f"p{n}", f"left {n}", f"right {n}", label=1, licence=name) for n, name in enumerate(licences)]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
        publish_folder(run, tmp_path / "set")
    return (tmp_path / "set" / "README.md").read_text()


def test_licence_is_needed_where_a_row_names_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 1 names none\): give one with --licence"):
        publish(tmp_path, "MIT", None)


def test_licence_that_all_rows_name_is_the_sets(tmp_path: Path) -> None:
    assert read_front_matter(publish(tmp_path, "MIT", "MIT"))["license"] == "mit"


def test_rows_of_several_licences_name_them_all(tmp_path: Path) -> None:
    card = publish(tmp_path, "MIT", "Apache-2.0", "MIT")
    assert read_front_matter(card)["license"] == ["apache-2.0", "mit"]
    assert "published under: apache-2.0, mit." in card
    assert "| Apache-2.0 | 1 |" in card
