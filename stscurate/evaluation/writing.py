"""An evaluation as tables for people (Markdown, or drawn), as Parquet, and as a figure."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from stscurate.disk import write_parquet
from stscurate.evaluation.results import Evaluation

Row = dict[str, Any]


def tables(found: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Name -> rows with the columns that a person reads first; `found` as Evaluation.as_dict gives it."""
    results = found["results"]
    binary = [result for result in results if result["f1"] is not None]
    drawn = {
        "Spearman with gold": table_rows(results),
        **_task_tables(found.get("tasks", [])),
        "Means": [_mean(mean) for mean in found.get("means", [])],
        "Differences on the same rows": [_comparison(one) for one in found.get("comparisons", [])],
        "Pair classification": [_binary(result) for result in binary],
        "Parts": [_part(part) for part in found.get("parts", [])],
        "Further numbers": [_further(result) for result in results],
    }
    return {name: rows for name, rows in drawn.items() if rows}


def table_rows(results: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Results, as `Result.as_dict` gives them, with the columns that a person reads first."""
    return [
        {
            "model": result["model"],
            "set": result["set"],
            "pairs": result["rows"],
            "left out": sum(result["dropped"].values()),
            "Spearman": result["spearman"],
            "95 % interval": _interval(result["low"], result["high"]),
            "AP": result["average_precision"],
            "leak-clean": result["spearman_clean"],
            "leak-clean interval": _interval(result["low_clean"], result["high_clean"]),
            "leak-clean pairs": result["rows_clean"],
            "tokens cut": _percent(result["tokens_cut_share"]),
        }
        for result in results
    ]


def as_markdown(found: Mapping[str, Any]) -> str:
    """All tables under headings, then the notes; `found` as Evaluation.as_dict gives it."""
    blocks = [f"## {name}\n\n{markdown_table(rows)}" for name, rows in tables(found).items()]
    notes = "".join(f"- {note}\n" for note in found.get("notes", []))
    return "\n".join([*blocks, *([f"## Notes\n\n{notes}"] if notes else [])])


def markdown_table(rows: Sequence[Row]) -> str:
    """A Markdown table of rows with the same keys; what has no value is "-"."""
    texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    lines = [list(rows[0]), ["---" if name in texts else "---:" for name in rows[0]]]
    lines += [[_cell(value).replace("|", "\\|") for value in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_tables(folder: Path, found: Evaluation) -> dict[str, dict[str, Any]]:
    """results.md, results.parquet (sets and parts), and where there are some comparisons, means, density, tasks.

    Rows of each table, for the manifest.
    """
    (folder / "results.md").write_text(as_markdown(found.as_dict()), "utf-8")
    written = {
        "results": [one.as_dict() for one in (*found.results, *found.parts)],
        "means": [one.as_dict() for one in found.means],
        "comparisons": [one.as_dict() for one in found.comparisons],
        "density": [row for one in found.densities for row in one.rows()],
        "tasks": [one.as_dict() for one in found.tasks],
    }
    for name, rows in written.items():
        if rows:
            write_parquet(folder / f"{name}.parquet", _typed(rows))
    if found.densities:
        from stscurate.evaluation.figure import draw_densities

        draw_densities(found.densities, folder / "density.png")
    counted = {"results": len(found.results)} | {
        name: len(rows) for name, rows in written.items() if rows and name != "results"
    }
    return {name: {"rows": rows} for name, rows in counted.items()}


def _typed(rows: Sequence[Row]) -> pa.Table:
    """A table whose columns have one type each, also where all values are missing: numbers are float64 then."""
    flat = [
        {name: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value for name, value in row.items()}
        for row in rows
    ]
    columns = {name: pa.array([row[name] for row in flat]) for name in flat[0]}
    return pa.table(
        {
            name: column.cast(pa.float64()) if pa.types.is_null(column.type) else column
            for name, column in columns.items()
        }
    )


def _task_tables(tasks: Sequence[Mapping[str, Any]]) -> dict[str, list[Row]]:
    """A table for each kind of task, the models of a set beside each other."""
    headings = {"retrieval": "Retrieval within groups", "probe": "Linear probes"}
    order = {key: place for place, key in enumerate(dict.fromkeys((one["set"], one["metric"]) for one in tasks))}
    return {
        heading: [
            {
                "set": one["set"],
                "metric": one["metric"],
                "model": one["model"],
                "texts": one["rows"],
                "value": one["value"],
                "95 % interval": _interval(one["low"], one["high"]),
                "leak-clean": one["value_clean"],
                "leak-clean interval": _interval(one["low_clean"], one["high_clean"]),
                "leak-clean texts": one["rows_clean"],
                "tokens cut": _percent(one["tokens_cut_share"]),
            }
            for one in sorted(tasks, key=lambda one: order[one["set"], one["metric"]])
            if one["kind"] == kind
        ]
        for kind, heading in headings.items()
    }


def _mean(mean: Mapping[str, Any]) -> Row:
    return {
        "model": mean["model"],
        "set": mean["set"],
        "metric": mean["metric"].replace("_", " "),
        "mean over": f"{mean['count']} {mean['over']}",
        "mean": mean["value"],
        "95 % interval": _interval(mean["low"], mean["high"]),
        "standard deviation": mean["deviation"],
        "leak-clean": mean["value_clean"],
        "leak-clean standard deviation": mean["deviation_clean"],
    }


def _comparison(one: Mapping[str, Any]) -> Row:
    return {
        "set": one["set"],
        "part": _part_name(one),
        "over": "leak-clean rows" if one["clean"] else "all rows",
        "rows": one["rows"],
        "metric": one["metric"].replace("_", " "),
        "model": one["second"],
        "its value": one["second_value"],
        "against": one["first"],
        "that value": one["first_value"],
        "difference": one["difference"],
        "95 % interval": _interval(one["low"], one["high"]),
        "p": one["p"],
    }


def _binary(result: Mapping[str, Any]) -> Row:
    return {
        "model": result["model"],
        "set": result["set"],
        "AP": result["average_precision"],
        "95 % interval": _interval(result["average_precision_low"], result["average_precision_high"]),
        "best F1": result["f1"],
        "F1 threshold": result["f1_threshold"],
        "F1 by dev": result["f1_transferred"],
        "best accuracy": result["accuracy"],
        "accuracy threshold": result["accuracy_threshold"],
        "accuracy by dev": result["accuracy_transferred"],
        "leak-clean AP": result["average_precision_clean"],
        "leak-clean pairs": result["rows_clean"],
    }


def _part(part: Mapping[str, Any]) -> Row:
    return {
        "model": part["model"],
        "set": part["set"],
        "part": _part_name(part),
        "pairs": part["rows"],
        "Spearman": part["spearman"],
        "95 % interval": _interval(part["low"], part["high"]),
        "AP": part["average_precision"],
        "leak-clean": part["spearman_clean"],
        "leak-clean pairs": part["rows_clean"],
    }


def _further(result: Mapping[str, Any]) -> Row:
    return {
        "model": result["model"],
        "set": result["set"],
        "Pearson": result["pearson"],
        "alignment": result["alignment"],
        "uniformity": result["uniformity"],
        "pairs with conflicting gold": result["conflicting"],
    }


def _part_name(row: Mapping[str, Any]) -> str:
    """What of a set, or which task on its texts: "whole", "subset a", "retrieval"."""
    return "whole" if row["kind"] == "set" else f"{row['kind']} {row['part']}".rstrip()


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
