import hashlib

from stscurate.methods.leaks import leaked_rows, text_digest


def test_copies_are_seen_through_case_width_and_spaces() -> None:
    for copy, plain in (("A  Cat\n", "a cat"), ("ｄｏｇ", "Dog"), ("Straße", "STRASSE")):
        assert text_digest(copy) == text_digest(plain)
    assert text_digest("cat") != text_digest("cats")


def test_a_digest_is_the_hash_of_the_normalised_text() -> None:
    assert text_digest("A  cat") == hashlib.sha256(b"a cat").hexdigest()


def test_a_row_is_leaked_by_either_text() -> None:
    pairs = [("A cat", "x"), ("x", "a  CAT"), ("x", "y"), ("a cat!", "y")]
    assert leaked_rows(pairs, {text_digest("a cat")}).tolist() == [True, True, False, False]
