from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stscurate import sampling
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, digests_of
from stscurate.progress import silent
from stscurate.sampling import sample_pairs
from stscurate.services.encoder import Encoder
from stscurate.store import Run
from stscurate.tables import Source, texts_source
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

PLACES = ("garden", "kitchen", "street", "harbour", "school")
TEXTS = [f"{sentence[:-1]} in the {place}." for sentence in SENTENCES for place in PLACES]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_sentence_transformer(tmp_path_factory.mktemp("models") / "tiny"))


def source(folder: Path, texts: list[str]) -> Source:
    path = folder / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return texts_source(path)


def test_pairs_are_drawn_in_equal_shares_each_once_and_never_of_one_text(model: str, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        entry = sample_pairs(run, source(tmp_path, TEXTS), model=model)
        rows = run.table("pairs").to_pylist()
        ids = dict(zip(run.table("texts")["text_id"].to_pylist(), TEXTS, strict=True))
    assert len(rows) == 3 * len(TEXTS)
    assert Counter(row["origin"] for row in rows) == {
        "sampled:embedding": 60,
        "sampled:lexical": 60,
        "sampled:random": 60,
    }
    assert entry.tally.counts == {"origin": Counter(row["origin"] for row in rows)}
    assert len({frozenset((row["id1"], row["id2"])) for row in rows}) == 180
    assert all(row["id1"] != row["id2"] for row in rows)
    assert all((ids[row["id1"]], ids[row["id2"]]) == (row["text1"], row["text2"]) for row in rows)


def test_embedding_neighbours_are_the_nearest_of_all(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_BLOCK", 7 * len(TEXTS))  # blocks of seven rows
    with Run.open(tmp_path / "run") as run:
        sample_pairs(run, source(tmp_path, TEXTS), model=model)
        rows = run.table("pairs").to_pylist()
    vectors = Encoder(model).encode(TEXTS)
    ranked = np.argsort(-(vectors @ vectors.T), axis=1)
    nearest = {text: [TEXTS[place] for place in ranked[number, 1:3]] for number, text in enumerate(TEXTS)}
    found = [(row["text1"], row["text2"]) for row in rows if row["origin"] == "sampled:embedding"]
    assert all(right in nearest[left] or left in nearest[right] for left, right in found)
    first = {frozenset((left, best[0])) for left, best in nearest.items()}
    assert first <= {frozenset(pair) for pair in found}  # every text's nearest comes before any second


def test_with_a_calibration_they_are_the_nearest_by_that(model: str, tmp_path: Path) -> None:
    encoder = Encoder(model)
    vectors, lengths = encoder.encode(TEXTS), encoder.token_counts(TEXTS)
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads, "texts.txt")
    for name, own in (("own", TEXTS), ("other", ["another"])):
        (tmp_path / name).mkdir()
        Calibration(METHODS["s-norm"].fit(vectors, lengths), *about, np.sort(digests_of(own))).save(tmp_path / name)
    fitted, other = (Calibration.load(tmp_path / name) for name in ("own", "other"))
    with Run.open(tmp_path / "run", replace=True) as run:
        entry = sample_pairs(run, source(tmp_path, TEXTS), model=model, calibration=fitted)
        rows = run.table("pairs").to_pylist()
        with pytest.raises(InputError, match=r"fitted to texts.txt, which holds 0% of these texts"):
            sample_pairs(run, source(tmp_path, TEXTS), model=model, calibration=other)
    cosine = vectors.astype(np.float64) @ vectors.T
    mu, sd = cosine.mean(axis=1), cosine.std(axis=1)
    ranked = np.argsort(-((cosine - mu[:, None]) / sd[:, None] + (cosine - mu) / sd), axis=1)
    best = {
        text: next(TEXTS[place] for place in ranked[number] if place != number) for number, text in enumerate(TEXTS)
    }
    found = {frozenset((row["text1"], row["text2"])) for row in rows if row["origin"] == "sampled:embedding"}
    assert {frozenset(pair) for pair in best.items()} <= found
    assert entry.key["settings"]["calibration"] == {
        "method": "s-norm",
        "model": encoder.model.name,
        "corpus": "texts.txt",
    }
    assert entry.key["inputs"]["calibration"] == fitted.fingerprint


def test_lexical_neighbours_share_words_and_rare_ones_count_more() -> None:
    texts = ["the zeppelin landed", "the dog ran", "a zeppelin", "the cat sat", "我喜欢猫", "我有猫", "xyz"]
    found = np.concatenate(list(sampling._nearest(sampling._lexical(texts), len(texts), 2, "lexical", silent)))
    assert found[0].tolist()[0] == 2  # the rare word, not "the"
    assert found[4].tolist() == [5, -1]
    assert found[6].tolist() == [-1, -1]


def test_what_neighbours_lack_is_filled_by_random_pairs(model: str, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        entry = sample_pairs(run, source(tmp_path, [f"w{number}" for number in range(12)]), model=model)
    assert entry.rows == 36
    assert entry.tally.counts["origin"] == {"sampled:embedding": 12, "sampled:random": 24}


def test_when_fewer_pairs_exist_all_are_made_and_it_is_told(model: str, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        entry = sample_pairs(run, source(tmp_path, list(SENTENCES[:5])), model=model, pairs=50)
        rows = run.table("pairs").to_pylist()
    assert {frozenset((row["text1"], row["text2"])) for row in rows} == {
        frozenset((left, right)) for left in SENTENCES[:5] for right in SENTENCES[:5] if left != right
    }
    assert entry.tally.counts["pairs"] == {"wanted": 50, "exist": 10}


def test_texts_equal_but_for_case_and_spaces_are_one(model: str, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        entry = sample_pairs(run, source(tmp_path, ["A cat", "a  CAT", "A dog", "A bird"]), model=model)
        texts = {row[side] for row in run.table("pairs").to_pylist() for side in ("text1", "text2")}
    assert texts == {"A cat", "A dog", "A bird"}
    assert (entry.tally.rows_in, entry.tally.dropped) == (4, {"repeated_text": 1})


def test_one_text_is_refused(model: str, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run, pytest.raises(InputError, match="a pair needs two that differ"):
        sample_pairs(run, source(tmp_path, ["A cat", "a  CAT"]), model=model)


def test_a_refusal_leaves_nothing_in_the_way(model: str, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        with pytest.raises(InputError, match="one and the same"):
            sample_pairs(run, source(tmp_path, ["Only one."]), model=model)
        assert run.entries == {}


def test_a_killed_run_gives_the_same_bytes_and_another_seed_others(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def kill(label: str, done: int, total: int | None) -> None:
        if label == "lexical neighbours":
            raise Killed

    monkeypatch.setattr(sampling, "_SHARD", 50)
    texts = source(tmp_path, TEXTS)
    with Run.open(tmp_path / "whole") as run:
        sample_pairs(run, texts, model=model)
    with Run.open(tmp_path / "broken") as run:
        with pytest.raises(Killed):
            sample_pairs(run, texts, model=model, progress=kill)
        assert sample_pairs(run, texts, model=model).fresh
        assert not sample_pairs(run, texts, model=model).fresh
    with Run.open(tmp_path / "other") as run:
        sample_pairs(run, texts, model=model, seed=1)
    whole, broken, other = (fingerprint(tmp_path / name / "pairs") for name in ("whole", "broken", "other"))
    assert whole == broken != other


@given(st.integers(2, 12), st.integers(0, 70), st.integers(0, 40), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_random_pairs_are_different_unknown_and_as_many_as_there_are(
    n: int, wanted: int, known: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    every = [left * n + right for left in range(n) for right in range(left + 1, n)]
    taken = rng.permutation(every)[:known].astype(np.int64)
    found = sampling._random_pairs(n, wanted, taken, rng).tolist()
    assert len(found) == len(set(found)) == min(wanted, len(every) - len(taken))
    assert set(found) <= set(every) - set(taken.tolist())


def test_random_pairs_of_many_texts_are_spread_evenly() -> None:
    n = 1000
    found = sampling._random_pairs(n, 50_000, np.array([1, 2, 3], np.int64), np.random.default_rng(0))
    assert len(set(found.tolist())) == 50_000
    counts = np.bincount(np.concatenate([found // n, found % n]), minlength=n)
    assert counts.mean() == 100
    assert counts.std() == pytest.approx(10, abs=1.5)  # each pair is as likely: a binomial spread
