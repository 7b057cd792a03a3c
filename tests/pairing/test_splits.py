"""Splits: what stands together, what holds of their sizes, by component, time and repository."""

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise, product
from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.methods.texts import normalise
from stscurate.pairing.splits import deal
from tests.pairing.made import issue, link, made_up, of_many_repositories, paired, words


@pytest.mark.parametrize("seed", [0, 1])
def test_no_issue_no_text_and_no_component_stands_in_two_splits(tmp_path: Path, seed: int) -> None:
    issues, links = made_up(seed)
    links = links[::3]
    _, rows = paired(tmp_path, issues, links, seed=seed)
    homes: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for key in (row["id1"], row["id2"], normalise(row["text1"]), normalise(row["text2"]), row["component"]):
            if key:
                homes[key].add(row["split"])
    assert all(len(splits) == 1 for splits in homes.values())
    # A slow closure over links and equal texts: what hangs together is together.
    name = {f"{row['repository']}#{row['number']}": normalise(row["clean_text"]) for row in issues}
    groups = [{a} for a in name]
    for a, b in [
        (f"{x['repository']}#{x['duplicate']}", f"{x['canonical_repository']}#{x['canonical']}") for x in links
    ] + [(a, b) for a in name for b in name if a < b and name[a] == name[b]]:
        joined = [group for group in groups if a in group or b in group]
        groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    for row in rows:
        together = any(row["id1"] in group and row["id2"] in group for group in groups)
        assert together == (row["label"] == 1)


def test_shares_hold_as_well_as_components_allow(tmp_path: Path) -> None:
    issues = [issue(n) for n in range(1, 401)]
    links = [link(n, n - 1) for n in range(2, 401, 2)]
    for shares, expected in (((0.8, 0.1, 0.1), [160, 20, 20]), ((0.5, 0.0, 0.5), [100, 0, 100])):
        rows = paired(tmp_path / str(shares[1]), issues, links, shares=shares, negatives=0.5)[1]
        for label, part in ((1, 1.0), (0, 0.5)):
            splits = Counter(row["split"] for row in rows if row["label"] == label)
            assert [splits[name] for name in ("train", "validation", "test")] == [part * n for n in expected]


def test_near_duplicates_never_stand_in_two_splits_nor_in_a_negative_pair(tmp_path: Path) -> None:
    generator = random.Random(0)
    issues, links = [], []
    for number in range(1, 301, 3):  # a duplicate of it, and a near copy that nobody has linked
        text = words(generator)
        issues += [issue(number, text), issue(number + 1, words(generator)), issue(number + 2, f"{text} more")]
        links.append(link(number + 1, number))
    options = {"negatives": 20, "lexical_share": 1.0, "shares": (0.4, 0.3, 0.3)}
    entry, rows = paired(tmp_path, issues, links, **options)
    assert entry.tally.counts["near_duplicates"] == {"pairs_of_texts": 100, "components_merged_into_others": 100}
    split = {row[name].split("#")[1]: row["split"] for row in rows for name in ("id1", "id2")}
    assert all(split[str(n)] == split[str(n + 2)] for n in range(1, 301, 3) if str(n + 2) in split)
    assert sum(str(n + 2) in split for n in range(1, 301, 3)) > 80
    near = {frozenset((f"o/r#{n}", f"o/r#{n + 2}")) for n in range(1, 301, 3)}
    assert not near & {frozenset((row["id1"], row["id2"])) for row in rows}
    entry, _ = paired(tmp_path / "one", issues, links, near_duplicates=1.0, **options)
    assert entry.tally.counts["near_duplicates"] == {"pairs_of_texts": 0, "components_merged_into_others": 0}


