"""What makes some of the numbers mean less than they seem, in words."""

import math
from collections.abc import Iterator, Sequence

from stscurate.evaluation.gold import FEW, FEWEST, GoldSet
from stscurate.evaluation.results import Result, TaskNumber
from stscurate.evaluation.wanted import Wanted
from stscurate.wording import counted


def notes(
    sets: Sequence[GoldSet],
    results: Sequence[Result],
    parts: Sequence[Result],
    tasks: Sequence[TaskNumber],
    wanted: Wanted,
) -> Iterator[str]:
    """Each note once, with the sets that it is of; then what the numbers themselves give to note."""
    yield from _of_sets(sets, wanted)
    found: list[Result | TaskNumber] = [*results, *tasks]
    yield from _of_few(sets, results, parts)
    yield from _of_nothing(results)
    yield from _of_models(list({(one.model, one.kind, one.set): one for one in found if not one.variant}.values()))


def _of_sets(sets: Sequence[GoldSet], wanted: Wanted) -> Iterator[str]:
    of: dict[str, list[str]] = {}
    for gold in sets:
        for note in gold.notes:
            of.setdefault(note, []).append(gold.name)
        if gold.conflicting:
            yield f"{gold.name}: {gold.conflicting:,} pairs stand in it again with other gold: none is right on all."
        if wanted.dev and gold.binary and (shared := gold.shared_with(wanted.dev)):
            yield (
                f"{gold.name}: {shared:,} of its {counted(len(gold.pairs), 'pair')} stand in --dev {wanted.dev.name} "
                "too: its thresholds were chosen on some of what they are held to."
            )
    for note, names in of.items():
        yield f"{', '.join(names)}: {note}"
    if whole := [gold.name for gold in sets if wanted.subsets and not gold.subsets]:
        yield f"{', '.join(whole)}: no subsets are told there, so --subsets gives nothing of it."


def _of_few(sets: Sequence[GoldSet], results: Sequence[Result], parts: Sequence[Result]) -> Iterator[str]:
    """Where pairs are too few for an interval to tell much, or for any number."""
    for gold in sets:
        if len(gold.pairs) < FEW:
            yield f"{gold.name}: of {counted(len(gold.pairs), 'pair')} an interval tells little."
        few = dict.fromkeys(part.part for part in parts if part.set == gold.name and part.full.rows < FEW)
        if few:
            yield f"{gold.name}: the parts {', '.join(few)} have fewer than {FEW} pairs: intervals tell little there."
    for one in results:
        if one.clean and not one.variant and one.clean.rows < min(FEW, one.full.rows):
            told = "an interval tells little" if one.clean.rows >= FEWEST else "no number is taken"
            yield f"{one.model} on {one.set}: of {counted(one.clean.rows, 'leak-clean pair')} {told}."


def _of_nothing(results: Sequence[Result]) -> Iterator[str]:
    """Where there is no correlation, since nothing varies."""
    for one in results:
        if one.spearman is not None and math.isnan(one.spearman):
            yield f"{one.model} on {one.set}: all similarities are the same, so there is no correlation with gold."
        elif one.spearman_clean is not None and math.isnan(one.spearman_clean):
            yield (
                f"{one.model} on {one.set}: of the leak-clean pairs all similarities or all gold are the same, so they "
                "have no correlation."
            )


def _of_models(own: Sequence[Result | TaskNumber]) -> Iterator[str]:
    """What isn't known of models, and what word vectors lack. own: without variants, of which the same holds."""
    unknown = dict.fromkeys(one.model for one in own if one.rows_clean is None)
    if unknown:
        yield (
            f"{', '.join(unknown)}: what was trained on isn't known, so there is no leak-clean number; --train FILE "
            "gives it where you have the training texts."
        )
    uncounted = dict.fromkeys(one.model for one in own if one.tokens_cut_share is None)
    if uncounted:
        yield f"{', '.join(uncounted)}: how much of the texts is cut off isn't known, since the server doesn't tell."
    for one in own:
        if one.words_unknown_share or one.texts_unknown:
            lost = f", and {counted(one.texts_unknown, 'text')} none with one" if one.texts_unknown else ""
            lost += ": they are like nothing, and stay out of alignment and uniformity" if lost else ""
            yield f"{one.model} on {one.set}: {one.words_unknown_share:.1%} of the words have no vector{lost}."
