from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError
from stscurate.publishing import publish_folder
from stscurate.store import Run
from tests.publishing.samples import pair, write_pairs, write_triplets

TOKEN = "ghp_" + "aB3dE6gH9j" * 4  # made up


def publish(
    tmp_path: Path, rows: Sequence[Mapping[str, Any]], *, accept: Sequence[str] = (), anchors: Sequence[str] = ()
) -> str:
    """The card of the rows published; nothing may be left where a gate refuses."""
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
        if anchors:
            write_triplets(run, anchors)
        try:
            publish_folder(run, tmp_path / "set", licence="mit", accept=accept)
        except InputError:
            assert [path.name for path in tmp_path.iterdir()] == ["run"]
            raise
    return (tmp_path / "set" / "README.md").read_text()


def test_text_in_two_splits_is_refused_whatever_its_case_and_spaces(tmp_path: Path) -> None:
    rows = [
        pair("p", "fine", "fine too", label=1, split="train"),
        pair("q", "The  Same text", "x", label=1, split="train"),
        pair("r", "y", "the same\ttext ", label=0, split="test"),
    ]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert str(refused.value) == (
        "Splits leak: the same text in pairs row 1 (q), text1, in train and pairs row 2 (r), text2, in test. "
        "Split by component, or drop the rows of one side; --accept leak publishes as it is and says so."
    )
    card = publish(tmp_path, rows, accept=["leak"])
    assert "The gate `leak` was overridden when this was published. Its findings: 1." in card
    assert "The check for leaks was overridden" in card
    assert "No text and no component" not in card


def test_component_in_two_splits_is_refused(tmp_path: Path) -> None:
    rows = [
        pair("p", "a", "b", label=1, split="validation", component="c9"),
        pair("q", "c", "d", label=1, component="c9"),
    ]
    with pytest.raises(InputError, match=r"component c9 in pairs row 0 \(validation\) and row 1 \(train\)\. Split by"):
        publish(tmp_path, rows)


def test_anchor_that_stands_in_the_test_split_is_refused(tmp_path: Path) -> None:
    rows = [pair("p", "one two three four", "b", label=1, split="test")]
    with pytest.raises(InputError, match=r"row 0 \(p\), text1, in test and triplets row 0 \(t0\), anchor, in train"):
        publish(tmp_path, rows, anchors=["One two three four"])


def test_the_same_text_often_in_one_split_is_no_leak(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", label=1, component="c"), pair("q", "a", "c", label=0, split="train", component="c")]
    assert "No text and no component" in publish(tmp_path, rows)


def test_row_that_is_not_published_leaks_nothing(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", label=1), pair("q", "a", "c", split="test")]
    assert "for want of any score or label: 1 of the pairs" in publish(tmp_path, rows)


def test_empty_texts_are_refused_and_only_some_of_many_are_named(tmp_path: Path) -> None:
    rows = [pair(f"p{n}", "something", " \n", label=1) for n in range(1_005)]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert str(refused.value) == (
        "Empty text: pairs row 0 (p0), text2, in train; pairs row 1 (p1), text2, in train; pairs row 2 (p2), text2, "
        "in train; and 1,002 more. Drop or fill these rows; --accept empty publishes as it is and says so."
    )


def test_secret_is_refused_without_being_repeated(tmp_path: Path) -> None:
    rows = [pair("p", "fine", f"my token is {TOKEN}", label=1)]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert "secret: GitHub token at character 12 of pairs row 0 (p), text2, in train. Remove it" in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert "gate `secret` was overridden" in publish(tmp_path, rows, accept=["secret"])


def test_accepting_a_gate_that_finds_nothing_changes_no_claim(tmp_path: Path) -> None:
    card = publish(tmp_path, [pair("p", "a", "b", label=1)], accept=["leak"])
    assert "overridden" not in card
    assert "No text and no component" in card


def test_unknown_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no gate leaks: --accept takes empty, scale, schema, "):
        publish(tmp_path, [pair("p", "a", "b", label=1)], accept=["leaks"])


def test_a_table_of_a_run_that_was_changed_is_refused(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", score=0.5, split="train"), pair("q", "c", "d", score=0.5, split="test")]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
        (path,) = (tmp_path / "run" / "pairs").iterdir()
        table = pq.read_table(path, partitioning=None)
        place = table.schema.get_field_index("score")
        pq.write_table(table.set_column(place, table.schema.field(place), pa.array([0.5, 1.5])), path)
        with pytest.raises(InputError, match="run/pairs isn't as it was made"):
            publish_folder(run, tmp_path / "set", licence="mit")
    assert [found.name for found in tmp_path.iterdir()] == ["run"]


def test_the_same_pair_in_two_splits_is_refused_in_either_order(tmp_path: Path) -> None:
    rows = [pair("p", "one", "two", label=1, split="train"), pair("q", "TWO", "one", label=1, split="test")]
    with pytest.raises(InputError, match=r"row 0 \(p\), in train, and row 1 \(q\), in test\. Drop the rows of one"):
        publish(tmp_path, rows)


def test_nearly_the_same_text_in_two_splits_is_refused(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(50)]
    almost = " ".join([*words[:-1], "other"])  # of 46 sequences of five words 45 are the same: 45 / 47
    rows = [
        pair("p", " ".join(words), "x", label=1, split="train"),
        pair("q", almost, "y", label=1, split="train"),
        pair("r", almost + " z", "z", label=1, split="test"),
    ]
    with pytest.raises(InputError, match=r"0\.98 alike are pairs row 1 \(q\), text1, in train and pairs row 2 \(r\)"):
        publish(tmp_path, rows)
    assert "The gate `near` was overridden when this was published. Its findings: 2." in publish(
        tmp_path, rows, accept=["near"]
    )


def test_scores_that_are_all_alike_or_were_divided_twice_are_refused(tmp_path: Path) -> None:
    for name, score, message in (
        ("same", 0.4, "all 100 scores are 0.4"),
        ("low", None, "none of 100 scores is above 0.1"),
    ):
        rows = [pair(f"p{n}", f"a {n}", f"b {n}", score=score or n / 990) for n in range(100)]
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match=message):
            publish(tmp_path / name, rows)
        (tmp_path / f"{name} few").mkdir()
        publish(tmp_path / f"{name} few", rows[:99])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to jo.doe+x@example.org.", "e-mail address"),
        ("It answers from 93.184.216.34 only.", "IP address"),
        ("Ring +49 30 9018 2000 or me.", "phone number"),
        ("(212) 736-5000", "phone number"),
        ("Thanks @octocat for that", "login or home folder"),
    ],
)
def test_personal_data_is_refused_and_named_by_kind_and_row(tmp_path: Path, text: str, kind: str) -> None:
    with pytest.raises(InputError, match=rf"personal data: {kind} in pairs row 0 \(p\), text1, in train\. Replace it"):
        publish(tmp_path, [pair("p", text, "x", label=1)])


