"""The saturation zone: how much gradient a pair gets from the cosine and from either angle, by the pair's cosine.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/saturation.py FOLDER [--split train] [--out saturation.png]

AnglE (arXiv 2309.12871) is argued for by the cosine's gradient, which fades where the cosine nears 1 or -1. FOLDER
holds stsb as published; the vectors are those of all-MiniLM-L6-v2, fp32. `alone`: the norm of d(x / tau) / du of each
pair, u of unit length, x the similarity at its own temperature; for the cosine it is sqrt(1 - c^2) / tau. `in the
loss`: the norm of dL / du in the rank loss of batches of 32 pairs (drawn by seed 0), which asks for nothing where the
order is right already. Means of each band of .1; printed as Markdown, and drawn where --out is given.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.fits import START, unit
from benchmarks.local_annotators import Rows, stsb
from stscurate.services.encoder import Encoder
from stscurate.training.losses.angle import angle_similarity_code, angle_similarity_symmetric
from stscurate.training.losses.rank import pairwise_rank_loss

BATCH = 32
Function = Callable[[Tensor, Tensor], Tensor]
# name: the similarity, and the temperature that training takes unless told otherwise
SIMILARITIES: dict[str, tuple[Function, float]] = {
    "cosine": (torch.cosine_similarity, 0.05),
    "code": (angle_similarity_code, 0.05),
    "symmetric": (angle_similarity_symmetric, 1.0),
}


def main() -> None:
    """Embed, differentiate, print, draw."""
    parser = argparse.ArgumentParser(description="Gradient of AnglE's similarities by cosine.")
    parser.add_argument("folder", type=Path, help="folder with stsb")
    parser.add_argument("--split", choices=["train", "dev"], default="train", help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, help="PNG or SVG to draw; none by default")
    given = parser.parse_args()
    rows = unit(stsb(given.folder, given.split))
    u, v = vectors(rows)
    gold = torch.tensor([row[2] for row in rows], dtype=torch.float64)
    cosine = torch.cosine_similarity(u, v).numpy()
    found = {}
    for name, (similarity, tau) in SIMILARITIES.items():
        found[f"{name}, alone"] = gradients(u, v, gold, similarity, partial(alone, tau=tau))
        found[f"{name}, in the loss"] = gradients(u, v, gold, similarity, partial(pairwise_rank_loss, tau=tau))
    band = np.floor(np.clip(cosine, -1, 1 - 1e-9) * 10).astype(int)
    print(f"{len(rows)} pairs of STS-B {given.split}, {START}\n\n| cosine | pairs | {' | '.join(found)} |")
    print("|---|---|" + "---|" * len(found))
    bands = [int(one) for one in np.unique(band)]
    for one in bands:
        inside = band == one
        means = " | ".join([f"{float(norms[inside].mean()):.4f}" for norms in found.values()])
        print(f"| {one / 10:.1f} to {(one + 1) / 10:.1f} | {inside.sum()} | {means} |")
    if given.out:
        means_of = {name: [float(norms[band == one].mean()) for one in bands] for name, norms in found.items()}
        draw(given.out, bands, means_of)


def vectors(rows: Rows) -> tuple[Tensor, Tensor]:
    """(pairs, d) float64 unit vectors of the first and of the second texts."""
    encoder = Encoder(START)
    sides = [row[0] for row in rows], [row[1] for row in rows]
    one, two = (torch.from_numpy(encoder.encode(side).astype(np.float64)) for side in sides)
    return one, two


def alone(similarity: Tensor, gold: Tensor, *, tau: float) -> Tensor:
    """The similarities themselves, whatever gold says."""
    return similarity.sum() / tau


def gradients(u: Tensor, v: Tensor, gold: Tensor, similarity: Function, objective: Function) -> NDArray[np.float64]:
    """(pairs,) norm of the gradient at each u, of the objective of (similarities, gold) over batches of 32 pairs."""
    norms = np.zeros(len(u))
    order = np.random.default_rng(0).permutation(len(u))
    for at in np.array_split(order, range(BATCH, len(u), BATCH)):
        x = u[at].clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(objective(similarity(x, v[at]), gold[at]), x)
        norms[at] = gradient.norm(dim=1).numpy()
    return norms


def draw(path: Path, bands: list[int], found: dict[str, list[float]]) -> None:
    """Two panels, alone and in the loss, each curve as a share of its own highest band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2), ("alone", "in the loss"), strict=True):
        for name in SIMILARITIES:
            means = np.array(found[f"{name}, {kind}"])
            axes.plot([(one + 0.5) / 10 for one in bands], means / means.max(), marker="o", label=name)
        axes.set(title=kind, xlabel="cosine of the pair", ylabel="mean gradient, highest band = 1", ylim=(0, 1.05))
        axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
