"""The lists of repositories and of what is left out."""

from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.sources.lists import Listed, OptOut, read_opt_out, read_repositories
from tests.conftest import ROOT

LABELS = ("duplicate",)


def test_repositories_are_read_from_toml_and_from_lines(tmp_path: Path) -> None:
    listed = read_repositories(ROOT / "datasets" / "github-issues" / "repositories.toml")
    assert listed[0] == Listed("microsoft/vscode", ("*duplicate",), "MIT")
    assert Listed("rust-lang/rust", (), "Apache-2.0 OR MIT") in listed
    path = tmp_path / "names.txt"
    path.write_text("# mine\na/b\n\nhttps://github.com/c/d.git  # theirs\nA/B\n")
    assert read_repositories(path) == [Listed("a/b", LABELS), Listed("c/d", LABELS)]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("names.txt", "a/b\njust words\n", "line 2"),
        ("names.txt", "# nothing\n", "no repository"),
        ("names.toml", "repository = 3", "no list of tables"),
        ("names.toml", "[[repository]]\nname = 3", r"\[\[repository\]\] 1"),
        ("names.toml", "[[repository]", "TOML"),
        ("names.toml", '[[repository]]\nname = "a/b"\nduplicate_labels = "x"', "duplicate_labels"),
        ("names.toml", '[[repository]]\nname = "a/b"\nlicence = 3', "licence is 3: give an SPDX"),
    ],
)
def test_a_list_that_cannot_be_read_is_told_by_its_place(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=told):
        read_repositories(tmp_path / name)


def test_a_missing_list_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    for read in (read_repositories, read_opt_out):
        with pytest.raises(InputError, match="isn't a file"):
            read(tmp_path / "none.txt")


def test_an_opt_out_file_names_users_repositories_and_issues(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("@Some-One\nother  # by mail\nA/b\na/c#12\nhttps://github.com/D/e/issues/3\n")
    expected = OptOut(frozenset({"some-one", "other"}), frozenset({"a/b"}), frozenset({("a/c", 12), ("d/e", 3)}))
    assert read_opt_out(path) == expected
    path.write_text("two words\n")
    with pytest.raises(InputError, match="line 1"):
        read_opt_out(path)
