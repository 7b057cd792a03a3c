"""The stage `pairs`: duplicates as positive pairs, others as negative ones, split by component."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.calibration.saved import Calibration
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.negatives import Mix, negative_pairs
from stscurate.pairing.neighbours import Encoded, Similarity
from stscurate.pairing.positives import find_positives
from stscurate.pairing.rows import fill_licences, pair_row
from stscurate.pairing.splits import SPLIT_BY
from stscurate.pairing.tokens import count_tokens, token_counter
from stscurate.progress import Progress, silent
from stscurate.records import SPLITS, Tally, from_rows
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder
from stscurate.store import Run

_SHARD = 10_000  # pairs


def make_pairs(
    run: Run,
    *,
    negatives: float = 1.0,
    lexical_share: float = 0.5,
    encoder_share: float = 0.0,
    encoder: str = "all-MiniLM-L6-v2",
    ceiling: float | None = None,
    similarity: Similarity = "auto",
    calibration: Calibration | None = None,
    accept_corpus: bool = False,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    split_by: str = "component",
    near_duplicates: float = 0.8,
    all_pairs: bool = False,
    min_chars: int = 20,
    tokenizer: str | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """Make the table `pairs` of the run's `issues` and `links`, with the licences of its `repositories` if it has them.

    negatives: negative pairs per positive one, in each split and repository; lexical_share of them, 0 to 1, are
    neighbours by BM25, and encoder_share by the model `encoder`, which is loaded only where that is above 0, and reads
    as many tokens of a text as it was made for; with it, no negative reaches the `ceiling`, a cosine, .8 by default.
    similarity: which neighbours are nearest, see `Encoded`. calibration: the similarity of both, and the ceiling's
    scale; a ceiling has to be given where that isn't one of cosines. shares: of train,
    validation and test among the positives. Whole components are dealt, by chance, by their latest issue's time (the
    newest test) or by repository (`split_by`). A component holds what links, equal texts and near duplicates join:
    texts whose sets of word sequences have a Jaccard similarity of `near_duplicates` or more; so no such two stand in
    two splits or make a negative pair. all_pairs: every two issues that links join are a positive pair, not only
    duplicate and original. min_chars: a text with fewer is left out. tokenizer: counts tokens, see `token_counter`.
    text1 is the issue that comes first by repository and number, whatever the label. InputError where an option is out
    of range or there are no duplicates to pair.
    """
    mix = Mix(negatives, lexical_share, encoder_share, _ceiling(ceiling, calibration), calibration)
    mix.check()
    _check(shares, split_by, min_chars)
    counter = token_counter(tokenizer)
    licences = ["repositories"] if run.has("repositories") else []
    inputs = {name: run.fingerprint(name) for name in ("issues", "links", *licences)} | counter.inputs
    dealing: dict[str, Any] = {
        "shares": list(shares),
        "split_by": split_by,
        "near_duplicates": near_duplicates,
        "all_pairs": all_pairs,
        "min_chars": min_chars,
    }
    settings = {**mix.settings, **dealing, "tokenizer": counter.name}
    with _encoder(run, encoder if encoder_share else None) as model:
        if model:
            inputs[model.model.name] = model.model.fingerprint
            settings |= {"encoder": model.model.name, "precision": model.precision, "similarity": similarity}
            if calibration:
                inputs["calibration"] = calibration.fingerprint
                settings["calibration"] = calibration.settings
        stage = run.stage("pairs", tables=["pairs"], inputs=inputs, settings=settings, seed=seed)
        if stage.entry:
            return stage.entry
        tally = Tally()
        corpus = Corpus.of(run.table("issues"))
        found = find_positives(corpus, run.table("links"), tally, seed=seed, **dealing)
        rows = found.rows(corpus)
        pools = found.pools(corpus)
        encoded = (
            Encoded(
                corpus,
                model,
                calibration=calibration,
                similarity=similarity,
                accept_corpus=accept_corpus,
                progress=progress,
            )
            if model
            else None
        )
        made = negative_pairs(corpus, rows, pools, found.component, tally, mix=mix, encoded=encoded, seed=seed)
        negative = []
        for drawn in made:
            negative += [_negative_row(corpus, *pair) for pair in drawn]
            progress("pairs", len(rows) + len(negative), None)
        if model and model.reads:
            tally.count("encoder", "tokens_that_it_reads_of_a_text", model.reads)
    rows += negative
    rows.sort(key=lambda row: (row["repository"], corpus.index[row["id1"].lower()], corpus.index[row["id2"].lower()]))
    _prove_disjoint(rows, corpus, found.component)
    fill_licences(rows, run.table("repositories") if licences else None)
    count_tokens(rows, counter, tally)
    _count(rows, tally)
    for shard, start in enumerate(range(0, len(rows), _SHARD)):
        if not stage.has(shard):
            table = from_rows(rows[start : start + _SHARD], "pairs")
            stage.write(shard, {"pairs": table}, Tally() if shard else tally)
    return stage.commit()


def _check(shares: Sequence[float], split_by: str, min_chars: int) -> None:
    if split_by not in SPLIT_BY:
        raise InputError(f"split_by is {split_by!r}: give one of {', '.join(SPLIT_BY)}.")
    if len(shares) != len(SPLITS) or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise InputError(f"shares are {list(shares)}: give three of {', '.join(SPLITS)} that add up to 1.")
    if min_chars < 1:
        raise InputError(f"min_chars is {min_chars}: an empty text can't be paired, so give 1 or more.")


def _ceiling(given: float | None, calibration: Calibration | None) -> float:
    """As given, or .8 where it is a cosine. InputError where nobody can know what is too near by that calibration."""
    if given is not None:
        return given
    if calibration and not calibration.method.maps:
        raise InputError(
            f"By {calibration.method.name} similarities aren't cosines, so no ceiling is known: give --ceiling (`audit "
            "calibrate` tells which similarity 0.1 % of its pairs reach)."
        )
    return 0.8


@contextmanager
def _encoder(run: Run, name: str | None) -> Iterator[Encoder | None]:
    """The model in the precision that this machine is quickest in, with the run's kept vectors; None without a name."""
    if name is None:
        yield None
        return
    from stscurate.services.precision import default_precision  # loads torch

    with Answers(run.folder / "answers.sqlite") as answers:
        yield Encoder(name, answers=answers, precision=default_precision())


def _negative_row(corpus: Corpus, low: int, high: int, kind: str, split: str) -> dict[str, Any]:
    return pair_row(
        corpus,
        low,
        high,
        label=0,
        split=split,
        origin=f"negative:{kind}",
        component=None,  # the two stand in different ones
        repository=corpus.repositories[low],
        tier=None,
    )


def _prove_disjoint(rows: list[dict[str, Any]], corpus: Corpus, component: list[int]) -> None:
    """Raise if an issue, a text or a component stands in two splits: a fault of this module, never of the data."""
    home: dict[str, str] = {}
    for row in rows:
        for name in (row["id1"], row["id2"]):
            at = corpus.index[name.lower()]
            for key in (f"issue {name}", f"text {corpus.normal[at]}", f"component {component[at]}"):
                if home.setdefault(key, row["split"]) != row["split"]:
                    raise AssertionError(f"{key[:80]} stands in {home[key]} and in {row['split']}")


def _count(rows: list[dict[str, Any]], tally: Tally) -> None:
    for row in rows:
        tally.count("split", f"{row['split']} label {row['label']}")
        tally.count("origin", row["origin"])
        if row["tier"]:
            tally.count("tier", row["tier"])
        for flag in row["flags"]:
            tally.count("flags", flag)
