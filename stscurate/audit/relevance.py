"""From judged pairs to what a similarity means: its probability of relevance, by the lengths of both texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stscurate.artifacts import Artifact
from stscurate.disk import write_json
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.calibration.saved import Calibration
from stscurate.methods.known_relevance import CALIBRATION, CURVE
from stscurate.methods.pair_similarity import pair_lengths, pair_similarity
from stscurate.methods.relevance import RelevanceCurve, cross_validated, fit_curve, resampled_curves
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.answers import Answers
from stscurate.services.encoders import TextEncoder, open_encoder
from stscurate.services.reranker import Reranker
from stscurate.tables import Source
from stscurate.wording import counted

BANDS = ("short", "middle", "long")
_FEWEST, _FEWEST_OF_A_CLASS = 100, 10
_IN_A_BAND = 20  # pairs from which a band says anything
_RESAMPLES = 200

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """n pairs: texts, similarity, lengths in tokens, and how relevant they were judged to be, 0 to 1."""

    pairs: list[tuple[str, str]]
    similarity: Floats
    length1: Ints
    length2: Ints
    relevance: Floats


def audit_relevance(
    out: Path,
    source: Source,
    *,
    scores: pa.Table | None = None,
    score_inputs: dict[str, str] | None = None,
    model: str = "all-MiniLM-L6-v2",
    tokenizer: str | None = None,
    calibration: Path | None = None,
    reranker: str | None = None,
    accept_corpus: bool = False,
    seed: int = 0,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Fit the probability of relevance given similarity and both lengths, into the folder `out`.

    A pair's judgement is its score or label, else what annotators gave it (`scores`, schema SCORES). The similarity is
    the model's cosine, or as the calibration in that folder corrects it (a copy goes along), or a reranker's number;
    model and tokenizer are as open_encoder takes them. The pairs should be like those that the curve will be asked
    about: neighbours as a search finds them, with random ones among them. InputError for fewer than 100 judged pairs,
    fewer than 10 worth of a class, or a similarity that falls with relevance.
    """
    if reranker and calibration:
        raise InputError("--reranker's numbers aren't cosines: leave --calibration away.")
    table, relevance = _judgements(source, scores)
    known = Calibration.load(calibration) if calibration else None
    judge = Reranker(reranker) if reranker else None
    encoder = open_encoder(model, tokenizer=tokenizer)
    models = {judge.model.name: judge.model.fingerprint} if judge else {}
    inputs = {**source.inputs, **(score_inputs or {}), encoder.model.name: encoder.model.fingerprint, **models}
    inputs |= {"calibration": known.fingerprint} if known else {}
    settings = {"calibration": known.method.name if known else None, "reranker": judge.model.name if judge else None}
    with Artifact.open(
        out, stage="relevance", inputs=inputs, settings=settings, seed=seed, replace=replace
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        pairs = list(zip(table["text1"].to_pylist(), table["text2"].to_pylist(), strict=True))
        with Answers(artifact.work / "answers.sqlite") as answers:
            encoder = open_encoder(model, answers=answers, tokenizer=tokenizer)
            judged = _read(encoder, pairs, relevance, known, accept_corpus, progress)
            if reranker:
                numbers, _ = Reranker(reranker, answers=answers).score(pairs, progress=progress)
                judged = Judged(pairs, numbers, judged.length1, judged.length2, relevance)
        report = fitted(judged, seed=seed)
        about = {"model": encoder.model.name, "model_fingerprint": encoder.model.fingerprint, **settings}
        about |= {"reranker_fingerprint": judge.model.fingerprint if judge else None}
        about |= {"calibration_fingerprint": known.fingerprint if known else None}
        folder = artifact.clear_result()
        write_json(folder / CURVE, {"similarity_of": about, **report})
        if known:
            (folder / CALIBRATION).mkdir()
            known.save(folder / CALIBRATION)
        tally = Tally(rows_in=source.table.num_rows)
        tally.drop("not_judged", source.table.num_rows - len(pairs))
        return artifact.commit({"judged": {"rows": len(pairs)}}, tally)


def fitted(judged: Judged, *, seed: int = 0, resamples: int = _RESAMPLES) -> dict[str, Any]:
    """The curve, its fit on held-out queries, and for each band of lengths which similarity means what."""
    numbers = (judged.similarity, judged.length1, judged.length2, judged.relevance)
    groups = [first for first, _ in judged.pairs]
    if np.ptp(judged.relevance) == 0:
        raise InputError(
            f"All pairs were judged {judged.relevance[0]:g}: there is nothing to tell apart. Judge others."
        )
    curve = fit_curve(*numbers)
    if curve.weights[1] <= 0:
        raise InputError("The judged pairs are the less relevant the more similar they are: look at their judgements.")
    curves = resampled_curves(*numbers, groups, resamples=resamples, seed=seed)
    plain = fit_curve(*numbers, with_lengths=False)
    even = plain.similarity_at(0.5, 1, 1)
    bias, slope, first, second = curve.weights
    return {
        "curve": {"intercept": bias, "similarity": slope, "log2_length1": first, "log2_length2": second},
        "intervals": {
            name: _interval([each.weights[place] for each in curves])
            for place, name in enumerate(("intercept", "similarity", "log2_length1", "log2_length2"))
        },
        "pairs": len(judged.pairs),
        "queries": len(set(groups)),
        "relevant_share": float(judged.relevance.mean()),
        "held_out": cross_validated(*numbers, groups, seed=seed),
        "one_threshold": even,
        "bands": _bands(judged, curve, curves, even),
    }


def _bands(
    judged: Judged, curve: RelevanceCurve, curves: Sequence[RelevanceCurve], even: float
) -> list[dict[str, Any]]:
    """Of each band of first and second lengths (thirds of each): what the curve says there, and what was judged."""
    bands = [np.searchsorted(np.quantile(side, [1 / 3, 2 / 3]), side) for side in (judged.length1, judged.length2)]
    found = []
    for one, two in product(range(3), repeat=2):
        rows = np.flatnonzero((bands[0] == one) & (bands[1] == two))
        if not rows.size:
            continue
        middle = (float(np.median(judged.length1[rows])), float(np.median(judged.length2[rows])))
        above = rows[judged.similarity[rows] >= even]
        row: dict[str, Any] = {"first": BANDS[one], "second": BANDS[two], "tokens": middle, "pairs": len(rows)}
        row |= {"relevant_share": float(judged.relevance[rows].mean()), "above": len(above)}
        enough = len(rows) >= _IN_A_BAND
        for probability in (0.5, 0.9):
            name = f"similarity_at_{probability}"
            row[name] = curve.similarity_at(probability, *middle) if enough else None
            row[f"{name}_interval"] = (
                _interval([each.similarity_at(probability, *middle) for each in curves]) if enough else None
            )
        row["probability_at_one_threshold"] = (
            float(curve.probability(np.array([even]), *(np.array([int(m)]) for m in middle))[0]) if enough else None
        )
        row["relevant_above_it"] = float(judged.relevance[above].mean()) if len(above) >= _IN_A_BAND else None
        found.append(row)
    return found


def _interval(values: Sequence[float]) -> list[float] | None:
    """95 %, by percentiles; None where a sample has no such value."""
    found = np.array(values)
    return np.quantile(found, [0.025, 0.975]).tolist() if np.isfinite(found).all() else None


def _judgements(source: Source, scores: pa.Table | None) -> tuple[pa.Table, Floats]:
    """The pairs that were judged, and how."""
    table = source.table
    gold = pc.coalesce(table["score"], table["label"].cast(pa.float64()))
    if scores is not None:
        place = pc.index_in(table["pair_id"], value_set=scores["pair_id"].combine_chunks())
        gold = pc.coalesce(gold, scores["score"].take(place))
    judged = table.filter(pc.is_valid(gold))
    relevance = np.asarray(gold.drop_null().to_numpy(), dtype=np.float64)
    if len(relevance) < _FEWEST:
        raise InputError(
            f"{counted(len(relevance), 'pair')} of {source.name} {'is' if len(relevance) == 1 else 'are'} judged, and "
            f"{_FEWEST} are needed: give pairs with a score or "
            "label, or have them judged by `stscurate annotate --task relevance`."
        )
    least = min(relevance.sum(), len(relevance) - relevance.sum())
    if least < _FEWEST_OF_A_CLASS:
        kind = "relevant" if relevance.sum() == least else "irrelevant"
        raise InputError(
            f"Only {least:g} of {len(relevance)} judged pairs are {kind}, and {_FEWEST_OF_A_CLASS} are needed: "
            "judge more pairs of that kind."
        )
    return judged, relevance


def _read(
    encoder: TextEncoder,
    pairs: list[tuple[str, str]],
    relevance: Floats,
    calibration: Calibration | None,
    accept_corpus: bool,
    progress: Progress,
) -> Judged:
    length1, length2 = pair_lengths(encoder, pairs).T
    similarity = pair_similarity(encoder, pairs, calibration, accept_corpus=accept_corpus, progress=progress)
    return Judged(pairs, similarity, length1, length2, relevance)
