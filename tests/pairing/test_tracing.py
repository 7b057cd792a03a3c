"""The story of a row: every link's fate is the one that the pairing counted, and every reason is the true one."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import InputError
from stscurate.pairing import trace
from stscurate.pairing.replay import Replay
from stscurate.publishing import publish_folder
from stscurate.records import Tally, from_rows
from stscurate.store import Run
from tests.conftest import Command
from tests.pairing.made import issue, link, made_up, of_many_repositories, paired
from tests.publishing.samples import pair, vote, write_pairs, write_run

LONG = "a text that is long enough to be paired with another one, about"


def words_of(names: str, *more: str) -> str:
    return " ".join([LONG, *names.split(), *more])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{}, {"all_pairs": True}, {"split_by": "time", "min_chars": 80}])
def test_replayed_fates_are_those_that_the_pairing_counted(tmp_path: Path, seed: int, options: dict[str, Any]) -> None:
    issues, links = made_up(seed, 250)
    links.append(link("o/r#9999", "o/r#1"))
    entry, rows = paired(tmp_path / "run", issues, links, seed=seed, **options)
    replay = Replay(Run(tmp_path / "run"))
    positives = {(row["id1"], row["id2"]) for row in rows if row["label"] == 1}
    kept = {
        tuple(sorted((fate.pair.duplicate, fate.pair.canonical)))
        for fate in replay.fates
        if fate.pair and fate.reason is None
    }
    named = {(replay.corpus.ids[low], replay.corpus.ids[high]) for low, high in kept}
    dropped = Counter(fate.reason for fate in replay.fates if fate.reason)
    dropped += Counter(
        replay.why_unknown(at)
        for at, row in enumerate(links)
        if not {f"{row['repository']}#{row['duplicate']}", f"{row['canonical_repository']}#{row['canonical']}"}
        <= set(replay.corpus.ids)
    )
    if options.get("all_pairs"):
        assert named <= positives
        assert dropped <= entry.tally.dropped  # pairs that no link names can be dropped too
    else:
        assert named == positives
        assert dropped == entry.tally.dropped
    splits = {row["id1"]: row["split"] for row in rows}
    assert all(replay.split[replay.component[replay.corpus.index[name]]] == split for name, split in splits.items())


def test_components_in_two_splits_are_replayed_too(tmp_path: Path) -> None:
    import random

    issues, links = of_many_repositories(random.Random(1), 30)
    entry, _ = paired(tmp_path / "run", issues, links, split_by="repository")
    assert entry.tally.dropped["component_in_two_splits"]
    reasons = Counter(fate.reason for fate in Replay(Run(tmp_path / "run")).fates if fate.reason)
    assert reasons == entry.tally.dropped


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Issues that each stand for a reason; o/r#20 to o/r#39 only fill the pool of negatives."""
    copied = words_of("compaction that eats up all the memory of a small machine at night")
    issues = [
        issue(1, words_of("one")),
        issue(2, words_of("two two two words of its own, and many")),
        issue(3, words_of("three, which stands in a chain, carried on to its root")),
        issue(4, words_of("four, the oldest of a cycle of two issues")),
        issue(5, words_of("five, the newer of a cycle of two issues")),
        issue(6, "short"),
        issue(7, copied),
        issue(8, copied),
        issue(9, copied + " again"),
        issue(10, words_of("ten, which names another"), mentions=["o/r#1"]),
        issue(1, "something that was written elsewhere of other matters", repository="x/y"),
        issue(2, "the same that somebody else wrote there in these words", repository="x/y"),
    ]
    issues += [issue(n, f"{n} {n * 7} {n * 11} filler {n * 13} {n * 17} text {n * 19} {n * 23}") for n in range(20, 40)]
    links = [
        link(2, 1),
        link(3, 2, tier=2),
        link(4, 5),
        link(5, 4),
        link(6, 1),
        link(8, 7),
        link(10, 7777),
        link("x/y#2", "x/y#1"),
    ]
    folder = tmp_path_factory.mktemp("traced") / "run"
    paired(folder, issues, links, shares=(1, 0, 0), negatives=1)
    return Run(folder)


