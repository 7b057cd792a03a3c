"""The figure of similarities by gold band: a panel for each model and set, a line for each band."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stscurate.evaluation.metrics.density import Density

_INCHES = (3.4, 2.4)  # a panel's
_DOTS = 150  # an inch


def draw_densities(found: Sequence[Density], path: Path) -> None:
    """Write the PNG: rows are models, columns are sets. The same densities give the same bytes."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells when it first looks for fonts
    import matplotlib
    from matplotlib.figure import Figure

    models, sets = (list(dict.fromkeys(getattr(one, name) for one in found)) for name in ("model", "set"))
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "font.size": 8, "text.parse_math": False}):
        figure = Figure(figsize=(_INCHES[0] * len(sets), _INCHES[1] * len(models) + 0.5), layout="constrained")
        axes = figure.subplots(len(models), len(sets), squeeze=False, sharex=True)
        for row, model in enumerate(models):
            for column, name in enumerate(sets):
                axis = axes[row][column]
                lines = [one for one in found if (one.model, one.set) == (model, name)]
                shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(lines)))
                for one, shade in zip(lines, shades, strict=True):
                    label = f"gold {one.low:g} to {one.high:g} ({one.pairs.sum():,})"
                    axis.stairs(one.heights, one.edges, color=shade, label=label, fill=True, alpha=0.25)
                    axis.stairs(one.heights, one.edges, color=shade)
                axis.set_title(f"{name}, {model}", fontsize=8)
                axis.legend(fontsize=6, frameon=False, loc="upper left")
                axis.set_xlim(min(0.0, *(_least(one) for one in lines)), lines[0].edges[-1])
                if row == len(models) - 1:
                    axis.set_xlabel("similarity")
            axes[row][0].set_ylabel("density")
        figure.savefig(path, dpi=_DOTS, metadata={"Software": None})


def _least(one: Density) -> float:
    """Where the first bin with a pair begins."""
    filled = np.flatnonzero(one.pairs)
    return float(one.edges[filled[0]]) if filled.size else float(one.edges[-1])