@pytest.mark.parametrize("shares", [(0.8, 0.1, 0.1), (0.0, 0.6, 0.4)])
def test_by_time_the_oldest_components_train_and_the_newest_test(
    tmp_path: Path, shares: tuple[float, float, float]
) -> None:
    generator = random.Random(1)
    days = generator.sample(range(1, 2_001), 1_000)
    issues = [
        issue(n, words(generator), created_at=datetime.fromtimestamp(1_500_000_000 + 86_400 * day, UTC))
        for n, day in enumerate(days, 1)
    ]
    links = [link(n, n - 1) for n in range(2, 601, 2)] + [link(n, n - 2) for n in range(3, 60, 4)]  # of two and of four
    _, rows = paired(tmp_path, issues, links, split_by="time", shares=shares, seed=4)
    born = {f"o/r#{row['number']}": row["created_at"] for row in issues}
    latest: dict[str, dict[str, datetime]] = defaultdict(dict)  # split -> component -> its latest issue
    for row in rows:
        if row["label"] == 1:
            moments = (born[row["id1"]], born[row["id2"]])
            latest[row["split"]][row["component"]] = max(
                *moments, latest[row["split"]].get(row["component"], moments[0])
            )
    ranges = [sorted(latest[split].values()) for split in ("train", "validation", "test") if split in latest]
    assert len(ranges) == sum(share > 0 for share in shares)
    assert all(old[-1] < new[0] for old, new in pairwise(ranges))
    for row in rows:  # what stands only in negatives is cut at the same moments
        if row["label"] == 0 and row["split"] != "test":
            assert max(born[row["id1"]], born[row["id2"]]) <= max(latest[row["split"]].values())
    for label in (0, 1):
        shared = Counter(row["split"] for row in rows if row["label"] == label)
        for split, share in zip(("train", "validation", "test"), shares, strict=True):
            assert abs(shared[split] / shared.total() - share) < 0.01


def test_by_time_issues_without_a_date_count_as_the_oldest(tmp_path: Path) -> None:
    issues = [issue(n, created_at=None if n in (9, 10) else issue(n)["created_at"]) for n in range(1, 21)]
    rows = paired(tmp_path, issues, [link(n, n - 1) for n in range(2, 21, 2)], split_by="time", negatives=0)[1]
    split = {row["id1"]: row["split"] for row in rows}
    assert (split["o/r#9"], split["o/r#1"], split["o/r#19"]) == ("train", "train", "test")
    assert Counter(split.values()) == {"train": 8, "validation": 1, "test": 1}


def test_by_repository_none_stands_in_two_splits_and_components_across_them_are_left_out(tmp_path: Path) -> None:
    issues, links = of_many_repositories(random.Random(2))
    entry, rows = paired(tmp_path, issues, links, split_by="repository", negatives=0.5)
    homes: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name in ("id1", "id2"):
            homes[row[name].split("#")[0]].add(row["split"])
    assert len(homes) > 50
    assert all(len(splits) == 1 for splits in homes.values())
    assert entry.tally.dropped == {"component_in_two_splits": 9}
    for label in (0, 1):
        shared = Counter(row["split"] for row in rows if row["label"] == label)
        for split, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
            assert abs(shared[split] / shared.total() - share) < 0.01
    balance = {split: Counter(row["label"] for row in rows if row["split"] == split) for split in ("train", "test")}
    assert all(abs(labels[0] - labels[1] / 2) <= 0.5 for labels in balance.values())


def test_by_repository_needs_as_many_of_them_as_splits(tmp_path: Path) -> None:
    issues = [issue(n) for n in range(1, 5)]
    with pytest.raises(InputError, match=r"in 1 repositories, too few for 3 splits"):
        paired(tmp_path, issues, [link(2, 1)], split_by="repository")


SHARES = [(0.8, 0.1, 0.1), (0.6, 0.2, 0.2), (0.0, 0.7, 0.3), (1 / 3, 1 / 3, 1 / 3)]
NAMES = ("train", "validation", "test")


def off(sizes: list[int], split: list[str], shares: tuple[float, ...]) -> float:
    """How far the split that is furthest from its share of all is from it, as a share of all."""
    held = [sum(size for size, name in zip(sizes, split, strict=True) if name == part) for part in NAMES]
    return max(abs(part / sum(sizes) - share) for part, share in zip(held, shares, strict=True))


def dealt(sizes: list[int], shares: tuple[float, ...], seed: int) -> list[str]:
    component = [at for at, size in enumerate(sizes) for _ in range(size + 1)]
    found = deal(component, Counter(dict(enumerate(sizes))), shares, seed=seed)
    return [found[at] for at in range(len(sizes))]


