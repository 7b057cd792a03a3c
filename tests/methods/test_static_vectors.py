"""Means of word vectors from files as GloVe and word2vec write them."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from stscurate.errors import InputError
from stscurate.methods.static_vectors import StaticVectors

ROWS = {
    "the": [1, 0, 0],
    "cat": [0, 3, 4],
    "Paris": [0, 0, 2],
    "paris": [5, 0, 0],
    "dog": [0, 0, -2],
    ". . .": [1, 1, 1],
}
GLOVE = "".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in ROWS.items())


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text(GLOVE)
    return path


def test_a_text_is_the_mean_of_its_words_and_the_exact_form_of_a_word_comes_first(glove: Path) -> None:
    found = StaticVectors(glove).encode(["The cat.", "Paris", "PARIS", "cat cat the"])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0], np.array([1, 3, 4]) / np.sqrt(26), atol=1e-6)
    np.testing.assert_allclose(found[1:3], [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(found[3], np.array([1, 6, 8]) / np.sqrt(101), atol=1e-6)


def test_words_without_a_vector_are_counted_and_a_text_of_them_alone_is_like_nothing(glove: Path) -> None:
    model = StaticVectors(glove)
    texts = ["the zebra, the cat", "Unheard of!", "...", "dog Paris"]
    assert model.token_counts(texts).tolist() == [4, 2, 0, 2]
    assert model.unknown(texts).tolist() == [1, 2, 0, 0]
    assert model.cut(texts).tolist() == [0, 0, 0, 0]
    vectors = model.encode(texts)
    assert vectors[1:].tolist() == [[0, 0, 0]] * 3  # of no known word, of no word, and of words that cancel out
    assert model.encode([]).shape == (0, 3)


def test_both_formats_and_archives_give_the_same(glove: Path, tmp_path: Path) -> None:
    (tmp_path / "w2v.txt").write_text("6 3\n" + GLOVE.replace("\n", " \n"))  # word2vec ends its lines with a space
    with gzip.open(tmp_path / "glove.txt.gz", "wt") as file:
        file.write(GLOVE)
    expected = StaticVectors(glove).encode(["the dog", "cat"])
    for name in ("w2v.txt", "glove.txt.gz"):
        model = StaticVectors(tmp_path / name)
        assert model.model.name == name
        np.testing.assert_array_equal(model.encode(["the dog", "cat"]), expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2 3\nb 1 2\nc 1 2 3\n", "line 2 has 2 numbers where 3 are due"),
        ("a 1 2 3\nb 1 2 3 4\n", "line 2 has 4 numbers where 3 are due"),
        ("3 3\na 1 2 3\nb 1 2 3\n", "promises 3 words and holds 2"),
        ("a 1 2 x\n", "line 1: what follows 'a' isn't all finite"),
        ("a 1 nan 2\n", "line 1: what follows 'a' isn't all finite"),
        ("", "holds no word vectors"),
        ("word\n", "line 1 is no word with numbers"),
        (b"caf\xe9 1 2\n", "isn't UTF-8"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "broken.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        StaticVectors(path).encode(["a b"])


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .* of word vectors"):
        StaticVectors(tmp_path / "none.txt")
