"""What a calibration leaves of the bias by length, on texts that it wasn't fitted to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.methods.calibration.base import Ints, Method, Vectors
from stscurate.wording import counted

BANDS = ("short", "middle", "long")
NOMINAL = (0.05, 0.001)
_BLOCK = 512  # rows


@dataclass(frozen=True)
class Bands:
    """Thirds of a corpus by length: short up to `short` tokens, long from `long` on; `of` gives each text's, 0 to 2."""

    short: int
    long: int

    def of(self, lengths: Ints) -> Ints:
        """0 for short, 1 for middle, 2 for long."""
        return np.where(lengths <= self.short, 0, np.where(lengths >= self.long, 2, 1))


def thirds(lengths: Ints) -> Bands:
    """The bands of a corpus. InputError where all texts have one length."""
    values = np.unique(lengths)
    if len(values) < 2:
        raise InputError(
            f"All {len(lengths)} texts have {counted(int(values[0]), 'token')}: there is no bias by length to see or "
            "to correct."
        )
    short, long = np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf").tolist()
    if short == values[-1]:  # most texts are cut at the longest that the model sees
        short = values[-2]
    return Bands(int(short), int(max(long, values[values > short][0])))


@dataclass(frozen=True)
class Residual:
    """Of all pairs of texts: `shift` of long pairs against short ones, and the rates above one threshold.

    shift: the mean of pairs of two long texts less that of two short ones, over the standard deviation of the latter.
    rates: nominal rate -> the rate of each of BANDS and of short with long, None without such pairs, where one
    threshold gives all pairs together the nominal one, and thresholds: nominal rate -> that one. pairs: how many.
    """

    shift: float
    rates: dict[float, dict[str, float | None]]
    thresholds: dict[float, float]
    pairs: int


def residual(method: Method, vectors: Vectors, lengths: Ints, bands: Bands) -> Residual:
    """Of all n(n-1)/2 pairs, exact: (n, d) unit vectors that the method wasn't fitted to. 4 n^2 bytes."""
    band = bands.of(lengths)
    found, kinds = _all_pairs(method, vectors, lengths, band)
    short, long = found[kinds == 0], found[kinds == 8]
    if not short.size or not long.size:
        raise InputError("There is no pair of short or of long texts among those held out: give more texts.")
    rates: dict[float, dict[str, float | None]] = {}
    thresholds = {nominal: float(np.quantile(found, 1 - nominal)) for nominal in NOMINAL}
    for nominal, threshold in thresholds.items():
        above = found > threshold
        rates[nominal] = {name: _rate(above[kinds == 4 * at]) for at, name in enumerate(BANDS)}
        rates[nominal]["short with long"] = _rate(above[(kinds == 2) | (kinds == 6)])
    spread = float(short.std(dtype=np.float64))
    shift = float(long.mean(dtype=np.float64) - short.mean(dtype=np.float64)) / spread if spread else float("nan")
    return Residual(shift, rates, thresholds, len(found))


def _rate(above: NDArray[np.bool_]) -> float | None:
    """The share that is above; None of no pairs, as of middle ones where there are two lengths alone."""
    return float(above.mean()) if above.size else None


def _all_pairs(
    method: Method, vectors: Vectors, lengths: Ints, band: Ints
) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Each pair's similarity, and its kind: three times the band of the one, and the band of the other."""
    n, texts = len(vectors), method.texts(vectors, lengths)
    found = np.empty(n * (n - 1) // 2, np.float32)
    kinds = np.empty(len(found), np.int8)
    done = 0
    for start in range(0, n, _BLOCK):
        block = method.block(texts[start : start + _BLOCK], texts[start:])
        rows, columns = np.nonzero(np.arange(block.shape[1]) > np.arange(len(block))[:, None])
        part = slice(done, done + len(rows))
        found[part] = block[rows, columns]
        kinds[part] = 3 * band[start + rows] + band[start + columns]
        done += len(rows)
    return found, kinds