@pytest.mark.parametrize("shares", SHARES)
def test_sizes_of_many_random_components_are_within_one_percent_unless_one_is_larger(
    shares: tuple[float, float, float],
) -> None:
    generator = random.Random(6)
    small = 0
    for seed in range(30):
        largest = generator.choice([4, 8, 1_000])
        sizes = [min(int(generator.paretovariate(1.2)), largest) for _ in range(400)]
        found = off(sizes, dealt(sizes, shares, seed), shares)
        assert found * sum(sizes) < max(sizes)
        if max(sizes) <= sum(sizes) / 100:
            small += 1
            assert found < 0.01
    assert small >= 5


@pytest.mark.parametrize("shares", SHARES)
def test_a_few_components_are_dealt_as_well_as_any_way_of_dealing_them(shares: tuple[float, float, float]) -> None:
    """Every way is tried: where one comes within one percent, so does ours; and no split is empty for no need."""
    generator = random.Random(7)
    wanted = [name for name, share in zip(NAMES, shares, strict=True) if share]
    reached = 0
    for seed in range(60):
        sizes = [generator.choice([1, 1, 2, 3, generator.randint(1, 12)]) for _ in range(generator.randint(3, 8))]
        ways = (split for split in product(wanted, repeat=len(sizes)) if set(split) == set(wanted))
        best = min(off(sizes, list(split), shares) for split in ways)
        split = dealt(sizes, shares, seed)
        assert set(split) == set(wanted)
        if best < 0.01:
            reached += 1
            assert off(sizes, split, shares) < 0.01
    assert reached >= 5


def test_labels_are_balanced_alike_in_splits_of_random_components(tmp_path: Path) -> None:
    generator = random.Random(8)
    for ratio in (1.0, 2.5):
        issues, links, number = [], [], 0
        while number < 900:
            size = 2 + min(int(generator.paretovariate(1.5)), 8)
            links += [link(number + at, number + 1) for at in range(2, size + 1)]
            issues += [issue(number + at, words(generator)) for at in range(1, size + 1)]
            number += size
        rows = paired(tmp_path / str(ratio), issues, links, negatives=ratio)[1]
        labels = Counter((row["split"], row["label"]) for row in rows)
        for name, share in zip(NAMES, (0.8, 0.1, 0.1), strict=True):
            both = labels[name, 0] + labels[name, 1]
            assert abs(both / len(rows) - share) < 0.01
            assert abs(labels[name, 0] - ratio * labels[name, 1]) <= 0.5
            assert abs(labels[name, 1] / both - 1 / (1 + ratio)) < 0.01


def test_by_time_a_cut_misses_its_share_by_half_a_component_and_leaves_no_split_empty(tmp_path: Path) -> None:
    generator = random.Random(9)
    for n in (3, 8, 60):
        for seed in range(2):
            sizes = [generator.choice([1, 1, 2, 5]) for _ in range(n)]
            issues, links, number = [], [], 0
            for size in sizes:
                links += [link(number + at, number + 1) for at in range(2, size + 2)]
                issues += [issue(number + at) for at in range(1, size + 2)]
                number += size + 1
            options = {"split_by": "time", "negatives": 0, "shares": (0.6, 0.2, 0.2), "near_duplicates": 1.0}
            rows = paired(tmp_path / f"{n} {seed}", issues, links, **options)[1]
            held = Counter(row["split"] for row in rows)
            assert sorted(held) == sorted(NAMES)
            if n == 60:
                for cut, share in ((held["train"], 0.6), (held["train"] + held["validation"], 0.8)):
                    assert abs(cut - share * sum(sizes)) <= max(sizes) / 2


def test_by_repository_none_of_the_splits_is_empty_where_three_have_duplicates(tmp_path: Path) -> None:
    issues = [issue(n, repository=f"o/r{at}") for at in range(3) for n in range(1, 21)]
    links = [link(f"o/r{at}#{n}", f"o/r{at}#1") for at in range(3) for n in range(2, 21)]
    rows = paired(tmp_path, issues, links, split_by="repository")[1]
    assert Counter(row["split"] for row in rows if row["label"]) == dict.fromkeys(NAMES, 19)