def test_what_only_looks_like_personal_data_passes(tmp_path: Path) -> None:
    texts = [
        "@user-1 saw [email-1] at 127.0.0.1", "1.2.3.4 is a version", "2026-11-30 12:00 +0100", "call 12345678",
        "/home/user-2/x and @Override", "(212) 555-0123", "1-800 of 5,000,000", "0.1234-567-8901 and 10-20-30",
    ]  # fmt: skip
    card = publish(tmp_path, [pair(f"p{n}", text, f"x {n}", label=1) for n, text in enumerate(texts)])
    assert "overridden" not in card


def test_source_without_a_licence_or_off_the_list_is_refused_by_name(tmp_path: Path) -> None:
    rows = [
        pair("p", "a", "b", label=1, repository="a/b", licence="MIT OR LicenseRef-own"),
        pair("q", "c", "d", label=1, repository="a/c"),
        pair("r", "e", "f", label=1, repository="a/c"),
        pair("s", "g", "h", label=1, repository="a/d", licence="MIT AND CC-BY-ND-4.0"),
        pair("t", "i", "j", label=1),  # whoever publishes it names its licence
    ]
    with pytest.raises(InputError) as refused:
        publish(tmp_path, rows)
    assert "a/c: licence isn't known (2 rows, from pairs row 1 on); a/d: licence MIT AND CC-BY-ND-4.0 isn't" in str(
        refused.value
    )
    assert "gate `licence` was overridden" in publish(tmp_path, rows, accept=["licence"])


def test_text_over_a_million_characters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1,000,001 characters in pairs row 0 \(p\), text2, in train"):
        publish(tmp_path, [pair("p", "a", "b" * 1_000_001, label=1)])


def test_columns_types_and_classes_that_changed_since_the_last_card_are_refused(tmp_path: Path) -> None:
    rows = [pair("p", "a", "b", label=1), pair("q", "c", "d", label=0)]
    card = publish(tmp_path, rows)
    edited = card.replace("- name: score\n    dtype: float64", "- name: score\n    dtype: int64", 1)
    edited = edited.replace("'0': different\n          '1': same", "'0': same\n          '1': different")
    edited = edited.replace("- name: text2\n    dtype: string\n  ", "")
    path = tmp_path / "set" / "README.md"
    path.write_text(edited)
    with Run.open(tmp_path / "run") as run:
        with pytest.raises(InputError) as refused:
            publish_folder(run, tmp_path / "set", licence="cc0-1.0", replace=True)
        assert str(refused.value).startswith(
            "Not as it was published before: config pairs: column score was int64, now float64; config pair-class: "
            "column labels was classes same, different, now classes different, same; config gis: column text2 is new. "
        )
        publish_folder(run, tmp_path / "set", licence="cc0-1.0", replace=True, accept=["schema"])
    assert "The gate `schema` was overridden when this was published. Its findings: 3." in path.read_text()
    assert "'0': different\n          '1': same" in path.read_text()
