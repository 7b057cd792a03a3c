"""A run as one HTML page that asks nothing of the network: stages, pairs, scores, annotators, examples, training.

All texts are shown as text, whatever they hold: the template escapes them, the page forbids scripts and requests, and
characters that can't be seen, or that turn the direction of others, are shown by their symbols.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate import __version__
from stscurate.disk import atomic
from stscurate.errors import InputError
from stscurate.manifest import Entry, read_manifest
from stscurate.methods.correlation import spearman
from stscurate.records import SCHEMAS, SPLITS
from stscurate.resources import definition
from stscurate.store import Run
from stscurate.wording import counted

_BINS = 20
_SHORTENED = 600  # characters of an example's text
_MOST_ANNOTATORS = 12
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")

Floats = NDArray[np.float64]


def write_report(
    run: Run, out: Path, *, models: Sequence[Path] = (), results: Sequence[Path] = (), examples: int = 5
) -> dict[str, Any]:
    """Write the page about the run to the file `out`, and give its facts as plain data.

    models: folders of trained models, whose curves are drawn; results: folders of evaluations. examples: pairs shown of
    each kind (widest spread, highest score, lowest). The same run gives the same bytes. InputError where the run has no
    finished stage, or a folder isn't what it is given as.
    """
    if not run.entries:
        raise InputError(f"{run.folder} has no finished stage: there is nothing to report yet.")
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file, as in --out report.html.")
    if out.is_file() and not _is_page(out):
        raise InputError(f"{out} is there already and isn't a page: name another --out, or remove it.")
    facts = gather(run, models=models, results=results, examples=examples)
    page = render(facts)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as file:
        file.write(page.encode("utf-8", "backslashreplace"))
    return facts


def _is_page(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(15).lower() in (b"<!doctype html>", b"")


def render(facts: Mapping[str, Any]) -> str:
    """The page of `gather`'s facts."""
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True
    )
    environment.filters["seen"] = seen
    environment.filters["number"] = _number
    template = environment.from_string(definition("report/report.html.jinja").read_text("utf-8"))
    return template.render(facts, version=__version__)


def seen(text: str) -> str:
    """The text with symbols for what can't be seen: control characters, and marks that turn the writing's direction.

    >>> seen("a\\x00b"), seen("\\u202etxt")
    ('a␀b', '⟨U+202E⟩txt')
    """
    return _UNSEEN.sub(
        lambda match: chr(0x2400 + ord(match[0])) if ord(match[0]) < 0x20 else f"⟨U+{ord(match[0]):04X}⟩", text
    )


def gather(run: Run, *, models: Sequence[Path], results: Sequence[Path], examples: int) -> dict[str, Any]:
    """What the page tells, as plain data: the template draws it and decides nothing."""
    pairs = run.table("pairs") if run.has("pairs") else None
    votes = run.table("votes") if run.has("votes") else None
    scores = run.table("scores") if run.has("scores") else None
    facts: dict[str, Any] = {
        "name": run.folder.resolve().name,
        "stages": [_stage(entry) for entry in _in_order(run.entries)],
        "groups": [],
        "lengths": [],
        "scores": [],
        "annotators": _annotators(votes) if votes is not None else [],
        "agreement": _agreement(votes) if votes is not None else None,
        "doubt": _doubt(scores),
        "examples": [],
        "curves": [_curve(folder) for folder in models],
        "results": [row for folder in results for row in _results(folder)],
    }
    if pairs is not None:
        score, spread = _scored(pairs, scores)
        facts["groups"] = [
            {"by": name, "rows": _counted(pairs, name)}
            for name in ("split", "label", "origin", "tier", "repository")
            if pairs[name].null_count < pairs.num_rows
        ]
        facts["lengths"] = _lengths(pairs)
        facts["scores"] = [_histogram(split, part, 0.0, 1.0) for split, part in _by_split(pairs, score)]
        facts["examples"] = _examples(pairs, score, spread, examples)
    return facts


def _in_order(entries: Mapping[str, Entry]) -> list[Entry]:
    """Stages in the order of the data: issues, links, texts, pairs, ..."""
    tables = list(SCHEMAS)
    return sorted(entries.values(), key=lambda entry: (min(map(tables.index, entry.outputs)), entry.stage))


