import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.errors import InputError
from stscurate.evaluation import gold_set
from stscurate.records import PAIRS, Tally, from_rows
from stscurate.store import Run
from stscurate.tables import Source, import_pairs, pair_id


def row(number: int, **values: Any) -> dict[str, Any]:
    text1, text2 = f"left {number}", f"right {number}"
    base: dict[str, Any] = dict.fromkeys(PAIRS.names)
    base |= {"pair_id": pair_id(text1, text2), "text1": text1, "text2": text2}
    return base | {"weight": 1.0, "origin": "test", "flags": []} | values


def test_scores_of_a_file_are_scaled_and_rows_without_gold_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,score\na,b,5\nc,d,\ne,f,2.5\ng,h,0\n,i,1\n")
    found = gold_set(str(path), scale="0-5")
    assert found.name == "sts.csv"
    assert found.pairs == [("a", "b"), ("e", "f"), ("g", "h")]
    assert found.gold.tolist() == [1, 0.5, 0]
    assert found.dropped == {"empty_text": 1, "no_gold": 1}
    assert not found.binary
    again = gold_set(str(path), scale="0-10")
    assert again.fingerprint != found.fingerprint == gold_set(str(path), scale="0-5").fingerprint


def test_a_label_is_gold_where_there_is_no_score(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(
        '{"text1": "a", "text2": "b", "label": 1}\n{"text1": "c", "text2": "d", "label": 0}\n'
        '{"text1": "e", "text2": "f", "label": 1}\n'
    )
    found = gold_set(str(path))
    assert found.gold.tolist() == [1, 0, 1]
    assert found.binary


@pytest.mark.parametrize(
    ("splits", "kept"),
    [
        (["train", "test", "test", "test", None], [1, 2, 3]),
        (["validation"] * 5, [0, 1, 2, 3, 4]),  # a file of one split is taken as it is
        ([None] * 5, [0, 1, 2, 3, 4]),
    ],
)
def test_of_several_splits_in_a_file_only_test_is_taken(
    tmp_path: Path, splits: list[str | None], kept: list[int]
) -> None:
    path = tmp_path / "pairs.csv"
    lines = [f"left {n},right {n},{n / 4},{split or ''}" for n, split in enumerate(splits)]
    path.write_text("\n".join(["text1,text2,score,split", *lines]) + "\n")
    found = gold_set(str(path))
    assert found.pairs == [(f"left {n}", f"right {n}") for n in kept]
    assert found.dropped == ({"other_split": 5 - len(kept)} if len(kept) < 5 else {})


def test_of_a_run_only_the_test_split_is_taken(tmp_path: Path) -> None:
    rows = [row(n, split="test", score=n / 10, label=1) for n in range(4)]
    rows += [row(9, split="test", label=1), row(10, split="train", score=1.0), row(11, score=1.0)]
    rows += [row(12, split="test")]
    source = Source(from_rows(rows, "pairs"), "pairs", "0" * 64, Tally(rows_in=len(rows)))
    with Run.open(tmp_path / "run") as run:
        import_pairs(run, source)
    found = gold_set(str(tmp_path / "run"))
    assert found.gold.tolist() == [0, 0.1, 0.2, 0.3, 1]
    assert found.dropped == {"no_gold": 1, "other_split": 2}
    assert found.name == "run, test split"


def test_gold_that_nothing_can_be_correlated_with_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("text1,text2,score\na,b,1\nc,d,0\ne,f,\n")
    with pytest.raises(InputError, match=r"few.csv has 2 pairs with gold \(left out: no_gold 1\).*at least 3"):
        gold_set(str(path))
    path.write_text("text1,text2,score\na,b,.5\nc,d,.5\ne,f,.5\n")
    with pytest.raises(InputError, match=r"gold of all 3 pairs is 0\.5"):
        gold_set(str(path))


def test_an_unknown_set_is_told_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no file lee-nws here, and no benchmark of that name .*lee-news"):
        gold_set("lee-nws")


@pytest.mark.parametrize("name", ["", " "])
def test_no_name_is_not_the_folder_one_stands_in(name: str) -> None:
    with pytest.raises(InputError, match="No set is named"):
        gold_set(name)


def test_lee_news_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install gensim"):
        gold_set("lee-news")


@pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim isn't installed: no Lee news ratings")
def test_lee_news_is_read_from_gensims_test_data_without_importing_it() -> None:
    found = gold_set("lee-news")
    assert len(found.pairs) == 1225
    assert len({text for pair in found.pairs for text in pair}) == 50
    # The matrix's first row reads 1, 0.3, 0.24, ...; its last rating is that of texts 49 and 50.
    np.testing.assert_allclose(found.gold[:3], [0.3, 0.24, 0.2])
    assert found.pairs[0][0].startswith("The national executive of the strife-torn Democrats")
    assert found.pairs[0][1].startswith("Cash-strapped financial services group AMP")
    assert found.pairs[1][1].startswith("The United States government")
    assert found.gold[-1] == 0.36
    assert any("\u00a33,000" in text for pair in found.pairs for text in pair)
    script = (
        "import sys; from stscurate.evaluation import gold_set; gold_set('lee-news'); print('gensim' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout == "False\n", done.stderr
