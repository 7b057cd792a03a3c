import hashlib

from stscurate.methods.leaks import leaked_rows, shared_texts, text_digest


def test_copies_are_seen_through_case_width_and_spaces() -> None:
    assert shared_texts(["A  Cat\n", "ｄｏｇ", "Straße"], ["a cat", "Dog", "STRASSE", "bird"]) == {
        "a cat",
        "dog",
        "strasse",
    }
    assert shared_texts(["cat"], ["cats"]) == set()


def test_a_row_is_leaked_by_either_text() -> None:
    pairs = [("A cat", "x"), ("x", "a  CAT"), ("x", "y"), ("a cat!", "y")]
    assert leaked_rows(pairs, {"a cat"}).tolist() == [True, True, False, False]


def test_digests_serve_where_the_texts_may_not_be_kept() -> None:
    digests = {hashlib.sha256(b"a cat").hexdigest()}
    assert text_digest("A  cat") in digests
    assert leaked_rows([("A  cat", "x"), ("x", "y")], digests, key=text_digest).tolist() == [True, False]
