import random
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.texts import normalise
from stscurate.pairing import make_pairs
from stscurate.sources import collect_issues
from stscurate.store import Run
from stscurate.tables import pair_id
from tests.pairing.made import issue, link, made_up, paired, positives, short, words

SAMPLE = Path(__file__).parents[2] / "datasets" / "github-issues" / "sample.jsonl"


def test_duplicates_are_paired_with_the_root_of_their_chain_and_its_weakest_tier(tmp_path: Path) -> None:
    issues = [issue(n) for n in range(1, 9)]
    entry, rows = paired(tmp_path, issues, [link(4, 3), link(3, 2, 2), link(2, 1, 3), link(6, 5)], negatives=0)
    assert short(rows) == {(1, 4): 3, (1, 3): 3, (1, 2): 3, (5, 6): 1}
    assert entry.tally.counts["chains"] == {"carried_to_the_root": 2}
    assert {row["component"] for row in rows} == {"o/r#1", "o/r#5"}


def test_a_cycle_is_broken_at_its_oldest_issue(tmp_path: Path) -> None:
    issues = [issue(n) for n in range(1, 8)]
    entry, rows = paired(tmp_path, issues, [link(2, 3), link(3, 4, 2), link(4, 2), link(5, 4)], negatives=0)
    assert short(rows) == {(2, 3): 2, (2, 4): 2, (2, 5): 2}
    assert entry.tally.dropped == {"root_of_a_cycle": 1}


def test_of_several_originals_the_surest_leads_on_and_all_are_paired(tmp_path: Path) -> None:
    issues = [issue(n) for n in range(1, 8)]
    links = [link(5, 1, 2), link(5, 2, 1), link(5, 3, 1), link(6, 5)]
    assert short(paired(tmp_path, issues, links, negatives=0)[1]) == {(1, 5): 2, (2, 5): 1, (3, 5): 1, (2, 6): 1}


def test_an_original_that_is_newer_stands_second(tmp_path: Path) -> None:
    rows = paired(tmp_path, [issue(2), issue(10)], [link(2, 10)], negatives=0)[1]
    assert positives(rows) == {("o/r#2", "o/r#10"): 1}
    assert rows[0]["pair_id"] == pair_id(rows[0]["text1"], rows[0]["text2"])
    assert "number 2" in rows[0]["text1"]


def test_links_to_unknown_issues_short_texts_and_equal_texts_are_dropped_and_counted(tmp_path: Path) -> None:
    long = "The very same words of a long enough text"
    issues = [issue(1), issue(2), issue(3, "short"), issue(4, long), issue(5, long.upper()), issue(6), issue(7, long)]
    links = [link(2, 1), link(2, 99), link(3, 1), link(5, 4), link(4, 6), link(7, 6)]
    entry, rows = paired(tmp_path, issues, links, negatives=0)
    assert short(rows) == {(1, 2): 1, (4, 6): 1}
    assert entry.tally.rows_in == 6
    assert entry.tally.dropped == {
        "canonical_missing": 1,
        "text_too_short": 1,
        "repeated_pair": 2,  # 5 and 7 have the text of 4, and all three lead to 6
    }
    entry, _ = paired(tmp_path / "equal", issues, [link(2, 1), link(5, 4)], negatives=0)
    assert entry.tally.dropped == {"identical_texts": 1}


def test_flags_tell_what_a_user_may_want_to_filter(tmp_path: Path) -> None:
    words = " ".join(f"w{i}" for i in range(30))
    issues = [
        issue(1),
        issue(2, author="user-0000000001"),
        issue(3, "This long text says: Duplicate of #1"),
        issue(4, "This long text just names #1 somewhere"),
        issue(5, words),
        issue(6, f"{words} w30"),
        issue(7, repository="x/y"),
        issue(8, created_at=datetime.fromtimestamp(1_700_000_000 + 86_400 + 599, UTC)),
        issue(9, created_at=None, author="ghost"),
        issue(10, author="ghost"),
    ]
    links = [link(2, 1), link(3, 1), link(4, 1), link(6, 5), link("x/y#7", "o/r#1"), link(8, 1), link(10, 9)]
    rows = paired(tmp_path, issues, links, negatives=0)[1]
    assert {(row["id1"][4:], row["id2"][4:]): row["flags"] for row in rows} == {
        ("1", "2"): ["same_author"],
        ("1", "3"): ["label_in_text"],
        ("1", "4"): ["label_in_text"],
        ("5", "6"): ["near_identical"],
        ("1", "7"): ["cross_repository"],
        ("1", "8"): ["under_ten_minutes"],
        ("9", "10"): [],
    }
    assert [row["repository"] for row in rows] == ["o/r"] * 6 + ["x/y"]