@pytest.mark.parametrize(
    ("row", "kept", "told"),
    [
        ("o/r#1 o/r#2", True, "a positive pair: o/r#2 is said to duplicate o/r#1"),
        ("O/R#2, o/r#1", True, "a positive pair: o/r#2 is said to duplicate o/r#1"),
        ("https://github.com/o/r/issues/1 o/r#3", True, "o/r#3 is said to duplicate o/r#2, which leads on to the root"),
        ("o/r#2 o/r#3", False, "o/r#3 -> o/r#2, carried on to o/r#1: makes a pair"),
        ("o/r#1 o/r#6", False, "o/r#6 -> o/r#1: a text has fewer than 20 characters"),
        ("o/r#7 o/r#8", False, "the two texts are equal"),
        ("o/r#7 o/r#9", False, "they stand in one component"),
        ("o/r#1 o/r#10", False, "one refers to the other"),
        ("o/r#1 x/y#1", False, "drawn within a repository"),
        ("o/r#6 o/r#20", False, "o/r#6 has fewer than 20 characters"),
        ("o/r#10 o/r#7777", False, "o/r#7777 isn't among the run's issues"),
        ("o/r#7777", False, "o/r#7777 isn't among the run's issues"),
        ("o/r#6", False, "its text has fewer than 20 characters"),
        ("o/r#1", True, "it stands in 2 positive and"),
    ],
)
def test_each_reason_is_told(run: Run, row: str, kept: bool, told: str) -> None:
    story = trace(run, row)
    assert (story["kept"], told in story["why"]) == (kept, True), story["why"]


def test_the_fate_of_each_link_of_an_issue_is_told(run: Run) -> None:
    (cycle, back) = trace(run, "o/r#4")["links"]
    assert (cycle["reason"], back["reason"]) == ("root_of_a_cycle", None)
    assert "the oldest of the cycle" in cycle["fate"]
    (missing,) = trace(run, "o/r#10")["links"]
    assert missing["reason"] == "canonical_missing"
    assert [link["canonical"] for link in trace(run, "o/r#1")["links"]] == ["o/r#1", "o/r#1"]


def test_what_joined_a_component_is_told_step_by_step(run: Run) -> None:
    story = trace(run, "o/r#1 o/r#3")
    assert story["component"] == {"o/r#1": "o/r#1", "o/r#3": "o/r#1"}
    assert [(edge["one"], edge["other"], edge["by"]) for edge in story["joined"]] == [
        ("o/r#1", "o/r#2", "a link of tier 1 (comment)"),
        ("o/r#2", "o/r#3", "a link of tier 2 (comment)"),
    ]
    (near,) = trace(run, "o/r#7 o/r#9")["joined"]
    # 26 words against 27: 22 sequences of five in common of 23
    assert near["by"] == f"near duplicates (Jaccard {22 / 23:.2f})"
    assert trace(run, "o/r#8")["component_size"] == 3


def test_negative_pairs_and_those_that_were_not_drawn_are_told_apart(run: Run) -> None:
    rows = run.table("pairs").to_pylist()
    negative = next(row for row in rows if row["label"] == 0 and row["repository"] == "o/r")
    story = trace(run, f"{negative['id2']} {negative['id1']}")
    assert story["pair"]["pair_id"] == negative["pair_id"]
    assert "a negative pair, drawn" in story["why"]
    assert len(story["component"].values()) == 2
    drawn = {frozenset((row["id1"], row["id2"])) for row in rows}
    left = next(n for n in range(21, 40) if frozenset(("o/r#20", f"o/r#{n}")) not in drawn)
    why = trace(run, f"o/r#20 o/r#{left}")["why"]
    positives = sum(row["label"] == 1 and row["repository"] == "o/r" for row in rows)
    assert "could have been a negative pair, but weren't drawn" in why
    assert f"For the {positives} positive pairs of o/r in train, 1 negative ones each" in why


def test_pairs_are_found_by_id_by_its_beginning_and_by_issues(run: Run) -> None:
    row = run.table("pairs").to_pylist()[0]
    by_id, by_prefix, by_issues = (
        trace(run, given) for given in (row["pair_id"], row["pair_id"][:9], f"{row['id1']} {row['id2']}")
    )
    assert (
        by_id["pair"]
        == by_prefix["pair"]
        == by_issues["pair"]
        == {name: value for name, value in row.items() if name not in ("text1", "text2")}
    )
    assert by_id["issues"] == by_issues["issues"]
    for given, told in (
        ("zzz", "no pair 'zzz': give a pair_id or how it begins, one issue as owner/name#12, or two"),
        ("", "no pair ''"),
        (
            "o/r#888",
            r"no link names it \(left out when issues were collected: [a-z_, 0-9]+\)\. Issues look like",
        ),
        ("o/r#1 o/r#2 o/r#3", "no pair"),
    ):
        with pytest.raises(InputError, match=told):
            trace(run, given)


