"""Gold of a file or run, found again in the pairs of a run."""

import pyarrow as pa

from stscurate.errors import InputError
from stscurate.records import Tally


def gold_scores(pairs: pa.Table, gold: pa.Table, tally: Tally) -> dict[str, float]:
    """pair_id -> gold score of 0..1, for those pairs of a run that also stand in `gold` (both of schema PAIRS).

    A pair is found by its id, or by its two texts in either order. A gold row's score counts, else its label as 0
    or 1; where several rows speak of one pair, their mean. Gold rows without a number, and those of pairs that the
    run doesn't have, are counted under "gold".

    InputError where no row of the gold has both a number and a pair.
    """
    by_id = set(pairs["pair_id"].to_pylist())
    by_texts: dict[tuple[str, str], str] = {}
    for row in pairs.select(["pair_id", "text1", "text2"]).to_pylist():
        for texts in ((row["text1"], row["text2"]), (row["text2"], row["text1"])):
            by_texts.setdefault(texts, row["pair_id"])
    found: dict[str, list[float]] = {}
    for row in gold.select(["pair_id", "text1", "text2", "score", "label"]).to_pylist():
        number = row["label"] if row["score"] is None else row["score"]
        own = row["pair_id"] if row["pair_id"] in by_id else by_texts.get((row["text1"], row["text2"]))
        if number is None:
            tally.count("gold", "without_a_number")
        elif own is None:
            tally.count("gold", "of_no_pair")
        else:
            tally.count("gold", "found")
            found.setdefault(own, []).append(float(number))
    if not found:
        raise InputError(
            f"None of the {gold.num_rows:,} rows of gold has a score for a pair of this run: give gold with the "
            "pair_id or the two texts of the run's pairs."
        )
    return {pair_id: sum(numbers) / len(numbers) for pair_id, numbers in found.items()}
