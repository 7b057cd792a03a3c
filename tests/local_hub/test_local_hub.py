"""The local Hub against the real client, where a push itself doesn't go."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, HfFileSystem, hf_hub_download
from huggingface_hub.errors import (
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tests.local_hub import STRANGER, WRITER, LocalHub, Repository
from tests.publishing.hubs import UPLOADS_WARN, serving

pytestmark = UPLOADS_WARN


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    with serving(tmp_path / "storage", monkeypatch) as found:
        yield found


@pytest.fixture
def made(hub: LocalHub, tmp_path: Path) -> Repository:
    (tmp_path / "files" / "data").mkdir(parents=True)
    (tmp_path / "files" / "data" / "train.parquet").write_bytes(b"0123456789" * 100)
    (tmp_path / "files" / "card.json").write_bytes(b"{}")
    return hub.create("dataset", "me/set", private=True, folder=tmp_path / "files")


def api(hub: LocalHub, token: str | bool = WRITER) -> HfApi:
    return HfApi(endpoint=hub.address, token=token)


def listed(hub: LocalHub) -> dict[str, Any]:
    return {item.path: item for item in api(hub).list_repo_tree("me/set", repo_type="dataset", recursive=True)}


def test_listings_tell_paths_sizes_and_hashes(hub: LocalHub, made: Repository) -> None:
    data = made.head.files["data/train.parquet"]
    tree = listed(hub)
    assert sorted(tree) == [".gitattributes", "card.json", "data", "data/train.parquet"]
    assert (tree["data/train.parquet"].size, tree["data/train.parquet"].lfs.sha256) == (1000, data.sha256)
    assert tree["card.json"].blob_id == made.head.files["card.json"].blob_id
    found = api(hub).get_paths_info("me/set", ["data", "nowhere", "card.json"], repo_type="dataset")
    assert [item.path for item in found] == ["data", "card.json"]
    made.put({f"many/{number}": b"" for number in range(1001)})
    assert len(list(api(hub).list_repo_tree("me/set", "many", repo_type="dataset"))) == 1001  # two pages


def test_files_come_whole_or_in_part_and_by_their_etag(hub: LocalHub, made: Repository, tmp_path: Path) -> None:
    path = hf_hub_download(
        "me/set",
        "data/train.parquet",
        repo_type="dataset",
        endpoint=hub.address,
        token=WRITER,
        cache_dir=tmp_path / "c",
    )
    assert Path(path).read_bytes() == b"0123456789" * 100
    assert Path(path).resolve().name == made.head.files["data/train.parquet"].sha256
    files = HfFileSystem(endpoint=hub.address, token=WRITER)
    assert files.cat_file("datasets/me/set/data/train.parquet", start=5, end=12) == b"5678901"
    with pytest.raises(RemoteEntryNotFoundError):
        hf_hub_download("me/set", "no", repo_type="dataset", endpoint=hub.address, token=WRITER, cache_dir=tmp_path)


def test_branches_tags_and_commits_have_names(hub: LocalHub, made: Repository) -> None:
    first = made.history()[-1].oid
    api(hub).create_branch("me/set", branch="side", revision=first, repo_type="dataset")
    api(hub).create_tag("me/set", tag="v1", revision="side", repo_type="dataset")
    refs = api(hub).list_repo_refs("me/set", repo_type="dataset")
    assert {item.name: item.target_commit for item in refs.branches} == {"main": made.head.oid, "side": first}
    assert {item.name: item.target_commit for item in refs.tags} == {"v1": first}
    assert [item.title for item in api(hub).list_repo_commits("me/set", repo_type="dataset")] == [
        "upload",
        "initial commit",
    ]
    with pytest.raises(RevisionNotFoundError):
        api(hub).repo_info("me/set", repo_type="dataset", revision="v2")
    with pytest.raises(HfHubHTTPError, match="409"):
        api(hub).create_tag("me/set", tag="v1", repo_type="dataset")


def test_a_private_set_is_hidden_from_strangers(hub: LocalHub, made: Repository) -> None:
    assert api(hub).whoami()["name"] == "me"
    for token in (STRANGER, False):
        with pytest.raises(RepositoryNotFoundError):
            api(hub, token).repo_info("me/set", repo_type="dataset")
    with pytest.raises(RepositoryNotFoundError):
        api(hub).repo_info("me/set", repo_type="model")
