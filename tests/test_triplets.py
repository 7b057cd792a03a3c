import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stscurate import triplets
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.words import word_spans
from stscurate.store import Run
from stscurate.tables import Source, texts_source
from stscurate.triplets import make_triplets, mask_text, nested_masks
from tests.tiny_models import SENTENCES, tiny_causal_lm, tiny_sentence_transformer

ONE_TO_TEN = "one two three four five six seven eight nine ten"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_transformer(tmp_path_factory.mktemp("models") / "bert")


def source(folder: Path, texts: list[str]) -> Source:
    path = folder / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return texts_source(path)


@given(
    st.integers(1, 200),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=4).map(sorted),
    st.integers(0, 2**32),
)
def test_spans_have_their_lengths_and_nest(n: int, ratios: list[float], seed: int) -> None:
    spans = nested_masks(n, ratios, np.random.default_rng(seed))
    assert [stop - start for start, stop in spans] == [max(1, round(ratio * n)) for ratio in ratios]
    assert spans[0][0] >= 0
    assert spans[-1][0] >= 0
    assert spans[-1][1] <= n
    for (start, stop), (next_start, next_stop) in pairwise(spans):
        assert next_start <= start < stop <= next_stop


def test_every_place_is_equally_likely() -> None:
    rng = np.random.default_rng(0)
    drawn = Counter(tuple(nested_masks(10, (0.2, 0.4), rng)) for _ in range(18_000))
    # Nine starts of the first; the second begins up to two tokens earlier, where it stays within the ten.
    expected: dict[tuple[triplets.Span, ...], float] = {}
    for start in range(9):
        places = [place for place in (start - 2, start - 1, start) if 0 <= place <= 6]
        expected |= {((start, start + 2), (place, place + 4)): 1 / 9 / len(places) for place in places}
    assert drawn.keys() == expected.keys()
    for spans, share in expected.items():
        assert drawn[spans] / 18_000 == pytest.approx(share, abs=4.5 * (share / 18_000) ** 0.5)


@pytest.mark.parametrize("ratios", [(0.4, 0.2), (0.0, 0.4), (0.2, 1.2), ()])
def test_ratios_that_do_not_nest_are_refused(ratios: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="rising ratios within 0 and 1"):
        nested_masks(10, ratios, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("text", "span", "mode", "expected"),
    [
        ("a bb  c", (1, 2), "delete", "a c"),
        ("a bb  c", (1, 2), "mask", "a [M]  c"),
        ("a bb c", (0, 2), "delete", "c"),
        ("a bb c", (1, 3), "delete", "a"),
        ("a bb c", (0, 3), "delete", ""),
        ("a bb c", (0, 2), "mask", "[M] [M] c"),
        ("a,\nbb c", (2, 3), "delete", "a,\nc"),
        ("我喜欢猫", (1, 3), "delete", "我猫"),
    ],
)
def test_a_span_is_deleted_or_masked_and_the_spaces_are_tidy(
    text: str, span: tuple[int, int], mode: triplets.Mode, expected: str
) -> None:
    offsets = word_spans(text)
    assert mask_text(text, offsets, span, mode=mode, mask_token="[M]") == expected


def test_rows_tell_the_spans_of_what_is_missing(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        entry = make_triplets(run, source(tmp_path, [ONE_TO_TEN, "too short", "", ONE_TO_TEN]), seed=3)
        (row,) = run.table("triplets").to_pylist()
    assert entry.tally.as_dict() == {
        "rows_in": 4,
        "dropped": {"empty_text": 1, "repeated_text": 1, "too_short": 1},
        "counts": {},
    }
    words = ONE_TO_TEN.split()
    assert row["anchor"] == ONE_TO_TEN
    for name, length in (("positive", 2), ("negative", 4)):
        start, stop = row[f"{name}_start"], row[f"{name}_stop"]
        assert stop - start == length
        assert row[name].split() == words[:start] + words[stop:]


def test_a_texts_triplet_depends_on_the_seed_and_not_on_the_texts_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def triplets_of(name: str, texts: list[str], seed: int) -> dict[str, object]:
        with Run.open(tmp_path / name) as run:
            make_triplets(run, source(tmp_path, texts), seed=seed)
            return {row["anchor"]: row for row in run.table("triplets").to_pylist()}

    alone = triplets_of("alone", [ONE_TO_TEN], 0)[ONE_TO_TEN]
    monkeypatch.setattr(triplets, "_SHARD", 2)
    assert triplets_of("among", [*SENTENCES, ONE_TO_TEN], 0)[ONE_TO_TEN] == alone
    assert any(triplets_of(f"seed{seed}", [ONE_TO_TEN], seed)[ONE_TO_TEN] != alone for seed in (1, 2, 3))


def test_a_killed_run_goes_on_and_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Exception):
        pass

    def kill(label: str, done: int, total: int | None) -> None:
        if done >= 6:
            raise Killed

    monkeypatch.setattr(triplets, "_SHARD", 3)
    texts = source(tmp_path, list(SENTENCES))
    with Run.open(tmp_path / "whole") as run:
        make_triplets(run, texts)
    with Run.open(tmp_path / "broken") as run:
        with pytest.raises(Killed):
            make_triplets(run, texts, progress=kill)
        assert make_triplets(run, texts).fresh
        assert not make_triplets(run, texts).fresh
    assert fingerprint(tmp_path / "whole" / "triplets") == fingerprint(tmp_path / "broken" / "triplets")


