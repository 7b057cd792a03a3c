"""What arrived, read back as a stranger would: another process, empty caches, the commit by its hash.

`reload` starts that process; `main` is what runs in it, and says on standard output what it found, as JSON.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.disk import fingerprint
from stscurate.errors import ServiceError, first_line
from stscurate.publishing.card import read_front_matter
from stscurate.publishing.checksums import CARD
from stscurate.publishing.outgoing import Outgoing
from stscurate.services.hub import HubRepository
from stscurate.wording import counted

TRIES = 3
_ROWS = 10_000  # compared at once
_TEXTS = ["The file is empty.", "程序在启动时崩溃。"]

Reload = Callable[[HubRepository, str, Outgoing, Path], int]


class _DiffersError(Exception):
    """What was read back isn't what was sent."""


def reload(repository: HubRepository, commit: str, outgoing: Outgoing, folder: Path) -> int:
    """Read the commit back and compare all of it with `folder`: bytes, and rows (or a model's embeddings).

    Gives how many rows were compared. ServiceError where anything differs, or can't be read.
    """
    sums = {path: file.sha256 for path, file in outgoing.files.items()}
    task = {"name": repository.name, "kind": repository.kind, "commit": commit, "sums": sums, "folder": str(folder)}
    found: dict[str, Any] = {}
    for _ in range(TRIES):
        # beside the folder, where there is place for it; the system's own may be small
        with tempfile.TemporaryDirectory(prefix=".reload-", dir=folder.parent) as home:
            found = _apart(task, _environment(repository, home))
        if "failed" not in found:
            break
    if "rows" in found:
        return int(found["rows"])
    token = repository.token
    told = str(found.get("differs") or found["failed"])
    told = told.replace(token, "***") if token else told
    why = "isn't what was sent" if "differs" in found else "can't be read back"
    raise ServiceError(
        f"Commit {commit} of {repository.name} {why} ({told}). It isn't tagged. Run the same command again."
    )


def _apart(task: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    code = "from stscurate.publishing.verify import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(task),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, LookupError):
        lines = done.stderr.strip().splitlines()
        return {"failed": lines[-1][:200] if lines else f"exit code {done.returncode}"}


def _environment(repository: HubRepository, home: str) -> dict[str, str]:
    """As it is here, but for the places of caches and the token, which a file in the usual home may hold."""
    places = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "HF_TOKEN_PATH", "HF_TOKEN")
    found = {name: value for name, value in os.environ.items() if name not in places}
    found |= {"HF_HOME": home, "HF_ENDPOINT": repository.endpoint, "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"}
    return found | ({"HF_TOKEN": repository.token} if repository.token else {})


def main() -> None:
    """The other process: the task comes as JSON, and what was found goes out as JSON."""
    task = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # whatever libraries print
        try:
            compared = _rows(task) if task["kind"] == "dataset" else _model(task)
            _bytes(task)
            found: dict[str, Any] = {"rows": compared}
        except _DiffersError as error:
            found = {"differs": str(error)}
        except Exception as error:  # libraries raise what they like; another try may go well
            found = {"failed": f"{type(error).__name__}: {first_line(error)}"}
    sys.stdout.write(json.dumps(found))  # to `reload`: nobody else reads it


def _rows(task: Mapping[str, Any]) -> int:
    """Load each config as anybody would, and compare every row with the files here."""
    import datasets

    folder = Path(task["folder"])
    compared = 0
    for config in read_front_matter((folder / CARD).read_text("utf-8"))["configs"]:
        name = config["config_name"]
        data = datasets.load_dataset(task["name"], name, revision=task["commit"])
        here = {part["split"]: sorted(folder.glob(part["path"])) for part in config["data_files"]}
        if set(data) != set(here):
            raise _DiffersError(f"config {name} has the splits {sorted(data)}, not {sorted(here)}")
        for split, files in here.items():
            compared += compare_rows(data[split].data.table, files, f"config {name}, split {split}")
    return compared


def compare_rows(loaded: pa.Table, files: list[Path], place: str) -> int:
    """The rows of the table against those of the Parquet files, in order and piece by piece; how many there are."""
    at = 0
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_ROWS):
            here = pa.Table.from_batches([batch])
            there = loaded.slice(at, here.num_rows)
            if there.column_names != here.column_names:
                raise _DiffersError(f"{place}: its columns are {there.column_names}, not {here.column_names}")
            if there.num_rows < here.num_rows:
                raise _DiffersError(f"{place}: it has {counted(loaded.num_rows, 'row')}, and more were sent")
            for name in here.column_names:
                kind = here.schema.field(name).type
                if _keys(there[name].type) != _keys(kind):  # a cast would leave keys out, or fill them with nulls
                    raise _DiffersError(f"{place}: column {name} is {there[name].type}, not {kind}")
                sent, found = here[name].combine_chunks(), there[name].cast(kind).combine_chunks()
                if not found.equals(sent):
                    row = next(row for row in range(len(sent)) if not found[row].equals(sent[row]))
                    raise _DiffersError(f"{place}: column {name} differs in row {at + row}")
            at += here.num_rows
    if at != loaded.num_rows:
        raise _DiffersError(f"{place}: it has {counted(loaded.num_rows, 'row')}, not {at:,}")
    return at


def _keys(kind: pa.DataType) -> list[Any] | None:
    """The names within nested columns; how texts and lists are laid out in memory is nobody's concern."""
    if pa.types.is_struct(kind):
        return [(field.name, _keys(field.type)) for field in kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_keys(kind.value_type)]
    return None


def _model(task: Mapping[str, Any]) -> int:
    """Load what arrived, and embed two texts by it and by the folder here: what was left out must not be missing."""
    import numpy as np
    from huggingface_hub import snapshot_download
    from sentence_transformers import SentenceTransformer

    arrived = snapshot_download(task["name"], revision=task["commit"])
    there, here = (
        SentenceTransformer(str(place), device="cpu", local_files_only=True).encode(_TEXTS)
        for place in (arrived, task["folder"])
    )
    if not np.array_equal(there, here):
        raise _DiffersError("the model embeds texts otherwise than the one here")
    return 0


def _bytes(task: Mapping[str, Any]) -> None:
    """The SHA-256 of every file that arrived; most are in the cache by now."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    for path, sha256 in task["sums"].items():
        place = {"repo_id": task["name"], "filename": path, "revision": task["commit"], "repo_type": task["kind"]}
        cached = try_to_load_from_cache(**place)
        if fingerprint(Path(cached if isinstance(cached, str) else hf_hub_download(**place))) != sha256:
            raise _DiffersError(f"{path} isn't the file that was sent")