def _stage(entry: Entry) -> dict[str, Any]:
    dropped = sorted(entry.tally.dropped.items(), key=lambda item: (-item[1], item[0]))
    most = max([entry.tally.rows_in, *(output["rows"] for output in entry.outputs.values()), 1])
    return {
        "name": entry.stage,
        "rows_in": entry.tally.rows_in,
        "in_share": entry.tally.rows_in / most,
        "outputs": [(name, output["rows"], output["rows"] / most) for name, output in entry.outputs.items()],
        "dropped": [(reason, rows, rows / max(entry.tally.rows_in, rows)) for reason, rows in dropped],
        "counts": [(name, sorted(counter.items())) for name, counter in sorted(entry.tally.counts.items())],
        "settings": json.dumps(entry.key["settings"], ensure_ascii=False, sort_keys=True, indent=1),
        "seed": entry.key["seed"],
        "inputs": sorted(entry.key["inputs"].items()),
        "versions": sorted(entry.versions.items()),
    }


def _counted(pairs: pa.Table, name: str, most: int = 12) -> list[tuple[str, int, float]]:
    """(value, pairs, share of the largest), most pairs first; the rest in one row."""
    found = [("none" if item["values"] is None else str(item["values"]), item["counts"])
             for item in pc.value_counts(pairs[name]).to_pylist()]  # fmt: skip
    found.sort(key=lambda item: (-item[1], item[0]))
    rest = found[most:]
    found = found[:most] + ([(f"{counted(len(rest), 'other')}", sum(rows for _, rows in rest))] if rest else [])
    largest = max((rows for _, rows in found), default=1)
    return [(value, rows, rows / largest) for value, rows in found]


def _by_split(pairs: pa.Table, values: pa.ChunkedArray) -> list[tuple[str, pa.ChunkedArray]]:
    split = pc.fill_null(pairs["split"], "not split")
    names = [name for name in (*SPLITS, "not split") if pc.any(pc.equal(split, name)).as_py()]
    return [(name, values.filter(pc.equal(split, name)).drop_null()) for name in names]


def _histogram(name: str, values: pa.ChunkedArray, low: float, high: float) -> dict[str, Any]:
    """Counts in 20 equal bins: (from, to, rows, share of the fullest)."""
    numbers = values.to_numpy()
    counts, edges = np.histogram(numbers, bins=_BINS, range=(low, high if high > low else low + 1))
    most = max(int(counts.max()), 1)
    bins = [
        (float(edges[place]), float(edges[place + 1]), int(rows), int(rows) / most) for place, rows in enumerate(counts)
    ]
    middle = [float(value) for value in np.quantile(numbers, [0.25, 0.5, 0.75])] if len(numbers) else []
    return {"name": name, "rows": len(numbers), "bins": bins, "quartiles": middle}


def _lengths(pairs: pa.Table) -> list[dict[str, Any]]:
    """Characters of all texts by split, on one scale, which ends where 99 of 100 texts do."""
    sizes = [pc.utf8_length(pairs[name]) for name in ("text1", "text2")]
    both = np.concatenate([size.to_numpy() for size in sizes])
    end = float(np.quantile(both, 0.99)) if len(both) else 1.0
    found = []
    for (name, first), (_, second) in zip(*(_by_split(pairs, size) for size in sizes), strict=True):
        numbers = pa.chunked_array([*first.chunks, *second.chunks], type=first.type)
        found.append(_histogram(name, pc.min_element_wise(numbers.cast(pa.float64()), end), 0.0, end))
    return found


def _scored(pairs: pa.Table, scores: pa.Table | None) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The annotators' score of each pair, else its own, else its label; and the annotators' spread, where known."""
    none = pa.chunked_array([pa.nulls(pairs.num_rows, pa.float64())])
    own = pc.coalesce(pairs["score"], pairs["label"].cast(pa.float64()))
    if scores is None:
        return own, none
    place = pc.index_in(pairs["pair_id"], value_set=scores["pair_id"].combine_chunks())
    return pc.coalesce(scores["score"].take(place), own), scores["spread"].take(place)


def _annotators(votes: pa.Table) -> list[dict[str, Any]]:
    """Each annotator's votes, those without a number, and how its numbers lie between its least and its most."""
    found = []
    for name in sorted(pc.unique(votes["annotator"]).to_pylist()):
        rows = votes.filter(pc.equal(votes["annotator"], name))
        raw = rows["raw"].drop_null()
        ends = pc.min_max(raw).as_py()
        low, high = (0.0, 1.0) if ends["min"] is None else (ends["min"], ends["max"])
        scales = ", ".join(sorted(pc.unique(rows["scale"]).to_pylist()))
        drawn = _histogram(name, raw, low, high)
        found.append({**drawn, "scale": scales, "votes": rows.num_rows, "failed": rows["raw"].null_count,
                      "low": low, "high": high})  # fmt: skip
    return found


