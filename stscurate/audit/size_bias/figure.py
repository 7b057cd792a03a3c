"""One figure of an audit: where the cosines of each set lie, what length does to them, and what it doesn't do."""

from pathlib import Path
from typing import Any

import numpy as np

_GIVEN = (("5.0%", 0.05), ("0.1%", 0.001))  # shares of all pairs that reach a threshold
_LABEL = 0.08  # height of a bar's label, of the highest bar
_FEW = 100_000  # cosines, below which fine steps show noise
_INK, _GREY = "#22303c", "#8a949e"
_COLOURS = ["#1f6f8b", "#d1495b", "#8a6fae", "#e29a2d", "#3f8f5b", "#5c6670"]


def draw(results: dict[str, Any], folder: Path) -> None:
    """Write size_bias.png and size_bias.svg into the folder."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "font.size": 9.5,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": _GREY,
        "axes.labelcolor": _INK,
        "text.color": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "svg.hashsalt": "stscurate",  # the same bytes each time
        "text.parse_math": False,  # a name with $ is no formula
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(12, 9), layout="constrained")
        axes = figure.subplots(2, 2)
        _histograms(axes[0, 0], results)
        _heat(figure, axes[0, 1], results)
        _false_positives(axes[1, 0], results)
        _controls(axes[1, 1], results)
        figure.suptitle(
            f"Size bias of {results['model']} on {results['texts']}", fontsize=14, fontweight="bold", x=0.01, ha="left"
        )
        figure.savefig(folder / "size_bias.png", dpi=150, metadata={"Software": None})
        figure.savefig(folder / "size_bias.svg", metadata={"Date": None})


def _histograms(axes: Any, results: dict[str, Any]) -> None:
    shown = [row for row in results["sets"] if row["histogram"]]
    used = [place for row in shown for place in np.flatnonzero(row["histogram"])]
    for row, colour in zip(shown, _COLOURS, strict=False):
        counts = np.array(row["histogram"], dtype=float)
        if row["pairs"] < _FEW:
            counts = counts.reshape(-1, 4).sum(axis=1)
        # A step of zero beyond either end: a curve comes down, and isn't cut off at its last bin's middle.
        middles = (np.arange(-1, len(counts) + 1) + 0.5) * 2 / len(counts) - 1
        density = np.pad(counts / counts.sum() / (2 / len(counts)), 1)
        axes.fill_between(middles, density, color=colour, alpha=0.12, linewidth=0)
        axes.plot(middles, density, color=colour, linewidth=1.6, label=f"{row['set']}, mean {row['mean']:.3f}")
    step = 2 / len(shown[0]["histogram"])
    axes.set_xlim(min(used) * step - 1.02, min(max(used) * step - 0.97, 1.0))
    axes.set_ylim(0, 1.5 * axes.dataLim.y1)  # the legend stands above the curves
    axes.set_title("Cosines of all pairs")
    axes.set_xlabel("cosine")
    axes.set_ylabel("density")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def _heat(figure: Any, axes: Any, results: dict[str, Any]) -> None:
    found = results["by_length"]
    mean = np.array(found["mean"], dtype=float)
    image = axes.imshow(mean, origin="lower", cmap="YlGnBu")
    middle = (np.nanmin(mean) + np.nanmax(mean)) / 2
    if len(mean) <= 12:
        for (y, x), value in np.ndenumerate(mean):
            shade = "white" if value > middle else _INK
            axes.text(x, y, f"{value:.2f}".replace("0.", "."), ha="center", va="center", fontsize=7.5, color=shade)
    _bins(axes, results, both=True)
    axes.set_title("Mean cosine by the two texts' lengths")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.8, label="mean cosine").outline.set_visible(False)


def _bins(axes: Any, results: dict[str, Any], *, both: bool) -> None:
    names = [
        str(each["least"]) if each["least"] == each["greatest"] else f"{each['least']}–{each['greatest']}"
        for each in results["by_length"]["bins"]
    ]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)
    axes.set_xlabel(f"length in {results['length_unit']}")
    if both:
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylabel(f"length in {results['length_unit']}")


def _false_positives(axes: Any, results: dict[str, Any]) -> None:
    rows = results["by_length"]["bands"]
    places = np.arange(len(rows))
    most = max(row[f"false positives at {share}"] / given for row in rows for share, given in _GIVEN)
    axes.set_ylim(0, 1.3 * max(most, 1))
    for offset, (share, colour) in zip((-0.2, 0.2), (("5.0%", _COLOURS[0]), ("0.1%", _COLOURS[3])), strict=True):
        given = dict(_GIVEN)[share]
        times = [row[f"false positives at {share}"] / given for row in rows]
        axes.bar(places + offset, times, 0.38, color=colour, label=f"threshold that {share} of all pairs reach")
        digits = 1 if share == "5.0%" else 2
        for place, height, row in zip(places + offset, times, rows, strict=True):
            text = f"{row[f'false positives at {share}']:.{digits}%}"
            # A label that the line would go through stands on the line.
            at = (place, 1 if 1 - _LABEL * most < height < 1 else height)
            axes.annotate(text, at, (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=7)
    axes.axhline(1, color=_INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xticks(places, [row["band"].replace(" with ", "\n") for row in rows], fontsize=8.5)
    axes.set_ylabel("false positives, times the share promised")
    axes.set_title("What one threshold takes for similar, by length")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def _controls(axes: Any, results: dict[str, Any]) -> None:
    kinds = dict.fromkeys(row["control"] for row in results["controls"])
    told = {"cut": "same documents, cut", "repeated": "one sentence, repeated", "joined": "unrelated sentences, joined"}
    for kind, colour in zip(kinds, (_COLOURS[0], _GREY, _COLOURS[1]), strict=False):
        rows = [row for row in results["controls"] if row["control"] == kind]
        words, mean, sd = (np.array([row[name] for row in rows]) for name in ("words", "mean", "sd"))
        axes.fill_between(words, mean - sd, mean + sd, color=colour, alpha=0.1, linewidth=0)
        axes.plot(words, mean, color=colour, marker="o", markersize=5, linewidth=1.8, label=told[kind])
        for x, y, row in zip(words, mean, rows, strict=True):
            axes.annotate(
                row["what"].split()[0] + ("×" if kind == "repeated" else ""),
                (x, y),
                xytext=(0, -13 if kind == "repeated" else 6),  # the joined ones begin where these do
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
                color=colour,
            )
    axes.set_title("Length alone, and length with more content")
    if not kinds:
        axes.text(0.5, 0.5, "too few texts, or --controls 0", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    axes.set_xscale("log")
    ticks = [5, 10, 20, 40, 80, 160, 320]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("words, mean")
    axes.set_ylabel("mean cosine (band: one deviation)")
    axes.legend(frameon=False, fontsize=8.5, loc="best")
