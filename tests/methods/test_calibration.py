"""Each calibration against an obvious loop, and what all have in common."""

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS, checked
from stscurate.methods.calibration.length_matched import LengthMatchedSNorm
from stscurate.methods.calibration.lengths import bin_of, length_edges

N, D = 230, 6


def made(n: int, seed: int, d: int = D) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors that lean the more towards one direction the longer the text is, and the lengths."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.uniform(np.log(4), np.log(300), n)).astype(np.int64)
    vectors = rng.normal(size=(n, d))
    vectors[:, 0] += np.log(lengths) * d**0.5 / 5
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), lengths


COHORT, LENGTHS = made(N, 0)
LEFT, LEFT_LENGTHS = made(9, 1)
RIGHT, RIGHT_LENGTHS = made(9, 2)
EDGES = length_edges(LENGTHS)


def similarity(name: str) -> np.ndarray:
    method = METHODS[name].fit(COHORT, LENGTHS)
    return method.similarity(LEFT, LEFT_LENGTHS, RIGHT, RIGHT_LENGTHS)


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v) / math.sqrt(float(u @ u) * float(v @ v))


def with_cohort(u: np.ndarray, cohort: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of the cosines that a text has with each of a cohort."""
    found = [cosine(u, other) for other in cohort.astype(np.float64)]
    return float(np.mean(found)), float(np.std(found))


def test_bins_are_half_octaves_with_texts_enough() -> None:
    assert len(EDGES) > 2
    counts = np.bincount(bin_of(LENGTHS, EDGES))
    assert counts.sum() == N
    assert counts.min() >= 50
    for edge in EDGES[1:]:
        assert 2 * math.log2(edge) == pytest.approx(round(2 * math.log2(edge)))
    # 60 texts of 8 tokens, 30 of 100 and 30 of 110 (a half octave from 90.5), 10 of 4: the rest joins the shortest.
    lengths = np.repeat([4, 8, 100, 110], [10, 60, 30, 30])
    assert length_edges(lengths).tolist() == pytest.approx([0, 2**6.5])
    assert length_edges(np.repeat([1, 2, 4], 50)).tolist() == pytest.approx([0, 2, 4])
    assert length_edges(np.full(300, 7)).tolist() == [0]
    assert bin_of(np.array([1, 8, 90, 91, 5000]), length_edges(lengths)).tolist() == [0, 0, 0, 1, 1]


def test_length_centering_is_the_vector_less_the_mean_at_its_length() -> None:
    bins = bin_of(LENGTHS, EDGES)
    knots = []
    for number in range(len(EDGES)):
        members = [row for row in range(N) if bins[row] == number]
        knots.append(
            (np.mean([math.log2(LENGTHS[row]) for row in members]), COHORT[members].astype(np.float64).mean(axis=0))
        )

    def mean_at(length: int) -> Any:
        place = math.log2(length)
        if place <= knots[0][0]:
            return knots[0][1]
        for (low, one), (high, two) in pairwise(knots):
            if place <= high:
                return one + (two - one) * (place - low) / (high - low)
        return knots[-1][1]

    expected = [
        cosine(u - mean_at(lu), v - mean_at(lv))
        for u, lu, v, lv in zip(LEFT, LEFT_LENGTHS.tolist(), RIGHT, RIGHT_LENGTHS.tolist(), strict=True)
    ]
    assert similarity("length-centering") == pytest.approx(expected, abs=1e-5)


def test_s_norm_is_the_mean_of_two_z_scores() -> None:
    expected = []
    for u, v in zip(LEFT, RIGHT, strict=True):
        (mu_u, sd_u), (mu_v, sd_v) = with_cohort(u, COHORT), with_cohort(v, COHORT)
        expected.append(((cosine(u, v) - mu_u) / sd_u + (cosine(u, v) - mu_v) / sd_v) / 2)
    assert similarity("s-norm") == pytest.approx(expected, abs=1e-4)


def test_length_matched_s_norm_takes_the_cohort_of_the_other_texts_length() -> None:
    bins = bin_of(LENGTHS, EDGES)
    expected = []
    for u, lu, v, lv in zip(LEFT, LEFT_LENGTHS, RIGHT, RIGHT_LENGTHS, strict=True):
        of_u, of_v = (COHORT[bins == bin_of(np.array([length]), EDGES)[0]] for length in (lu, lv))
        (mu_u, sd_u), (mu_v, sd_v) = with_cohort(u, of_v), with_cohort(v, of_u)
        expected.append(((cosine(u, v) - mu_u) / sd_u + (cosine(u, v) - mu_v) / sd_v) / 2)
    assert similarity("length-matched-s-norm") == pytest.approx(expected, abs=1e-3)


def test_length_matched_s_norm_gives_each_pair_of_lengths_the_same_rate_at_one_threshold() -> None:
    vectors, lengths = made(600, 3, 48)
    edges = length_edges(lengths)
    band = bin_of(lengths, edges)

    def rates(name: str) -> list[float]:
        method = METHODS[name].fit(*made(1000, 4, 48))
        texts = method.texts(vectors, lengths)
        found = method.block(texts, texts)
        off = ~np.eye(len(vectors), dtype=bool)
        level = np.quantile(found[off], 0.95)
        ends = (band == 0, band == band.max())
        return [float((found[np.ix_(rows, rows)][off[np.ix_(rows, rows)]] > level).mean()) for rows in ends]

    raw, matched = rates("cosine"), rates("length-matched-s-norm")
    assert raw[1] > 2 * raw[0]
    assert abs(matched[1] - matched[0]) < abs(raw[1] - raw[0]) / 3


def test_global_centering_takes_the_mean_out() -> None:
    mean = COHORT.astype(np.float64).mean(axis=0)
    expected = [cosine(u - mean, v - mean) for u, v in zip(LEFT, RIGHT, strict=True)]
    assert similarity("global-centering") == pytest.approx(expected, abs=1e-5)


def test_all_but_the_top_takes_out_mean_and_first_principal_direction() -> None:
    mean = COHORT.astype(np.float64).mean(axis=0)
    top = np.linalg.svd(COHORT - mean)[2][0]

    def rest(x: np.ndarray) -> Any:
        return (x - mean) - ((x - mean) @ top) * top

    expected = [cosine(rest(u), rest(v)) for u, v in zip(LEFT, RIGHT, strict=True)]
    assert similarity("all-but-the-top") == pytest.approx(expected, abs=1e-5)


def test_whitening_is_the_angle_under_the_inverse_covariance() -> None:
    mean = COHORT.astype(np.float64).mean(axis=0)
    inverse = np.linalg.inv(np.cov(COHORT.astype(np.float64).T, bias=True))
    expected = []
    for u, v in zip(LEFT - mean, RIGHT - mean, strict=True):
        expected.append(float(u @ inverse @ v) / math.sqrt(float(u @ inverse @ u) * float(v @ inverse @ v)))
    assert similarity("whitening") == pytest.approx(expected, abs=1e-4)


def test_csls_holds_a_cosine_against_those_of_the_ten_nearest() -> None:
    def nearest(x: np.ndarray) -> float:
        return float(np.mean(sorted(cosine(x, other) for other in COHORT)[-10:]))

    expected = [2 * cosine(u, v) - nearest(u) - nearest(v) for u, v in zip(LEFT, RIGHT, strict=True)]
    assert similarity("csls") == pytest.approx(expected, abs=1e-5)
    own = METHODS["csls"].fit(COHORT, LENGTHS).texts(COHORT[:1], LENGTHS[:1]).own[0, 0]
    assert own == pytest.approx(np.mean(sorted(cosine(COHORT[0], other) for other in COHORT)[-11:-1]), abs=1e-5)


def test_mutual_proximity_is_the_product_of_two_chances() -> None:
    expected = []
    for u, v in zip(LEFT, RIGHT, strict=True):
        chances = [NormalDist(*with_cohort(x, COHORT)).cdf(cosine(u, v)) for x in (u, v)]
        expected.append(math.prod(chances))
    assert np.exp(similarity("mutual-proximity")) == pytest.approx(expected, abs=1e-4)


def test_length_regression_is_the_residual_of_least_squares_over_all_pairs() -> None:
    rows, values = [], []
    for i in range(N):
        for j in range(N):
            if i != j:
                a, b = math.log2(LENGTHS[i]), math.log2(LENGTHS[j])
                rows.append((a + b, a * b))
                values.append(float(COHORT[i].astype(np.float64) @ COHORT[j]))
    fitted = LinearRegression().fit(rows, values)
    a, b = np.log2(LEFT_LENGTHS), np.log2(RIGHT_LENGTHS)
    expected = np.einsum("ij,ij->i", LEFT, RIGHT) - fitted.predict(np.stack([a + b, a * b], axis=1))
    assert similarity("length-regression") == pytest.approx(expected, abs=1e-5)


def test_length_bins_standardise_by_all_pairs_of_two_bins() -> None:
    bins, cosines = bin_of(LENGTHS, EDGES).tolist(), COHORT.astype(np.float64) @ COHORT.T.astype(np.float64)
    expected = []
    for u, lu, v, lv in zip(LEFT, LEFT_LENGTHS, RIGHT, RIGHT_LENGTHS, strict=True):
        a, b = (int(bin_of(np.array([length]), EDGES)[0]) for length in (lu, lv))
        found = [cosines[i, j] for i in range(N) for j in range(N) if i != j and (bins[i], bins[j]) == (a, b)]
        expected.append((cosine(u, v) - np.mean(found)) / np.std(found))
    assert similarity("length-bins") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_pairs_blocks_and_a_copy_of_the_arrays_agree(name: str) -> None:
    method = METHODS[name].fit(COHORT, LENGTHS)
    pairs = method.similarity(LEFT, LEFT_LENGTHS, RIGHT, RIGHT_LENGTHS)
    left, right = method.texts(LEFT, LEFT_LENGTHS), method.texts(RIGHT, RIGHT_LENGTHS)
    block = method.block(left[3:], right)
    assert block.shape == (6, 9)
    assert block.dtype == np.float32
    assert [block[row, row + 3] for row in range(6)] == pytest.approx(pairs[3:], rel=1e-3, abs=1e-4)
    assert method.similarity(RIGHT, RIGHT_LENGTHS, LEFT, LEFT_LENGTHS) == pytest.approx(pairs, abs=1e-6)
    again = METHODS[name](**method.arrays())
    assert again.similarity(LEFT, LEFT_LENGTHS, RIGHT, RIGHT_LENGTHS).tolist() == pairs.tolist()
    if method.maps:
        one, two = method.transform(LEFT, LEFT_LENGTHS), method.transform(RIGHT, RIGHT_LENGTHS)
        assert np.einsum("ij,ij->i", one, two) == pytest.approx(pairs, abs=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_texts_of_one_length_and_equal_texts_have_similarities(name: str) -> None:
    same, lengths = np.repeat(COHORT[:1], 60, axis=0), np.full(60, 7)
    for vectors in (COHORT[:60], same):
        found = METHODS[name].fit(vectors, lengths).similarity(vectors, lengths, vectors[::-1], lengths)
        assert np.isfinite(found).all()


def test_length_centering_of_one_length_is_global_centering() -> None:
    lengths = np.full(N, 9)
    one, two = (METHODS[name].fit(COHORT, lengths) for name in ("length-centering", "global-centering"))
    assert one.transform(LEFT, LEFT_LENGTHS) == pytest.approx(two.transform(LEFT, RIGHT_LENGTHS), abs=1e-6)


def test_what_is_kept_of_a_cohort_does_not_grow_with_it() -> None:
    small, large = (LengthMatchedSNorm.fit(*made(n, 0)).arrays() for n in (400, 4000))
    assert sum(each.nbytes for each in large.values()) < 3 * sum(each.nbytes for each in small.values())


@pytest.mark.parametrize(
    ("vectors", "lengths", "message"),
    [
        (COHORT[:1], LENGTHS[:1], "1 text to fit"),
        (COHORT[:3], LENGTHS[:2], "and 2 lengths"),
        (np.zeros((3, D), np.float32), LENGTHS[:3], "vector of text 0 has the length 0:"),
        (np.where(np.arange(3)[:, None] == 1, np.nan, COHORT[:3]), LENGTHS[:3], "vector of text 1 has the length nan"),
        (COHORT[:3], np.array([3, 0, 2]), "Text 1 has 0 tokens"),
    ],
)
def test_what_no_calibration_can_be_fitted_to_is_named(vectors: np.ndarray, lengths: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked(vectors, lengths)
    assert checked(COHORT, LENGTHS)[0] is COHORT