def test_flags_begin_where_their_bounds_say(tmp_path: Path) -> None:
    first, words = 1_700_000_000, [f"w{i}" for i in range(20)]
    issues = [
        issue(1, " ".join(words), created_at=datetime.fromtimestamp(first, UTC)),
        issue(2, " ".join(words[1:]), created_at=datetime.fromtimestamp(first + 599.999, UTC)),  # 19 of 20 words
        issue(3, " ".join(words[2:]), created_at=datetime.fromtimestamp(first + 600, UTC)),  # 18 of 20: .9
        issue(4, " ".join(words[:1] + words[2:]).upper(), created_at=datetime.fromtimestamp(first - 599, UTC)),
        issue(5, " ".join([*words, "w20", "w21"]), created_at=datetime.fromtimestamp(first - 600, UTC)),  # 20 of 22
    ]
    rows = paired(tmp_path, issues, [link(n, 1, n % 3 + 1) for n in (2, 3, 4, 5)], negatives=0)[1]
    assert {row["id2"][4:]: (row["tier"], row["flags"]) for row in rows} == {
        "2": (3, ["near_identical", "under_ten_minutes"]),
        "3": (1, []),
        "4": (2, ["near_identical", "under_ten_minutes"]),
        "5": (3, ["near_identical"]),
    }


def test_negatives_are_balanced_by_split_and_repository_and_never_refer_to_each_other(tmp_path: Path) -> None:
    issues, links = made_up(2)
    entry, rows = paired(tmp_path, issues, links[::3])
    assert "negatives" not in entry.tally.counts
    balance: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for row in rows:
        balance[row["repository"], row["split"]][row["label"]] += 1
    assert all(labels[0] == labels[1] > 0 for labels in balance.values())
    assert len({frozenset((normalise(row["text1"]), normalise(row["text2"]))) for row in rows}) == len(rows)
    mentions = {f"{row['repository']}#{row['number']}": row["mentions"] for row in issues}
    for row in rows:
        if row["label"] == 0:
            assert row["id1"].split("#")[0] == row["id2"].split("#")[0] == row["repository"]
            assert row["id2"] not in mentions[row["id1"]]
            assert row["id1"] not in mentions[row["id2"]]
            assert (row["tier"], row["component"], row["score"], row["weight"]) == (None, None, None, 1.0)
    origins = Counter(row["origin"] for row in rows)
    assert abs(origins["negative:lexical"] - origins["negative:random"]) <= len(balance)


def test_lexical_negatives_share_more_words_than_random_ones(tmp_path: Path) -> None:
    issues, links = made_up(3)
    rows = paired(tmp_path, issues, links[::3])[1]
    shared: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        shared[row["origin"]].append(len(set(row["text1"].split()) & set(row["text2"].split())))
    mean = {origin: sum(counts) / len(counts) for origin, counts in shared.items()}
    assert mean["negative:lexical"] > mean["negative:random"] + 1


def test_rows_stand_in_order_of_repository_and_number(tmp_path: Path) -> None:
    rows = paired(tmp_path, *made_up(4))[1]
    keys = [
        (row["repository"], *((i.split("#")[0], int(i.split("#")[1])) for i in (row["id1"], row["id2"])))
        for row in rows
    ]
    assert keys == sorted(keys)
    assert all(key[1] < key[2] for key in keys)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_pairs(tmp_path: Path) -> None:
    issues, links = made_up(5)
    shuffled = random.Random(1).sample(issues, len(issues))
    for name, rows, seed in (("a", issues, 0), ("b", shuffled, 0), ("c", issues, 1)):
        assert paired(tmp_path / name, rows, links, seed=seed)[0].fresh
    assert not paired(tmp_path / "a", issues, links, seed=0)[0].fresh
    a, b, c = (fingerprint(tmp_path / name / "pairs" / "00000.parquet") for name in "abc")
    assert a == b != c


