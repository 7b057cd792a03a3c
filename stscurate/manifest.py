"""What the manifest says of a finished stage, and when a finished stage may be used again."""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stscurate import __version__
from stscurate.disk import write_json
from stscurate.errors import InputError
from stscurate.records import Tally

_KEY = "key.json"
_VERSIONS_OF = ("numpy", "pyarrow", "sentence-transformers", "torch", "transformers")


@dataclass(frozen=True)
class Entry:
    """What the manifest says of a finished stage; `fresh` is False where it was found finished."""

    stage: str
    key: dict[str, Any]  # inputs, settings, seed, stscurate version: what a rerun must match
    outputs: dict[str, dict[str, Any]]  # table -> rows, sha256
    tally: Tally
    versions: dict[str, str]  # of the packages that shaped the result
    place: Path  # the folder to look in; not in the manifest, since it is another on every machine
    fresh: bool = True

    @property
    def rows(self) -> int:
        """Rows of the stage's first table."""
        return next((int(output["rows"]) for output in self.outputs.values()), 0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as it stands in the manifest."""
        return {**self.key, "versions": self.versions, "outputs": self.outputs, **self.tally.as_dict()}

    @classmethod
    def from_dict(cls, stage: str, data: Mapping[str, Any], place: Path) -> "Entry":
        """The entry that `as_dict` wrote, marked as found."""
        key = {name: data[name] for name in ("inputs", "seed", "settings", "stscurate")}
        outputs, versions = dict(data["outputs"]), dict(data["versions"])
        return cls(stage, key, outputs, Tally.from_dict(data), versions, place, fresh=False)


def stage_key(inputs: Mapping[str, str], settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What must be equal for a finished stage to be used again, as JSON gives it back."""
    key = {"stscurate": __version__, "inputs": dict(inputs), "settings": dict(settings), "seed": seed}
    return dict(json.loads(json.dumps(key, sort_keys=True)))


def changed(stage: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """A sentence that names the differences between two keys, with the mend."""
    mend = "Name another place to keep both, or add --yes to make it anew."
    return f"{stage} was made otherwise ({differences(old, new)}). {mend}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs between two keys, in words."""
    parts = []
    for group in ("inputs", "settings"):
        for name in sorted(old[group].keys() | new[group].keys()):
            before, after = old[group].get(name), new[group].get(name)
            if before != after:
                parts.append(
                    f"{name} changed" if group == "inputs" else f"{name} was {_short(before)}, now {_short(after)}"
                )
    parts += [f"{name} was {old[name]}, now {new[name]}" for name in ("seed", "stscurate") if old[name] != new[name]]
    return "; ".join(parts)


def read_manifest(folder: Path) -> dict[str, Entry]:
    """The finished stages that the folder's manifest.json names, in their order; none without one.

    InputError where it was cut off or changed into something else.
    """
    path = folder / "manifest.json"
    if not path.exists():
        return {}
    try:
        stages = json.loads(path.read_text("utf-8"))["stages"]
        return {name: Entry.from_dict(name, data, _place(folder, data["outputs"])) for name, data in stages.items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(f"{path} isn't a whole manifest: bring it back from a copy, or name another folder.") from None


def _place(folder: Path, outputs: Mapping[str, Any]) -> Path:
    """Where to look: a run's first table, or the folder itself."""
    table = folder / next(iter(outputs), "")
    return table if table.is_dir() else folder


def start_partial(folder: Path, key: dict[str, Any]) -> None:
    """Keep a killed process's work in `folder` if it was for the same key; begin empty otherwise."""
    if partial_key(folder) != key:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_json(folder / _KEY, key)


def partial_key(folder: Path) -> dict[str, Any] | None:
    """The key of the work in `folder`; None where there is none that can be read."""
    try:
        return dict(json.loads((folder / _KEY).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def versions() -> dict[str, str]:
    """The versions of the installed packages that shape results."""
    installed = {}
    for package in _VERSIONS_OF:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed
