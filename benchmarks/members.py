"""The three gold-free annotators of this machine on public sets: what they say, kept so that it is computed once.

    PYTHONPATH=. python benchmarks/members.py FOLDER --answers answers.sqlite --static MODEL [--set stsb-dev] ...

FOLDER holds stsb, sick and sts12_16 as published; MODEL is what benchmarks/static_model.py writes. Computes the votes
of each set and prints how far each member and the mean of their ranks correlate with gold.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.local_annotators import Rows, sick, sts16, stsb
from stscurate.annotators.base import Annotator, Pair, Row, vote_row
from stscurate.annotators.embedding import EmbeddingAnnotator
from stscurate.annotators.information_gain import InformationGainAnnotator
from stscurate.methods.correlation import spearman
from stscurate.methods.numbers import mid_ranks
from stscurate.progress import silent
from stscurate.records import from_rows
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import LanguageModel

Floats = NDArray[np.float64]
MEMBERS = ("gain", "MiniLM", "wordllama")
# SICK's choices are made on trial and a part of train, its numbers come from test.
SETS = ("stsb-dev", "sick-choices", "sts16", "sick-test", "stsb-train")
_OF_SICK_TRAIN = 1000


class Said(NamedTuple):
    """votes: (pairs, members), as MEMBERS, any scale. gold: (pairs,)."""

    votes: Floats
    gold: Floats


def rows_of(name: str, folder: Path) -> Rows:
    """The pairs of a set with gold."""
    if name == "sts16":
        return sts16(folder)
    if name == "sick-test":
        return sick(folder)
    if name == "sick-choices":
        return sick(folder, "trial") + random.Random(4).sample(sick(folder, "train"), _OF_SICK_TRAIN)
    return stsb(folder, name.removeprefix("stsb-"))


def said(rows: Rows, answers: Answers, static: Path) -> Said:
    """What each member says of each pair, computed where it isn't kept."""
    pairs = [Pair(str(number), one, two) for number, (one, two, _) in enumerate(rows)]
    annotators: list[Annotator] = [
        InformationGainAnnotator("gain", LanguageModel("SmolLM2-135M-Instruct")),
        EmbeddingAnnotator("MiniLM", "all-MiniLM-L6-v2"),
        EmbeddingAnnotator("wordllama", str(static)),
    ]
    votes = [[row["raw"] for of_pair in one.vote(pairs, answers, silent) for row in of_pair] for one in annotators]
    return Said(np.array(votes, dtype=np.float64).T, np.array([row[2] for row in rows]))


def votes_table(
    votes: Floats,
    names: Sequence[str] = MEMBERS,
    *,
    dear: str = MEMBERS[0],
    asked: NDArray[np.bool_] | None = None,
    leave_out: str = "",
) -> pa.Table:
    """(pairs, names) votes as the table that annotate makes, pairs "0", "1", ... asked: those that `dear` has seen."""
    rows: list[Row] = []
    for number, numbers in enumerate(votes.tolist()):
        pair = Pair(str(number), "", "")
        for name, raw in zip(names, numbers, strict=True):
            if name != leave_out and (name != dear or asked is None or asked[number]):
                rows.append(vote_row(pair, name, "x", "", order="both", scale="relative", raw=raw, cut=0))
    return from_rows(rows, "votes")


def options() -> argparse.ArgumentParser:
    """The options that all that reads members has."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="folder with stsb, sick and sts12_16")
    parser.add_argument("--answers", type=Path, required=True, help="SQLite file that keeps what is computed")
    parser.add_argument("--static", type=Path, required=True, help="folder that static_model.py has written")
    return parser


def main() -> None:
    """Parse, measure, print."""
    parser = options()
    parser.add_argument("--set", action="append", choices=SETS, help="one set (default: all, in this order)")
    given = parser.parse_args()
    print(f"| set | pairs | {' | '.join(MEMBERS)} | mean of ranks |\n|---|---|---|---|---|---|", flush=True)
    with Answers(given.answers) as answers:
        for name in given.set or SETS:
            found = said(rows_of(name, given.folder), answers, given.static)
            ranks = np.stack([mid_ranks(column) for column in found.votes.T], axis=1)
            numbers = [spearman(column, found.gold) for column in (*ranks.T, ranks.mean(axis=1))]
            cells = " | ".join(f"{number:.4f}" for number in numbers)
            print(f"| {name} | {len(found.gold)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
