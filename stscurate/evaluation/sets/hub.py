"""Benchmarks on the Hugging Face Hub: the files that a definition names, at its revision."""

from collections.abc import Iterator
from pathlib import Path

from stscurate.errors import InputError
from stscurate.evaluation.sets.definitions import Benchmark, Source
from stscurate.files import RawTable, read_table
from stscurate.services.hub import download_dataset


def fetch(benchmark: Benchmark, split: str) -> Iterator[tuple[str, RawTable, Source]]:
    """Subset ("" without any), rows and source of each file of the split.

    InputError where the definition names no such split, or the repository no such file, or its files don't tell the
    subset that is asked for from the others; ServiceError as in services.hub.
    """
    source = benchmark.hub
    if source is None:
        raise InputError(f"{benchmark.name} isn't on the Hub: give it from this disk, as {benchmark.name}=FOLDER.")
    if split not in source.files:
        raise InputError(f"{benchmark.name} has no split {split} on the Hub; it has {', '.join(source.files)}.")
    if not benchmark.is_in(source, split):
        raise InputError(
            f"{benchmark.within} on the Hub doesn't tell its subsets apart: give it from this disk as first published, "
            f"{benchmark.name}=FOLDER."
        )
    wanted = _patterns(benchmark, source, split)
    name = f"{source.repository}@{source.revision}" if source.revision else source.repository
    folder = download_dataset(name, list(wanted.values()))
    for subset, pattern in wanted.items():
        found = _matching(folder, pattern)
        if not found:
            raise InputError(
                f"{source.repository} on the Hub has no file {pattern} at {source.revision or 'its newest revision'}: "
                f"it has changed since {benchmark.name} was defined. Give it from this disk, as "
                f"{benchmark.name}=FOLDER."
            )
        for path in found:
            yield subset, _table(path, source), source


def copied(benchmark: Benchmark, folder: Path, split: str) -> list[tuple[str, RawTable, Source]]:
    """As fetch, from a folder that holds the repository as it is on the Hub; none where it doesn't, or can't tell."""
    source = benchmark.hub
    if source is None or not benchmark.is_in(source, split) or not folder.is_dir():
        return []
    found = {subset: _matching(folder, pattern) for subset, pattern in _patterns(benchmark, source, split).items()}
    if not all(found.values()):
        return []
    return [(subset, _table(path, source), source) for subset, paths in found.items() for path in paths]


def _patterns(benchmark: Benchmark, source: Source, split: str) -> dict[str, str]:
    pattern = source.files[split]
    subsets = benchmark.subsets if source.tells_subsets(split) else ("",)
    return {subset: pattern.format(subset=subset) for subset in subsets}


def _matching(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _table(path: Path, source: Source) -> RawTable:
    table = read_table(path)
    missing = [column for column in source.columns.values() if column not in table.columns]
    if missing:
        raise InputError(
            f"{source.repository}, {path.name} lacks {', '.join(missing)} (it has {', '.join(table.columns)}): it has "
            "changed since the benchmark was defined."
        )
    return table
