"""Semantic textual similarity: the rank correlation of a model's cosines with gold."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.results import Result
from stscurate.methods.correlation import average_precision, bootstrap_interval, spearman
from stscurate.methods.leaks import TRAINING_TEXTS, leaked_rows, text_digest
from stscurate.methods.similarity import pair_cosines
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder


def evaluate(
    model_name: str,
    sets: Sequence[GoldSet],
    *,
    answers: Answers | None = None,
    resamples: int = 1000,
    seed: int = 0,
    train_texts: Iterable[str] | None = None,
    progress: Progress = silent,
) -> list[Result]:
    """Spearman of the model's cosines with each set's gold, and its 95 % bootstrap interval.

    Where it is known what the model was trained on (`train_texts`, and the digests in a model folder of ours), the
    correlation is given again over the pairs of which neither text was: the leak-clean number.
    """
    encoder = Encoder(model_name, answers=answers)
    known = _trained_on(encoder.model.path, train_texts)
    return [_one(encoder, gold, known, resamples=resamples, seed=seed, progress=progress) for gold in sets]


def _one(
    encoder: Encoder, gold: GoldSet, known: set[str] | None, *, resamples: int, seed: int, progress: Progress
) -> Result:
    texts = list(dict.fromkeys(text for pair in gold.pairs for text in pair))
    place = {text: row for row, text in enumerate(texts)}
    vectors = encoder.encode(texts, progress=progress)
    left, right = ([place[pair[side]] for pair in gold.pairs] for side in (0, 1))
    cosines = pair_cosines(vectors[left], vectors[right])
    low, high = bootstrap_interval(cosines, gold.gold, resamples=resamples, seed=seed)
    clean = None if known is None else ~leaked_rows(gold.pairs, known)
    return Result(
        model=encoder.model.name,
        set=gold.name,
        rows=len(gold.pairs),
        dropped=gold.dropped,
        spearman=spearman(cosines, gold.gold),
        low=low,
        high=high,
        average_precision=average_precision(gold.gold, cosines) if gold.binary else None,
        tokens_cut_share=float(encoder.cut(texts).sum() / encoder.token_counts(texts).sum()),
        rows_clean=None if clean is None else int(clean.sum()),
        spearman_clean=None if clean is None or clean.sum() < 3 else spearman(cosines[clean], gold.gold[clean]),
    )


def _trained_on(folder: Path, train_texts: Iterable[str] | None) -> set[str] | None:
    """Digests of the texts that the model is known to have seen; None where nothing is known."""
    digests = None if train_texts is None else {text_digest(text) for text in train_texts}
    kept = folder / TRAINING_TEXTS
    return (digests or set()) | set(kept.read_text().split()) if kept.is_file() else digests
