"""Where gold comes from, a kind of set a file: what the user has (files), defined benchmarks, those of packages."""

from collections.abc import Sequence
from pathlib import Path

from stscurate.errors import InputError
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.sets.benchmarks import read_benchmark
from stscurate.evaluation.sets.definitions import Benchmark, Collection, Packaged, definitions
from stscurate.evaluation.sets.files import read_file
from stscurate.evaluation.sets.packages import read_package
from stscurate.store import is_run


def gold_sets(names: Sequence[str], *, columns: str | None = None, scale: str | None = None) -> list[GoldSet]:
    """The gold sets of all names, in their order; a collection such as papers is all of its sets.

    A name is a file or folder of pairs, a run, or a defined benchmark: NAME from the Hub, NAME/SUBSET a subset alone,
    NAME:SPLIT another split, and NAME=PATH what a folder or file on this disk holds of it as it was first published.
    columns, scale: of files alone, as in tables.pairs_source. InputError where there is no such set, or nothing to
    correlate.
    """
    return [found for name in names for found in _sets(name, columns, scale)]


def is_own_file(name: str) -> bool:
    """Whether `columns` and `scale` say something of it: it is no run, and no benchmark."""
    path = Path(name).expanduser()
    return path.exists() and not is_run(path)


def gold_set(name: str, *, columns: str | None = None, scale: str | None = None) -> GoldSet:
    """The one gold set `name`, as gold_sets. InputError where it is a collection."""
    found = gold_sets([name], columns=columns, scale=scale)
    if len(found) > 1:
        raise InputError(f"{name} is {len(found)} sets ({', '.join(gold.name for gold in found)}): name one of them.")
    return found[0]


def _sets(given: str, columns: str | None, scale: str | None) -> list[GoldSet]:
    if not given.strip():
        raise InputError(f"No set is named: give a file of pairs, a run, or a benchmark ({', '.join(definitions())}).")
    path = Path(given).expanduser()
    if not path.exists():
        return _defined(given)
    try:
        return [read_file(path, columns=columns, scale=scale)]
    except InputError as error:
        raise InputError(f"{error}{_meant(given)}") from None


def _meant(given: str) -> str:
    """How else to name the benchmark whose name a file or folder here has; nothing where none is called so."""
    named = definitions().get(given)
    if named is None or isinstance(named, Packaged):
        return f" The benchmark {given} is found where no {given} lies: run the command elsewhere." if named else ""
    split = named.split if isinstance(named, Benchmark) else "test"
    return f" The benchmark {given} is {given}={given} where that holds it, and {given}:{split} from the Hub."


def _defined(given: str) -> list[GoldSet]:
    known = definitions()
    named, equals, path = given.partition("=")
    whole, _, split = named.partition(":")
    name, _, subset = whole.partition("/")
    if name not in known:
        raise InputError(
            f"There is no file {given} here, and no benchmark of that name ({', '.join(sorted(known))}). A benchmark "
            "that lies on this disk is NAME=PATH."
        )
    folder = Path(path).expanduser() if equals else None
    if folder and not folder.exists():
        raise InputError(f"--set {given}: {path} doesn't exist: check the path.")
    defined = known[name]
    if isinstance(defined, Packaged):
        if named != name or equals:
            raise InputError(f"--set {given}: {name} comes whole with a package: name it alone.")
        return [read_package(name, defined.described)]
    if isinstance(defined, Collection):
        if subset:
            raise InputError(f"--set {given}: {name} stands for {', '.join(defined.sets)}: name one of them.")
        parts = [part for part in map(known.get, defined.sets) if isinstance(part, Benchmark)]
        return [read_benchmark(part, folder, split, collection=name) for part in parts]
    if subset:
        return [read_benchmark(defined.only(subset), folder, split)]
    if defined.apart:
        return [read_benchmark(defined.only(part), folder, split, collection=name) for part in defined.subsets]
    return [read_benchmark(defined, folder, split)]