def test_a_beginning_of_several_ids_is_refused(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair(name, "a", "b", label=1) for name in ("ab1", "ab2", "ab")])
    assert trace(run, "ab")["pair"]["pair_id"] == "ab"  # a whole id goes before
    with pytest.raises(InputError, match=r"a begins 3 pairs \(ab1, ab2, ab, ...\)"):
        trace(run, "a")


def test_cleaning_is_told_by_lines(tmp_path: Path) -> None:
    body = "- [x] I searched\nIt  crashes at @someone\nwith a trace"
    clean = "Title\n\nIt crashes at @user\nwith a trace"
    issues = [issue(1, clean, title="Title", body=body), issue(2), issue(3), issue(4)]
    paired(tmp_path / "run", issues, [link(2, 1), link(4, 3)])
    told = trace(Run(tmp_path / "run"), "o/r#1")["issues"][0]
    assert (told["raw_chars"], told["clean_chars"]) == (5 + len(body), len(clean))
    assert told["cleaning"] == {
        "lines": 4,
        "taken_out_or_rewritten": 2,
        "new_or_rewritten": 1,
        "first_out": ["- [x] I searched", "It  crashes at @someone"],
        "first_new": ["It crashes at @user"],
    }


def test_votes_score_and_published_place_of_a_users_pair(command: Command, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_run(run)
        publish_folder(run, tmp_path / "run" / "published", licence="mit")
        publish_folder(run, tmp_path / "elsewhere", licence="mit")
    story = trace(run, "p5", published=[tmp_path / "elsewhere"])
    assert [(row["annotator"], row["order"], row["raw"]) for row in story["votes"]] == [
        ("large", "ab", 1.5),
        ("small", "ab", None),
        ("small", "ba", None),
    ]
    assert story["votes"][1]["error"] == "no number"
    assert (story["score"]["score"], story["score"]["spread"], story["score"]["method"]) == (0.3, 0.1, "mean")
    places = [(row["split"], row["row"], row["of_these_pairs"]) for row in story["published"]]
    assert places == [("validation", 1, True)] * 2
    unpublished = trace(run, "nobody-knows")["published"]
    assert [row["split"] for row in unpublished] == [None]
    shown = command("trace", tmp_path / "run", "p5").stdout
    assert "large (digit, ab, sample 0): 1.5 of 0..5" in shown
    assert "small (digit, ab, sample 0): none (no number)" in shown
    assert "score 0.300 by mean of 2 annotators, spread 0.100" in shown
    assert f"published in {tmp_path / 'run' / 'published'}: row 1 of validation" in shown
    refused = command("trace", tmp_path / "run", "p5", "--published", tmp_path)
    assert (refused.exit_code, "isn't a published set" in refused.stderr) == (2, True)
    issues = command("trace", tmp_path / "run", "a/b#1")
    assert (issues.exit_code, "only a pair_id can be traced there" in issues.stderr) == (2, True)


def test_the_command_tells_a_pair_on_one_screen(run: Run, command: Command) -> None:
    result = command("trace", run.folder, "o/r#1", "o/r#3")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "o/r#1 o/r#3: kept"
    assert len(lines) < 40
    assert "o/r#3 -> o/r#2" not in result.stdout  # another pair's link
    assert "    o/r#2 and o/r#3: a link of tier 2 (comment)" in lines
    found = json.loads(command("trace", run.folder, "o/r#1", "o/r#3", "--json").stdout)
    assert found["kept"] is True
    assert found["pair"]["tier"] == 2
    assert command("trace", run.folder.parent, "o/r#1").exit_code == 2


def test_votes_of_others_do_not_show(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair("p", "a", "b", label=1), pair("q", "c", "d", label=0)])
        stage = run.stage("votes", tables=["votes"], inputs={}, settings={})
        stage.write(0, {"votes": from_rows([vote("q", "small", 1.0)], "votes")}, Tally())
        stage.commit()
    assert (trace(run, "p")["votes"], len(trace(run, "q")["votes"])) == ([], 1)
    assert trace(run, "p")["texts"][0] == {"chars": 1, "begins": "a"}
