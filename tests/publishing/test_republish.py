"""Runs that change between pushes, and what a person did to the repository meanwhile."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.publishing import publish_folder
from stscurate.publishing.card import read_front_matter
from stscurate.publishing.outgoing import Outgoing, read_folder
from stscurate.publishing.preview import compare_cards, preview
from stscurate.publishing.push import published_matter
from stscurate.publishing.verify import reload
from stscurate.store import Run
from tests.local_hub import LocalHub
from tests.publishing.hubs import UPLOADS_WARN, as_pushed, contents, pushed, repository, serving
from tests.publishing.samples import pair, write_pairs, write_run, write_triplets

pytestmark = UPLOADS_WARN


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    with serving(tmp_path / "storage", monkeypatch) as found:
        yield found


def pairs(count: int, **known: Any) -> list[dict[str, Any]]:
    return [pair(f"p{n}", f"One text {n}.", f"Its other {n}.", split="train", **known) for n in range(count)]


def but_for_the_card(files: dict[str, bytes]) -> dict[str, bytes]:
    """The card isn't made anew, but brought to what it has to say: the order of its keys stays."""
    return {path: data for path, data in files.items() if path != "README.md"}


def by_config(card: str) -> dict[str, Any]:
    """The YAML at its top; the order of configs stays as well."""
    matter = read_front_matter(card)
    lists = {name: {item["config_name"]: item for item in matter[name]} for name in ("configs", "dataset_info")}
    return matter | lists


def published(folder: Path, rows: list[dict[str, Any]], *, triplets: bool = False) -> Outgoing:
    with Run.open(folder / "run") as run:
        write_pairs(run, rows)
        if triplets:
            write_triplets(run, ["one two three four"])
        publish_folder(run, folder / "set", licence="mit", title="A set")
    return read_folder(folder / "set")


def test_a_split_pushed_again_with_other_columns_loads_as_it_is_now(hub: LocalHub, tmp_path: Path) -> None:
    """Columns that came and went, whole numbers that became fractions: nothing of the former push is mixed in."""
    pushed(hub, published(tmp_path / "first", pairs(3, score=1.0, repository="a/b", licence="mit")), tmp_path / "first")
    second = published(tmp_path / "second", pairs(2, score=0.25, label=1, tier=2, flags=["long"]))
    told = preview(repository(hub), second).changes
    done = pushed(hub, second, tmp_path / "second" / "set", direct=True, reload=reload)
    assert done.rows == 2 * 4  # pairs, pair-class, gis, provenance, by `datasets` in another process
    assert but_for_the_card(contents(hub)) == but_for_the_card(as_pushed(second))
    assert by_config(contents(hub)["README.md"].decode()) == by_config(second.card)
    assert "pairs: train 3 rows, then 2" in told
    assert "pair-class: new, 2 rows" in told
    columns = "pair_id, origin, flags, repository, licence, score_from, then pair_id, origin, tier, flags, score_from"
    assert f"provenance: columns {columns}" in told


def test_a_config_added_later_keeps_the_default_and_what_people_wrote(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, published(tmp_path / "first", pairs(3, score=0.5)), tmp_path / "first")
    card = contents(hub)["README.md"].decode()
    card = card.replace("tags:\n", "annotations: mine # to the byte\ntags:\n")
    card = card.replace("<!-- stscurate: begin", "Mine.\n\n<!-- stscurate: begin", 1)
    hub.dataset("me/set").put({"README.md": card.encode()})
    second = published(tmp_path / "second", pairs(3, score=0.5), triplets=True)
    pushed(hub, second, tmp_path / "second" / "set", direct=True, reload=reload)
    there = contents(hub)["README.md"].decode()
    assert "annotations: mine # to the byte\n" in there
    assert "Mine.\n\n<!-- stscurate: begin" in there
    assert there.count("default: true") == 1
    assert there.index("config_name: pairs") < there.index("default: true") < there.index("config_name: triplets")
    hub.log.clear()
    again = pushed(hub, second, tmp_path / "second" / "set", direct=True)
    assert (again.fresh, len(hub.log)) == (False, 1)
    elsewhere = pushed(hub, second, tmp_path / "elsewhere")
    assert (elsewhere.sent, [asked.writes for asked in hub.log[1:]]) == (None, [False] * 3)


def test_a_config_that_is_gone_is_gone_from_the_card_too(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, published(tmp_path / "first", pairs(3, score=0.5), triplets=True), tmp_path / "first")
    second = published(tmp_path / "second", pairs(3, score=0.5))
    pushed(hub, second, tmp_path / "second", direct=True)
    assert but_for_the_card(contents(hub)) == but_for_the_card(as_pushed(second))
    assert by_config(contents(hub)["README.md"].decode()) == by_config(second.card)
    assert b"triplets" not in contents(hub)["README.md"].split(b"---")[1]


