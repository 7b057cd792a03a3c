"""Where definitions and recipes are: beside the package in a source checkout, inside it when it is installed."""

from importlib.resources import files
from pathlib import Path

from stscurate.errors import StscurateError


def definition(name: str) -> Path:
    """The path of a definition, such as `prompts/similarity.toml` or a folder of them.

    StscurateError where this installation lacks it.
    """
    path = _folder("datasets") / name
    if not path.exists():
        raise StscurateError(f"This installation of stscurate lacks its definition {name}: install the package again.")
    return path


def recipes() -> dict[str, Path]:
    """The recipes of pipelines/ by name, such as `texts_to_model`, in the order of their names."""
    return {path.stem: path for path in sorted(_folder("pipelines").glob("*.py"))}


def _folder(name: str) -> Path:
    package = Path(str(files("stscurate")))
    # The packed folder goes first: beside an installed package, datasets/ is the Hugging Face library.
    packed = package / f"_{name}"
    return packed if packed.is_dir() else package.parent / name