def test_all_pairs_joins_every_two_issues_by_the_surest_way(tmp_path: Path) -> None:
    issues = [issue(n) for n in range(1, 11)]
    links = [link(2, 1), link(3, 1, 2), link(4, 3, 3), link(6, 5), link(5, 4, 3), link(8, 7)]
    rows = paired(tmp_path, issues, links, negatives=0, all_pairs=True)[1]
    found = short(rows)
    assert set(found) == {(a, b) for a in range(1, 7) for b in range(a + 1, 7)} | {(7, 8)}
    direct = short(paired(tmp_path / "roots", issues, links, negatives=0)[1])
    assert found == found | direct
    assert (found[2, 3], found[2, 4], found[3, 6], found[5, 6]) == (2, 3, 3, 1)
    origins = {row["id2"] for row in rows if row["origin"] == "positive:same_component" and row["id1"] == "o/r#3"}
    assert origins == {"o/r#4", "o/r#5", "o/r#6"}  # 4 and what follows lead to 1


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_lexical_negatives_holds_over_many_small_repositories(tmp_path: Path, share: float) -> None:
    generator = random.Random(3)
    issues = [issue(n, words(generator, 100), repository=f"o/r{at}") for at in range(100) for n in range(1, 21)]
    links = [link(f"o/r{at}#2", f"o/r{at}#1") for at in range(100)]
    _, rows = paired(tmp_path, issues, links, lexical_share=share, shares=(1, 0, 0), near_duplicates=0.9)
    origins = Counter(row["origin"] for row in rows)
    assert origins["negative:lexical"] + origins["negative:random"] == 100
    assert abs(origins["negative:lexical"] / 100 - share) < 0.15 * (0 < share < 1) + 1e-9


def test_too_few_issues_for_the_negatives_wanted_is_counted(tmp_path: Path) -> None:
    entry, rows = paired(tmp_path, [issue(1), issue(2)], [link(2, 1)], negatives=2)
    assert [row["label"] for row in rows] == [1]
    assert entry.tally.counts["negatives"] == {"wanted_but_not_found": 2}


def test_more_negatives_than_there_are_pairs_end_soon(tmp_path: Path) -> None:
    issues = [issue(number) for number in range(1, 9)]
    began = time.monotonic()
    entry, rows = paired(tmp_path, issues, [link(2, 1)], negatives=1e6, shares=(1, 0, 0))
    assert len(rows) == 8 * 7 // 2  # the pair of duplicates, and every other pair of issues
    assert entry.tally.counts["negatives"]["wanted_but_not_found"] == 1_000_000 - 27
    assert time.monotonic() - began < 10


def test_a_long_chain_is_walked_once(tmp_path: Path) -> None:
    n = 3_000
    issues = [issue(number) for number in range(1, n + 1)]
    rows = paired(tmp_path, issues, [link(number + 1, number) for number in range(1, n)], negatives=0)[1]
    assert {row["id1"] for row in rows} == {"o/r#1"}
    assert len(rows) == n - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"negatives": -1}, "negatives is -1"),
        ({"negatives": float("nan")}, "negatives is nan"),
        ({"shares": (0.5, 0.1, 0.1)}, "add up to 1"),
        ({"shares": (1.2, -0.1, -0.1)}, "add up to 1"),
        ({"shares": (0.5, 0.5)}, "give three"),
        ({"min_chars": 0}, "min_chars is 0"),
        ({"lexical_share": 1.1}, r"lexical_share is 1\.1"),
        ({"split_by": "author"}, "split_by is 'author': give one of component, time, repository"),
        ({"near_duplicates": 0.2}, r"near duplicates is 0\.2: give a similarity from 0\.5 to 1"),
    ],
)
def test_options_out_of_range_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        paired(tmp_path, [issue(1), issue(2)], [link(2, 1)], **options)


def test_issues_without_duplicates_are_sent_to_the_other_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no pair of duplicates .*sample-pairs"):
        paired(tmp_path, [issue(1), issue(2)], [link(2, 9)])


def test_the_sample_gives_the_pairs_that_its_readme_counts(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        collect_issues(run, SAMPLE)
        entry = make_pairs(run)
        rows = run.table("pairs").to_pylist()
    pairs = positives(rows)
    assert len(pairs) == 51
    assert entry.tally.dropped == {"canonical_missing": 1, "root_of_a_cycle": 1}
    for repository, two in (
        ("lanternfish-db/tidepool", (2, 26)),
        ("lanternfish-db/tidepool", (2, 12)),
        ("bramblecode/hedgerow", (3, 29)),
        ("quillworks-tty/inkpot", (39, 41)),
    ):
        assert (f"{repository}#{two[0]}", f"{repository}#{two[1]}") in pairs
    assert ("copperlark/signalbox#14", "lanternfish-db/tidepool#4") in pairs
    assert entry.tally.counts["flags"]["cross_repository"] == 1
    assert {row["split"] for row in rows} == {"train", "validation", "test"}
