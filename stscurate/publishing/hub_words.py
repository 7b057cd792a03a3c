"""The words that a card's YAML may use, held to our own list of what the Hub knows (datasets/card/hub.toml)."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from stscurate.errors import InputError
from stscurate.resources import definition

_LISTED = ("task_categories", "task_ids", "size_categories", "annotations_creators")
_NEEDED = ("license", "language", "pretty_name", "size_categories", "task_categories", "configs", "dataset_info")
_LANGUAGE = re.compile(r"([a-z]{2,3})(-[A-Za-z0-9]{2,8})*")
# What `datasets` pushes without a word and then can't load: "all" means every one, and * and / are of paths.
_CONFIG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_SPLIT = re.compile(r"\w+(\.\w+)*")


@cache
def hub_words(kind: str) -> frozenset[str]:
    """The words of one kind: task_categories, licences, languages, ..."""
    listed = tomllib.loads(definition("card/hub.toml").read_text("utf-8"))[kind]
    return frozenset(listed.split() if isinstance(listed, str) else listed)


def check_matter(matter: Mapping[str, Any]) -> None:
    """Hold a card's YAML to what the Hub accepts. InputError names the key, the word and the mend."""
    missing = [key for key in _NEEDED if not matter.get(key)]
    if missing:
        raise InputError(f"README.md lacks {', '.join(missing)} in the YAML at its top: publish the run again.")
    for key in _LISTED:
        for word in _many(matter.get(key, [])):
            if word not in hub_words(key):
                known = ", ".join(sorted(hub_words(key)))
                raise InputError(f"README.md: {key} {word!r:.60} isn't known to the Hub: use some of {known}.")
    for word in _many(matter.get("source_datasets", [])):
        if str(word).partition("|")[0] not in hub_words("source_datasets"):
            raise InputError(
                f"README.md: source_datasets {word!r:.60} isn't known to the Hub: use original or extended|NAME."
            )
    for licence in _many(matter["license"]):
        if licence not in hub_words("licences"):
            raise InputError(f"README.md: licence {licence!r:.60} isn't known to the Hub: give one with --licence.")
    check_languages(_many(matter["language"]))
    check_configs(_many(matter["configs"]))


def check_languages(languages: Sequence[Any]) -> None:
    """InputError for a language that isn't a code, and for none."""
    if not languages:
        raise InputError("The card needs a language: give one or more codes with --language, as in --language en.")
    for language in languages:
        match = _LANGUAGE.fullmatch(str(language))
        if not match or (len(match[1]) == 2 and match[1] not in hub_words("languages")):
            raise InputError(f"Language {language!r:.40} isn't a code: write --language en, zh or pt-BR.")


def check_configs(configs: Sequence[Mapping[str, Any]]) -> None:
    """InputError where names of configs or splits aren't those that `datasets` loads back, or no one is the default."""
    names = [str(config.get("config_name")) for config in configs]
    for name in names:
        if not _CONFIG.fullmatch(name) or name == "all":
            raise InputError(
                f"README.md: `datasets` can't load a config named {name!r:.60} (it takes letters, digits, _ . and -, "
                "but not the word all): rename it."
            )
        if names.count(name) > 1:
            raise InputError(f"README.md has the config {name} twice: keep one of them.")
    for config in configs:
        files = config.get("data_files")
        for part in files if isinstance(files, list) else []:
            split = str(part.get("split", "train")) if isinstance(part, Mapping) else "train"
            if not _SPLIT.fullmatch(split) or split == "all":
                raise InputError(
                    f"README.md: `datasets` can't load a split named {split!r:.60} (it takes letters, digits, _ and "
                    "dots, but not the word all): rename it."
                )
    defaults = [config for config in configs if config.get("default")]
    if len(defaults) != 1:
        raise InputError(f"README.md names {len(defaults)} default configs: mark one with `default: true`.")


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
