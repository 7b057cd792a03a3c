"""Runs built by hand, small enough to know what must come out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stscurate.records import Tally, from_rows
from stscurate.store import Run

PUBLISHED_PAIRS = {  # what `write_run` must come to: (sentence1, sentence2, score)
    "train": [
        ("The file is empty.", "An empty file.", 0.9),  # annotators before the label, in train
        ("It crashes on start.", "The menu is grey.", 0.2),
        ("Half alike.", "Alike by half.", 0.6),  # annotators before the score that came along
        ("No split at all.", "Nobody split this.", 1.0),  # the label, as there is nothing else
    ],
    "validation": [
        ("كيف أعيد تعيين كلمة المرور؟", "🤷🏽‍♀️ reset \x00 NUL", 1.0),  # gold before the annotators
        ("程序在启动时崩溃。", "启动时程序会崩溃。", 0.3),  # no gold
    ],
    "test": [
        ("A score of its own.", "Its own score.", 0.25),
        ("Not the same.", "Something else.", 0.0),
    ],
}


def pair(pair_id: str, text1: str, text2: str, **known: Any) -> dict[str, Any]:
    """A row of `pairs` with nothing known but its texts and what is given."""
    row: dict[str, Any] = dict.fromkeys(
        ("label", "score", "split", "id1", "id2", "component", "repository", "licence", "tier", "tokens1", "tokens2")
    )
    row |= {"pair_id": pair_id, "text1": text1, "text2": text2, "weight": 1.0, "origin": "made up", "flags": []}
    return row | known


def vote(pair_id: str, annotator: str, raw: float | None, order: str = "ab") -> dict[str, Any]:
    """A row of `votes`."""
    return {
        "pair_id": pair_id, "annotator": annotator, "scoring": "digit", "prompt": "5eed", "order": order, "sample": 0,
        "raw": raw, "scale": "0..5", "entropy": None, "missing_mass": None, "answer": None, "cut": 0, "tokens": 7,
        "error": None if raw is not None else "no number",
    }  # fmt: skip


def write_pairs(run: Run, rows: Sequence[Mapping[str, Any]], *, tally: Tally | None = None) -> None:
    """Make `rows` the run's pairs, if it has none yet."""
    stage = run.stage("pairing", tables=["pairs"], inputs={"issues.jsonl": "ab" * 32}, settings={"negatives": 1.0})
    if stage.entry:
        return
    stage.write(0, {"pairs": from_rows(rows, "pairs")}, tally or Tally(rows_in=len(rows)))
    stage.commit()


def write_triplets(run: Run, anchors: Iterable[str]) -> None:
    """Make triplets of the anchors: a word less, two words less."""
    rows = [
        {
            "text_id": f"t{number}", "anchor": text, "positive": text.rsplit(" ", 1)[0],
            "negative": text.rsplit(" ", 2)[0], "positive_start": 2, "positive_stop": 3, "negative_start": 1,
            "negative_stop": 3,
        }
        for number, text in enumerate(anchors)
    ]  # fmt: skip
    stage = run.stage("triplets", tables=["triplets"], inputs={"texts.txt": "cd" * 32}, settings={"ratios": [0.2, 0.4]})
    stage.write(0, {"triplets": from_rows(rows, "triplets")}, Tally(rows_in=len(rows)))
    stage.commit()


def write_run(run: Run) -> None:
    """A run with everything: gold, scores of two annotators, votes, triplets, drops, and texts of many scripts."""
    texts = {f"p{n}": row for n, row in enumerate(row for rows in PUBLISHED_PAIRS.values() for row in rows)}
    a_b, a_c = {"repository": "a/b", "licence": "MIT"}, {"repository": "a/c", "licence": "MIT OR Apache-2.0"}
    known: dict[str, dict[str, Any]] = {
        "p0": {"split": "train", "label": 1, "component": "c1", **a_b, "tier": 1, "id1": "b#1"},
        "p1": {"split": "train", "label": 0, **a_b, "flags": ["long"]},
        "p2": {"split": "train", "score": 0.55},
        "p3": {"label": 1},
        "p4": {"split": "validation", "label": 1, "component": "c2", **a_b, "tier": 3},
        "p5": {"split": "validation", "tokens1": 9, "tokens2": 8},
        "p6": {"split": "test", "score": 0.25},
        "p7": {"split": "test", "label": 0, "component": "c3", **a_c, "tier": 2},
    }
    rows = [pair(name, text1, text2, **known[name]) for name, (text1, text2, _) in texts.items()]
    rows.insert(3, pair("nobody-knows", "No label.", "No score.", split="train"))
    tally = Tally(rows_in=11)
    tally.drop("bot_author", 2)
    tally.count("evidence", "comment", 5)
    write_pairs(run, rows, tally=tally)
    given = {"p0": 0.9, "p1": 0.2, "p2": 0.6, "p4": 0.7, "p5": 0.3, "p6": 0.8}
    votes = [
        vote(name, who, None if (name, who) == ("p5", "small") else 5 * score, order)
        for name, score in reversed(given.items())
        for who, order in (("small", "ba"), ("large", "ab"), ("small", "ab"))
    ]
    stage = run.stage("votes", tables=["votes"], inputs={"pairs": run.fingerprint("pairs")}, settings={"llm": ["x"]})
    stage.write(0, {"votes": from_rows(votes, "votes")}, Tally(rows_in=len(given)))
    stage.commit()
    scores = [
        {"pair_id": name, "score": score, "spread": 0.1, "annotators": 2, "agreement": 0.8, "method": "mean"}
        for name, score in reversed(given.items())
    ]
    stage = run.stage("scores", tables=["scores"], inputs={"votes": run.fingerprint("votes")}, settings={"by": "mean"})
    stage.write(0, {"scores": from_rows(scores, "scores")}, Tally(rows_in=len(votes)))
    stage.commit()
    write_triplets(run, ["one two three four", "五 六 七 八"])


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its relative name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
