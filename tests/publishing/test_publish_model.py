import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.publishing.model import read_model
from tests.conftest import ROOT
from tests.local_hub import WRITER, LocalHub

CARD = '---\nlibrary_name: sentence-transformers\n---\n\n# Tiny\n\nmodel = SentenceTransformer("path/to/this/folder")\n'


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A model among things that lie about in folders."""
    folder = tmp_path / "tiny"
    shutil.copytree(tiny_model, folder)
    (folder / "README.md").write_text(CARD)
    for name in ("training_texts.sha256", "training_curve.json"):
        (folder / name).write_text("{}")
    strays = [".env", "notes.txt", "pytorch_model.bin", "row_losses.parquet", "manifest.json", "1_Pooling/private.csv"]
    for name in [*strays, "checkpoints/model.safetensors", ".git/config.json"]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(WRITER)
    return folder


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    with LocalHub.serve(tmp_path / "storage") as found:
        yield found


def test_nothing_but_known_files_of_a_model_leaves(model: Path, tiny_model: Path) -> None:
    outgoing, left = read_model(model, "me/tiny")
    made = {path.relative_to(tiny_model).as_posix() for path in tiny_model.rglob("*") if path.is_file()} - {"README.md"}
    assert set(outgoing.files) == made | {"training_texts.sha256", "training_curve.json", "SHA256SUMS"}
    assert left == [
        "1_Pooling/private.csv",
        "checkpoints/model.safetensors",
        "manifest.json",
        "notes.txt",
        "pytorch_model.bin",
        "row_losses.parquet",
    ]
    assert outgoing.card == (
        "---\nlibrary_name: sentence-transformers\n---\n<!-- stscurate: begin model -->\n# Tiny\n\n"
        'model = SentenceTransformer("me/tiny")\n<!-- stscurate: end model -->\n'
    )


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "modules.json").unlink(), "isn't a model: it needs modules.json and weights"),
        (lambda folder: (folder / "README.md").unlink(), "has no card: write README.md"),
        (lambda folder: (folder / "README.md").write_text(f"token {WRITER[:9]}abcdefghijklmnopqrstuvwxyz"), "a secret"),
    ],
)
def test_what_is_no_model_or_has_no_card_or_a_secret_in_it_is_refused(model: Path, spoil: object, told: str) -> None:
    spoil(model)  # type: ignore[operator]
    with pytest.raises(InputError, match=told):
        read_model(model, "me/tiny")


def test_a_model_is_pushed_read_back_and_found_by_its_name(hub: LocalHub, model: Path, tmp_path: Path) -> None:
    def call(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stscurate", *map(str, words)]
        environment = {**hub.environment(tmp_path / "home"), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2")}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=250
        )

    done = call("publish-model", model, "me/tiny", "--tag", "v1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    made = hub.model("me/tiny")
    assert (made.private, made.tags) == (True, {"v1": json.loads(done.stdout)["commit"]})
    assert not [path for path, file in made.head.files.items() if WRITER.encode() in file.read()]
    hub.log.clear()
    again = call("publish-model", model, "me/tiny", "--tag", "v1")
    assert "Nothing to do: all of it is there, unchanged" in again.stdout
    assert [asked.method for asked in hub.log] == ["GET"]