def _doubt(scores: pa.Table | None) -> dict[str, Any] | None:
    """How far annotators differ over a pair; None where no pair has two."""
    spread = None if scores is None else scores["spread"].drop_null()
    return _histogram("spread", spread, 0.0, 0.5) if spread else None


def _agreement(votes: pa.Table) -> dict[str, Any] | None:
    """Spearman's correlation of each two annotators over the pairs that both have rated, by their mean votes."""
    valid = votes.filter(pc.is_valid(votes["raw"]))
    means = valid.group_by(["annotator", "pair_id"], use_threads=False).aggregate([("raw", "mean")])
    by_name: dict[str, dict[str, float]] = {}
    for name, pair, mean in zip(
        *(means[column].to_pylist() for column in ("annotator", "pair_id", "raw_mean")), strict=True
    ):
        by_name.setdefault(name, {})[pair] = mean
    names = sorted(by_name)[:_MOST_ANNOTATORS]
    if len(names) < 2:
        return None
    rows = []
    for first in names:
        rows.append((first, [_rho(by_name[first], by_name[second]) for second in names]))
    return {"names": names, "rows": rows}


def _rho(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    both = sorted(first.keys() & second.keys())
    if len(both) < 2:
        return None
    rho = spearman([first[pair] for pair in both], [second[pair] for pair in both])
    return None if np.isnan(rho) else round(rho, 3)


def _examples(pairs: pa.Table, score: pa.ChunkedArray, spread: pa.ChunkedArray, most: int) -> list[dict[str, Any]]:
    """The pairs whose annotators differ most, and those of the highest and the lowest score; ties as in the run."""
    kinds = (
        ("Widest spread", spread, "descending"),
        ("Highest score", score, "descending"),
        ("Lowest score", score, "ascending"),
    )
    found = []
    for name, key, order in kinds:
        table = pa.table({"key": key, "row": pa.array(np.arange(pairs.num_rows))}).filter(pc.is_valid(key))
        rows = table.sort_by([("key", order), ("row", "ascending")])["row"].slice(0, most)
        if not len(rows):
            continue
        shown = pairs.take(rows.combine_chunks())
        numbers = zip(score.take(rows).to_pylist(), spread.take(rows).to_pylist(), strict=True)
        found.append({"name": name, "pairs": [
            {"id": row["pair_id"], "split": row["split"] or "-", "label": row["label"], "score": value, "spread": doubt,
             "texts": [_cut(row["text1"]), _cut(row["text2"])]}
            for row, (value, doubt) in zip(shown.to_pylist(), numbers, strict=True)
        ]})  # fmt: skip
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _SHORTENED else f"{text[:_SHORTENED]} […]"


def _curve(folder: Path) -> dict[str, Any]:
    """A model's training: its loss and its validation score by step, each scaled to 0..1 for drawing."""
    path = folder / "training_curve.json"
    try:
        points = [point for point in json.loads(path.read_text("utf-8"))["points"] if isinstance(point, dict)]
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            f"{folder} has no readable training_curve.json: give a folder that `stscurate train` made."
        ) from None
    lines = []
    for name in sorted({key for point in points for key in point} - {"step", "epoch"}):
        known = [(float(point["step"]), float(point[name])) for point in points
                 if isinstance(point.get(name), int | float) and "step" in point]  # fmt: skip
        if len(known) > 1:
            lines.append(_line(name, known))
    stage = next(iter(read_manifest(folder)), "train")
    return {"name": folder.resolve().name, "stage": stage, "lines": lines}


def _line(name: str, points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    steps, values = (np.array(column) for column in zip(*points, strict=True))
    low, high = float(values.min()), float(values.max())
    x = (steps - steps.min()) / max(float(np.ptp(steps)), 1e-12)
    y = (values - low) / max(high - low, 1e-12)
    drawn = " ".join(f"{100 * left:.2f},{40 - 40 * up:.2f}" for left, up in zip(x, y, strict=True))
    return {
        "name": name,
        "points": drawn,
        "low": low,
        "high": high,
        "last": float(values[-1]),
        "steps": int(steps.max()),
    }


def _results(folder: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads((folder / "results.json").read_text("utf-8"))["results"]
        wanted = ("model", "set", "rows", "spearman", "low", "high", "rows_clean", "spearman_clean")
        return [{name: row[name] for name in wanted} for row in found]
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            f"{folder} has no readable results.json: give a folder that `stscurate evaluate --out` made."
        ) from None


def _number(value: Any) -> str:
    """A number for people: 12,345 or 0.123; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
