"""The card (README.md) of a published set: its YAML front matter, its text, and the check of both."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pyarrow.parquet as pq
import yaml

from stscurate import __version__
from stscurate.errors import InputError
from stscurate.publishing.hub_words import check_matter
from stscurate.publishing.layouts import Layout, features
from stscurate.publishing.merging import front_and_body
from stscurate.publishing.merging import merge as merge  # for those who bring a card to one that is there
from stscurate.publishing.yaml_lines import OUR_CONFIGS, StrictLoader
from stscurate.resources import definition
from stscurate.wording import counted

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")


def template_path() -> Path:
    """The template of the card's text."""
    return definition("card/dataset.md.jinja")


def front_matter(
    published: Sequence[Layout],
    sizes: Mapping[str, Mapping[str, int]],
    *,
    title: str,
    licences: Sequence[str],
    languages: Sequence[str],
    annotated: Sequence[str],
    original: bool,
) -> dict[str, Any]:
    """What the Hub and `datasets` read, as plain data; the first config is the default one.

    sizes: config -> split -> bytes in memory; `datasets` passes over splits that don't name them.
    annotated: the Hub's words for who labelled ("machine-generated", "found"); original: the texts were collected
    by this run, not taken from another data set.
    """
    scored = any(layout.name in ("pairs", "ids") for layout in published)
    tasks: dict[str, Any] = {"task_categories": ["sentence-similarity"]}
    if scored:  # the Hub counts scoring under classification
        tasks["task_categories"].append("text-classification")
        tasks["task_ids"] = ["semantic-similarity-scoring"]
    source = {"source_datasets": ["original"]} if original else {}
    return {
        "license": licences[0] if len(licences) == 1 else list(licences),
        "language": list(languages),
        "pretty_name": title,
        "size_categories": [size_category(published[0].num_rows)],
        **tasks,
        "annotations_creators": list(annotated) or ["no-annotation"],
        **source,
        "tags": ["semantic-textual-similarity", "sentence-transformers", "stscurate"],
        "configs": [_config(layout, default=layout is published[0]) for layout in published],
        "dataset_info": [_info(layout, sizes[layout.name]) for layout in published],
    }


def size_category(rows: int) -> str:
    """The Hub's word for a number of rows.

    >>> size_category(999), size_category(1_000), size_category(250_000)
    ('n<1K', '1K<n<10K', '100K<n<1M')
    """
    limits = [10**power for power in range(3, 3 + len(_SIZES))]
    place = sum(rows >= limit for limit in limits)
    if place == 0:
        return f"n<{_SIZES[0]}"
    return f"{_SIZES[place - 1]}<n<{_SIZES[place]}" if place < len(_SIZES) else f"n>{_SIZES[-1]}"


def render(matter: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The whole card: front matter and the text made by the template of `facts`."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the card is Markdown; `cell` escapes what stands in tables
    )
    environment.filters["cell"] = _cell
    template = environment.from_string(template_path().read_text(encoding="utf-8"))
    text = template.render(facts, title=_cell(matter["pretty_name"]), matter=matter, version=__version__)
    text = re.sub(r"\n{3,}", "\n\n", text)  # what the template leaves where a part is missing
    head = yaml.safe_dump(dict(matter), sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{head}---\n\n{text}"


def read_front_matter(text: str) -> dict[str, Any]:
    """The YAML between the two `---` lines. InputError where there is none, or a key stands twice in it."""
    head, _ = front_and_body(text)
    if head is None:
        raise InputError("README.md doesn't begin with YAML between two lines ---: publish the run again.")
    try:
        return dict(yaml.load(head[1], StrictLoader))  # noqa: S506 - a SafeLoader that refuses repeated keys
    except yaml.YAMLError as error:
        raise InputError(f"README.md: the YAML at its top can't be read ({error}): publish the run again.") from None


def check_card(folder: Path) -> None:
    """Hold a published folder's card to what the Hub accepts and to the files that lie there. InputError if not."""
    matter = read_front_matter((folder / "README.md").read_text(encoding="utf-8"))
    check_matter(matter)
    infos = {info["config_name"]: info for info in matter["dataset_info"]}
    for config in matter["configs"]:
        if config["config_name"] not in OUR_CONFIGS:
            continue  # a person's own, whose files needn't lie here
        said = {split["name"]: split["num_examples"] for split in infos[config["config_name"]]["splits"]}
        for part in config["data_files"]:
            rows = sum(pq.read_metadata(path).num_rows for path in folder.glob(part["path"]))
            if rows != said[part["split"]]:
                raise InputError(
                    f"README.md says {counted(said[part['split']], 'row')} for {part['path']}, the files hold {rows}: "
                    "publish the run again."
                )


def _config(layout: Layout, *, default: bool) -> dict[str, Any]:
    files = [{"split": split, "path": f"data/{layout.name}/{split}-*"} for split in layout.counts]
    return {"config_name": layout.name, "data_files": files, **({"default": True} if default else {})}


def _info(layout: Layout, sizes: Mapping[str, int]) -> dict[str, Any]:
    splits = [{"name": split, "num_bytes": sizes[split], "num_examples": rows} for split, rows in layout.counts.items()]
    return {"config_name": layout.name, "features": features(layout.schema), "splits": splits}


def _cell(value: Any) -> str:
    """A value as Markdown: one line, nothing that would end a table's cell or begin HTML."""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")
