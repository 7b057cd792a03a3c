"""The list of repositories: complete, well formed, and as the collector reads it."""

import re
import tomllib
from typing import Any

import pytest

from stscurate.resources import definition
from stscurate.sources.lists import read_repositories

PATH = definition("github-issues/repositories.toml")
ROWS: list[dict[str, Any]] = tomllib.loads(PATH.read_text("utf-8"))["repository"]

REQUIRED = {"name", "licence", "language", "domain", "duplicate_labels", "why"}
# SPDX License List; an expression that isn't here is a slip of the pen until it is added on purpose.
LICENCES = {
    "AGPL-3.0-only",
    "AGPL-3.0-or-later",
    "Apache-2.0",
    "Apache-2.0 OR MIT",
    "Apache-2.0 WITH LLVM-exception",
    "Apache-2.0 WITH Swift-exception",
    "BSD-3-Clause",
    "GPL-2.0-or-later",
    "GPL-3.0-or-later",
    "MIT",
    "MPL-2.0",
    "Python-2.0.1",
    "Unlicense",
}


def test_fifty_five_repositories_are_followed_by_ten_reserves() -> None:
    assert [row.get("reserve", False) for row in ROWS] == [False] * 55 + [True] * 10


def test_no_repository_is_named_twice() -> None:
    names = [row["name"].lower() for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.get("name", "without a name"))
def test_every_row_is_complete_and_well_formed(row: dict[str, Any]) -> None:
    assert row.keys() >= REQUIRED
    assert row.keys() <= REQUIRED | {"labels_checked", "reserve"}
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", row["name"], re.ASCII)
    assert row["licence"] in LICENCES
    assert all(
        isinstance(row[key], str) and row[key].strip() == row[key] != "" for key in REQUIRED - {"duplicate_labels"}
    )
    assert row["why"].endswith(".")
    labels = row["duplicate_labels"]
    assert all(isinstance(label, str) and label.strip() == label != "" for label in labels)
    assert len(set(labels)) == len(labels)
    # Both are left out where they say nothing.
    assert row.get("labels_checked", False) is False
    assert row.get("reserve", True) is True


def test_the_collector_reads_names_and_labels_as_they_stand() -> None:
    read = [(listed.name, list(listed.labels)) for listed in read_repositories(PATH)]
    rows = [(row["name"], row["duplicate_labels"]) for row in ROWS]
    assert read == rows[:55]
