"""Similarities of pairs, held to each pair compared by itself."""

from pathlib import Path

import numpy as np
import pytest

from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, digests_of
from stscurate.methods.pair_similarity import pair_lengths, pair_similarity
from stscurate.services.encoder import Encoder
from tests.tiny_models import SENTENCES

PAIRS = [(SENTENCES[at], SENTENCES[at - 3]) for at in (5, 6, 7, 5, 9)]


def test_a_pairs_similarity_is_that_of_its_two_vectors(tiny_model: Path, tmp_path: Path) -> None:
    encoder = Encoder(str(tiny_model))
    bare = pair_similarity(encoder, PAIRS)
    vectors, lengths = encoder.encode(SENTENCES), encoder.token_counts(SENTENCES)
    fitted = METHODS["s-norm"].fit(vectors, lengths)
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads, "sentences")
    calibration = Calibration(fitted, *about, np.sort(digests_of(SENTENCES)), tmp_path)
    calibrated = pair_similarity(encoder, PAIRS, calibration)
    place = {text: row for row, text in enumerate(SENTENCES)}
    for row, (one, two) in enumerate(PAIRS):
        a, b = place[one], place[two]
        cosine = float(vectors[a].astype(np.float64) @ vectors[b])
        assert bare[row] == pytest.approx(cosine, abs=1e-6)
        against = [[float(vectors[side].astype(np.float64) @ other) for other in vectors] for side in (a, b)]
        expected = sum((cosine - np.mean(found)) / np.std(found) for found in against) / 2
        assert calibrated[row] == pytest.approx(expected, abs=1e-3)
    assert pair_lengths(encoder, PAIRS).tolist() == [[lengths[place[text]] for text in pair] for pair in PAIRS]


def test_another_corpus_is_refused_before_anything_is_encoded(tiny_model: Path, tmp_path: Path) -> None:
    encoder = Encoder(str(tiny_model))
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads, "others")
    method = METHODS["cosine"].fit(np.eye(2, dtype=np.float32), np.ones(2, int))
    calibration = Calibration(method, *about, digests_of(["other"]), tmp_path)

    def told(label: str, done: int, total: int | None) -> None:
        raise AssertionError("it encodes")

    with pytest.raises(InputError, match="was fitted to others, which holds 0% of these texts"):
        pair_similarity(encoder, PAIRS, calibration, progress=told)
