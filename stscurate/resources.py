"""Where the definitions are that come with the package: beside it in a source checkout, inside it when installed."""

from importlib.resources import files
from pathlib import Path

from stscurate.errors import StscurateError


def definition(name: str) -> Path:
    """The path of a definition, such as `prompts/similarity.toml` or a folder of them.

    StscurateError where this installation lacks it.
    """
    package = Path(str(files("stscurate")))
    # The packed folder goes first: beside an installed package, datasets/ is the Hugging Face library.
    packed = package / "_datasets"
    path = (packed if packed.is_dir() else package.parent / "datasets") / name
    if not path.exists():
        raise StscurateError(f"This installation of stscurate lacks its definition {name}: install the package again.")
    return path