def test_a_models_tokens_are_counted_and_masked_by_its_own_token(bert: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    long = " ".join(SENTENCES)  # above the 64 tokens that the model sees: the whole text counts
    with Run.open(tmp_path / "run") as run:
        make_triplets(run, source(tmp_path, [long]), tokenizer=str(bert), mode="mask")
        (row,) = run.table("triplets").to_pylist()
    pieces = AutoTokenizer.from_pretrained(str(bert)).tokenize(long)
    assert row["positive_stop"] - row["positive_start"] == round(0.2 * len(pieces))
    assert row["negative"].count("[MASK]") == round(0.4 * len(pieces))
    masked = AutoTokenizer.from_pretrained(str(bert)).tokenize(row["negative"])
    assert masked[: row["negative_start"]] == pieces[: row["negative_start"]]
    assert set(masked[row["negative_start"] : row["negative_stop"]]) == {"[MASK]"}


def test_pieces_of_one_character_count_as_one_token(tmp_path: Path) -> None:
    model = tiny_causal_lm(tmp_path / "bytes")  # byte-level: an emoji is several tokens
    with Run.open(tmp_path / "run") as run:
        make_triplets(run, source(tmp_path, ["🦊🐢🦉🐝🐙🐳🦔🐌🦀🐊"]), tokenizer=str(model))
        (row,) = run.table("triplets").to_pylist()
    assert (len(row["positive"]), len(row["negative"])) == (8, 6)
    with Run.open(tmp_path / "mask") as run, pytest.raises(InputError, match="bytes has no mask token"):
        make_triplets(run, source(tmp_path, ["x"]), tokenizer=str(model), mode="mask")


def test_several_triplets_of_a_text_differ_and_begin_with_the_one(tmp_path: Path) -> None:
    def rows_of(name: str, texts: list[str], per_text: int) -> tuple[list[dict[str, object]], dict[str, object]]:
        with Run.open(tmp_path / name) as run:
            entry = make_triplets(run, source(tmp_path, texts), per_text=per_text)
            return run.table("triplets").to_pylist(), entry.tally.as_dict()

    many, tally = rows_of("many", [ONE_TO_TEN, "too short"], 5)
    spans = {tuple(row[name] for name in row if name.endswith(("start", "stop"))) for row in many}
    assert len(spans) == len(many) > 1
    repeated = 5 - len(many)
    assert tally["rows_in"] == 10
    assert tally["dropped"] == {"too_short": 5} | ({"repeated_span": repeated} if repeated else {})
    assert {row["anchor"] for row in many} == {ONE_TO_TEN}
    (one,), _ = rows_of("one", [ONE_TO_TEN], 1)
    assert one == many[0]
    # five tokens have 5 places for the inner span, and 2 or 1 for the outer around it: 8 in all
    all_there, tally = rows_of("all", ["a b c d e"], 60)
    assert len(all_there) == 8
    assert tally["dropped"] == {"repeated_span": 52}


def test_the_stages_chance_is_even(tmp_path: Path) -> None:
    texts = [f"{number} b c d e f g h i j" for number in range(9000)]
    with Run.open(tmp_path / "run") as run:
        make_triplets(run, source(tmp_path, texts))
        found = run.table("triplets").select(["positive_start", "negative_start"]).to_pylist()
    first = Counter(row["positive_start"] for row in found)
    assert sorted(first) == list(range(9))
    assert all(abs(count - 1000) < 4.5 * 1000**0.5 for count in first.values())
    around = Counter(row["positive_start"] - row["negative_start"] for row in found if 2 <= row["positive_start"] <= 6)
    assert sorted(around) == [0, 1, 2]
    assert all(abs(count / around.total() - 1 / 3) < 0.04 for count in around.values())


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("我喜欢吃苹果", 6),
        ("これはペンです", 7),
        ("สวัสดีครับ", 7),  # Thai vowel signs above and below belong to their letter
        ("I like 猫 a lot", 5),
    ],
)
def test_scripts_without_spaces_go_by_characters(tmp_path: Path, text: str, units: int) -> None:
    assert len(word_spans(text)) == units
    with Run.open(tmp_path / "run") as run:
        make_triplets(run, source(tmp_path, [text]))
        (row,) = run.table("triplets").to_pylist()
    assert row["negative_stop"] - row["negative_start"] == round(0.4 * units)
    assert len(word_spans(row["negative"])) == units - round(0.4 * units)


def test_what_cannot_be_a_triplet_is_counted(tmp_path: Path) -> None:
    with Run.open(tmp_path / "same") as run:
        entry = make_triplets(run, source(tmp_path, [ONE_TO_TEN]), ratios=(0.2, 0.22))
        assert (entry.rows, entry.tally.dropped) == (0, {"same_span": 1})
    with Run.open(tmp_path / "nothing") as run:
        entry = make_triplets(run, source(tmp_path, [ONE_TO_TEN]), ratios=(0.2, 0.99))
        assert (entry.rows, entry.tally.dropped) == (0, {"nothing_left": 1})


def test_bad_options_are_told(bert: Path, tmp_path: Path) -> None:
    texts = source(tmp_path, [ONE_TO_TEN])
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(bert / "config.json", bare)
    with Run.open(tmp_path / "run") as run:
        with pytest.raises(InputError, match=r"Ratios 0\.4, 0\.2 don't nest"):
            make_triplets(run, texts, ratios=(0.4, 0.2))
        with pytest.raises(InputError, match="0 triplets of a text"):
            make_triplets(run, texts, per_text=0)
        with pytest.raises(InputError, match="no mode cut: delete or mask"):
            make_triplets(run, texts, mode="cut")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="bare has no tokenizer's vocabulary"):
            make_triplets(run, texts, tokenizer=str(bare))
        with pytest.raises(InputError, match=r"texts\.txt has no tokenizer that can be loaded"):
            make_triplets(run, texts, tokenizer=str(tmp_path / "texts.txt"))
