"""Benchmarks as they were first published: the files of a folder that fit a definition, and their rows."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from stscurate.errors import InputError
from stscurate.evaluation.sets.definitions import Benchmark, Source
from stscurate.evaluation.sets.hub import copied
from stscurate.files import RawTable, open_text, read_table, reading
from stscurate.wording import counted


def find(benchmark: Benchmark, path: Path, split: str) -> Iterator[tuple[str, RawTable, Source]]:
    """Subset ("" without any), rows and layout of each file of the benchmark that `path` holds.

    A folder may hold them at any depth, or the repository as it is on the Hub; a file is one of theirs. InputError
    where nothing fits, or two folders do.
    """
    sources = [source for source in benchmark.originals if benchmark.is_in(source, split)]
    for source in sources:
        names, folders = _places(benchmark, path, source, split)
        if len(folders) > 1:
            shown = ", ".join(str(folder) for folder in folders[:3])
            raise InputError(f"{benchmark.name} stands in several folders of {path} ({shown}): name one of them.")
        if folders:
            for subset, (file, gold) in names.items():
                yield subset, _read(folders[0] / file, folders[0] / gold if gold else None, source), source
            return
    yield from copied(benchmark, path, split) or _refuse(benchmark, path, split, sources)


def _places(
    benchmark: Benchmark, path: Path, source: Source, split: str
) -> tuple[dict[str, tuple[str, str]], list[Path]]:
    """The files of the split as `_names`, of one file those that it is, and the folders that hold them all."""
    names = _names(benchmark, source, split)
    if path.is_file():
        given = {subset: pair for subset, pair in names.items() if pair[0] == path.name}
        return given, [path.parent] if given and _all_there(path.parent, given.values()) else []
    first = next(iter(names.values()))[0]
    deeper = sorted({found.parent for found in path.rglob(first)})
    folders = [folder for folder in (path, *deeper) if _all_there(folder, names.values())]
    return names, folders[:1] if folders[:1] == [path] else folders


def _refuse(benchmark: Benchmark, path: Path, split: str, sources: Sequence[Source]) -> NoReturn:
    wanted = [_shown(benchmark, source, split) for source in sources]
    hub = benchmark.hub if benchmark.hub and split in benchmark.hub.files else None
    apart = hub is None or benchmark.is_in(hub, split)
    if hub and apart:
        wanted.append(f"a copy of {hub.repository} with {hub.files[split]}")
    told = f"{path} doesn't hold {benchmark.name} ({split}) in a layout that is known: {'; or '.join(wanted)}."
    if not apart:
        told += f" {benchmark.within} on the Hub doesn't tell its subsets apart, nor does a copy of it."
    for other in benchmark.splits:
        there = [source for source in benchmark.originals if benchmark.is_in(source, other)]
        if any(_places(benchmark, path, source, other)[1] for source in there) or copied(benchmark, path, other):
            told += f" It holds the split {other}: name it {benchmark.name}:{other}={path}."
    raise InputError(told)


def _names(benchmark: Benchmark, source: Source, split: str) -> dict[str, tuple[str, str]]:
    """Subset -> its file, and the file of its gold ("" where that stands beside the texts)."""
    pattern = source.files[split]
    subsets = benchmark.subsets if source.tells_subsets(split) else ("",)
    return {subset: (pattern.format(subset=subset), source.gold.format(subset=subset)) for subset in subsets}


def _all_there(folder: Path, names: Iterable[tuple[str, str]]) -> bool:
    return all((folder / name).is_file() for pair in names for name in pair if name)


def _shown(benchmark: Benchmark, source: Source, split: str) -> str:
    names = list(_names(benchmark, source, split).values())
    shown = ", ".join(" with ".join(name for name in pair if name) for pair in names[:2])
    return f"{shown}{f' and {len(names) - 2} more' if len(names) > 2 else ''}, side by side" if names[1:] else shown


def _read(path: Path, gold: Path | None, source: Source) -> RawTable:
    if source.separator == "comma":
        return read_table(path, names=[_name(place, role) for place, role in enumerate(source.order)] or None)
    rows = [(number, line.split("\t")) for number, line in _lines(path)]
    names = list(source.order) or [name.strip() for name in rows.pop(0)[1]]
    if gold is not None:
        scores = [line.strip() for _, line in _lines(gold)]
        if len(scores) != len(rows):
            raise InputError(
                f"{path} has {counted(len(rows), 'line')} and {gold.name} {len(scores)}: they go line by line, copy "
                "both again."
            )
        rows = [(number, [*fields[:2], score]) for (number, fields), score in zip(rows, scores, strict=True)]
    needed = max((place for place, name in enumerate(names) if name != "_"), default=0) + 1
    for number, fields in rows:
        if len(fields) < needed:
            raise InputError(
                f"{path}, line {number} has {counted(len(fields), 'field')} where {needed} are due, with tabs between "
                "them: is it the file as it was published?"
            )
    columns = {
        _name(place, name): [fields[place] or None for _, fields in rows] for place, name in enumerate(names[:needed])
    }
    return RawTable(path.name, columns, [f"line {number}" for number, _ in rows])


def _lines(path: Path) -> list[tuple[int, str]]:
    """Lines by number, without their ends; not even quotes mean anything in these files. No empty line at the end."""
    with reading(path), open_text(path) as file:
        return [(number, line.rstrip("\r\n")) for number, line in enumerate(file, 1)]


def _name(place: int, name: str) -> str:
    return f"_{place}" if name == "_" else name