def test_a_dry_run_lists_what_would_change_and_writes_nothing(hub: LocalHub, tmp_path: Path) -> None:
    first = published(tmp_path / "first", pairs(3, score=0.5), triplets=True)
    found = preview(repository(hub), first)
    assert (found.exists, found.private, len(hub.log)) == (False, None, 1)
    assert {row["file"]: row["change"] for row in found.rows()} == dict.fromkeys(as_pushed(first), "added")
    pushed(hub, first, tmp_path / "first")
    hub.log.clear()
    same = preview(repository(hub), first)
    assert (same.exists, same.private, same.rows(), same.changes, len(hub.log)) == (True, True, [], [], 1)
    hub.log.clear()
    found = preview(repository(hub), published(tmp_path / "second", pairs(4, score=0.5)))
    assert [(row["file"], row["change"]) for row in found.rows()] == [
        ("README.md", "changed"),
        ("SHA256SUMS", "changed"),
        ("data/pairs/train-00000-of-00001.parquet", "changed"),
        ("data/provenance/train-00000-of-00001.parquet", "changed"),
        ("data/triplets/train-00000-of-00001.parquet", "removed"),
    ]
    assert found.changes == [
        "pairs: train 3 rows, then 4",
        "provenance: train 3 rows, then 4",
        "triplets: no longer published by this run",
    ]
    assert {(asked.method, asked.writes) for asked in hub.log} == {("GET", False)}
    assert len(hub.log) <= 4


def test_classes_that_change_places_are_told() -> None:
    old = {"pair-class": {"rows": {"train": 2}, "columns": {"labels": ["different", "same"], "score": "int64"}}}
    new = {"pair-class": {"rows": {"train": 2}, "columns": {"labels": ["same", "different"], "score": "float64"}}}
    assert compare_cards(old, new) == [
        "pair-class: column labels classes different, same, then classes same, different",
        "pair-class: column score int64, then float64",
    ]


def test_classes_that_changed_places_since_the_last_push_are_refused_unless_accepted(
    hub: LocalHub, tmp_path: Path
) -> None:
    """Also where the folder was made before the repository changed: a rival's push is no reason to turn them back."""
    first = published(tmp_path / "first", pairs(3, label=1))
    pushed(hub, first, tmp_path / "first")
    card = contents(hub)["README.md"].decode()
    repo = hub.dataset("me/set")
    repo.put(
        {
            "README.md": card.replace(
                "'0': different\n          '1': same", "'0': same\n          '1': different"
            ).encode()
        }
    )
    commits = len(repo.commits)
    refusal = (
        r"me/set: Not as it was published before: config pair-class: column labels was classes same, different, now "
        r"classes different, same\. Publish to another place, or .*; --accept schema publishes as it is and says so"
    )
    for direct in (True, False):
        with pytest.raises(InputError, match=refusal):
            pushed(hub, first, tmp_path / "first", direct=direct)
    assert len(repo.commits) == commits
    with Run.open(tmp_path / "first" / "run") as run:  # told before the folder is made, where it has to be
        given: dict[str, Any] = {"licence": "mit", "before": partial(published_matter, repository(hub))}
        with pytest.raises(InputError, match="Not as it was published before: config pair-class: column labels was"):
            publish_folder(run, tmp_path / "again", **given)
        publish_folder(run, tmp_path / "again", **given, accept=["schema"])
    second = read_folder(tmp_path / "again")
    assert "The gate `schema` was overridden when this was published. Its findings: 1." in second.card
    pushed(hub, second, tmp_path / "again", direct=True, schema=True)
    assert "'0': different\n          '1': same" in repo.head.files["README.md"].read().decode()


def test_reading_back_finds_a_single_row_that_differs(hub: LocalHub, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_run(run)
        publish_folder(run, tmp_path / "set", licence="mit")
    outgoing = read_folder(tmp_path / "set")
    done = pushed(hub, outgoing, tmp_path / "set")
    published(tmp_path / "other", pairs(4, score=0.5))
    place = "data/pairs/train-00000-of-00001.parquet"
    spoilt = {
        **hub.dataset("me/set").head.files,
        place: hub.kept((tmp_path / "other" / "set" / place).read_bytes(), place),
    }
    commit = hub.dataset("me/set").add(done.commit, spoilt, "spoilt", "", "nobody").oid
    with pytest.raises(ServiceError, match="config pairs, split train: column sentence1 differs in row 0"):
        reload(repository(hub), commit, outgoing, tmp_path / "set")
    assert json.loads((tmp_path / "set" / ".hub.json").read_text())
