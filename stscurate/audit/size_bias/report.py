"""The results of an audit as tables: rows for a terminal, and Markdown."""

from collections.abc import Sequence
from typing import Any

Rows = list[dict[str, Any]]


def set_rows(results: dict[str, Any]) -> Rows:
    """The sets that are compared, a row each."""
    return [
        {
            "set": found["set"],
            "texts": found["texts"],
            "words": f"{found['words_mean']:.1f} (sd {found['words_sd']:.1f})",
            "cosines": found["pairs"],
            "mean": found["mean"],
            "sd": found["sd"],
            "shift, sd": "-" if found["shift"] is None else f"{found['shift']:+.2f}",
            "texts cut": _share(found["texts_cut"]),
            "tokens cut": _share(found["tokens_cut"]),
        }
        for found in results["sets"]
    ]


def control_rows(results: dict[str, Any]) -> Rows:
    """The controls, a row each."""
    return [
        {
            "control": found["control"],
            "texts": found["what"],
            "number": found["texts"],
            "words": f"{found['words']:.1f}",
            "mean": found["mean"],
            "sd": found["sd"],
            "texts cut": _share(found["texts_cut"]),
        }
        for found in results["controls"]
    ]


def band_rows(results: dict[str, Any]) -> Rows:
    """The bands: what one threshold takes for similar there, and which threshold would hold the share."""
    return [
        {name: f"{value:.2%}" if name.startswith("false") else value for name, value in found.items()}
        for found in results["by_length"]["bands"]
    ]


def table_rows(results: dict[str, Any]) -> Rows:
    """Mean ± deviation by length, a row a bin."""
    found = results["by_length"]
    ends = [(each["least"], each["greatest"]) for each in found["bins"]]
    names = [f"{least}-{greatest}" if least < greatest else str(least) for least, greatest in ends]
    return [
        {results["length_unit"]: name}
        | {
            other: f"{mean:.2f} ± {sd:.2f}"
            for other, mean, sd in zip(names, means, sds, strict=True)
            if mean is not None
        }
        for name, means, sds in zip(names, found["mean"], found["sd"], strict=True)
    ]


def notes(results: dict[str, Any]) -> list[str]:
    """What has to be said beside the tables, a sentence or two each."""
    found, hub = results["by_length"], results["hubs"]
    lines = [f"Sentences were split by {results['sentence_splitter']}; lengths are in {results['length_unit']}."]
    if not any(row["set"] == "sentences" for row in results["sets"]):
        lines.append("Each text is one sentence: there are no shorter ones to compare with.")
    for row in results["sets"]:
        if row["texts_cut"] is not None and row["texts_cut"] > 0.5 and "chunks" not in row["set"]:
            lines.append(f"{row['set']}: {row['texts_cut']:.0%} of the texts were cut at {results['reads']} tokens.")
    if results["sets"][0]["texts_cut"] is None:
        lines.append("How much of the texts the model reads is unknown: its server doesn't say.")
    limits = ", ".join(f"{value:.4f} ({share})" for share, value in found["thresholds"].items())
    lines.append(
        f"One threshold for all: {limits} of the pairs of different documents reach it, which are taken for unrelated."
    )
    if found["bound"]:
        lines.append(
            f"Distributions are of 1.84 million drawn pairs a band: within {found['bound']:.3f} at 95 %, so of rates "
            "below that little can be said."
        )
    lines.append(
        f"Among the {hub['neighbours']} nearest of others, a text's count goes with its length by a Spearman "
        f"correlation of {_number(hub['correlation_with_length'])}; skewness {hub['skewness']:.2f}, the most "
        f"{hub['most']:,}, {hub['never']:.0%} never ({hub['texts']:,} texts)."
    )
    return lines


def as_markdown(results: dict[str, Any]) -> str:
    """All tables, with what has to be said beside them."""
    parts = [f"# Size bias of {results['model']} on {results['texts']}\n"]
    parts += [f"{line}\n" for line in notes(results)]
    tables = [("Sets", set_rows(results)), ("Controls", control_rows(results)), ("Bands of length", band_rows(results))]
    tables.append(("Mean ± deviation by length", table_rows(results)))
    parts += [f"## {name}\n\n{_table(rows)}" for name, rows in tables if rows]
    return "\n".join(parts)


def _table(rows: Sequence[dict[str, Any]]) -> str:
    head = list(rows[0])
    lines = [head, ["---" if isinstance(value, str) else "---:" for value in rows[0].values()]]
    lines += [[_cell(value) for value in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: Any) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|")


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.3f}"
