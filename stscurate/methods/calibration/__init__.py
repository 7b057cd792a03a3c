"""Cosines corrected for what their two texts have with any others: a file a method, all pure numpy.

`METHODS[name].fit(vectors, lengths)` gives a `Method`. Length centering is for scores of similarity, s-norm for ranking
and mining, length-matched s-norm for thresholds; the others are there to compare with.
"""

from stscurate.methods.calibration.all_but_the_top import AllButTheTop
from stscurate.methods.calibration.base import Method, Texts, checked
from stscurate.methods.calibration.centering import Centering
from stscurate.methods.calibration.cosine import Cosine
from stscurate.methods.calibration.csls import Csls
from stscurate.methods.calibration.length_bins import LengthBins
from stscurate.methods.calibration.length_centering import LengthCentering
from stscurate.methods.calibration.length_matched import LengthMatchedSNorm
from stscurate.methods.calibration.length_regression import LengthRegression
from stscurate.methods.calibration.mutual_proximity import MutualProximity
from stscurate.methods.calibration.s_norm import SNorm
from stscurate.methods.calibration.whitening import Whitening

FEWEST = 400  # texts to fit a calibration to

_ALL: tuple[type[Method], ...] = (
    Cosine,
    LengthCentering,
    SNorm,
    LengthMatchedSNorm,
    Centering,
    AllButTheTop,
    Whitening,
    Csls,
    MutualProximity,
    LengthRegression,
    LengthBins,
)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}

__all__ = ["FEWEST", "METHODS", "Method", "Texts", "checked"]
