"""Positive pairs and a model -> triplets with hard negatives, whose similarity is calibrated."""

from typing import Literal

import numpy as np
import pyarrow as pa

from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.calibration import FEWEST, METHODS, Texts, checked
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.methods.known_relevance import Relevance
from stscurate.mining.miner import Likely, Miner
from stscurate.mining.positives import positives_of
from stscurate.mining.rules import Rules
from stscurate.progress import Progress, silent
from stscurate.records import TRIPLETS, Tally
from stscurate.services.answers import Answers
from stscurate.services.encoders import open_encoder
from stscurate.services.reranker import Reranker
from stscurate.store import Run, Stage
from stscurate.tables import Source

_SHARD = 2_000  # anchors


def mine(
    run: Run,
    pairs: Source,
    *,
    corpus: Source | None = None,
    model: str = "all-MiniLM-L6-v2",
    tokenizer: str | None = None,
    rules: Rules | None = None,
    calibration: Calibration | None = None,
    similarity: Literal["auto", "cosine"] = "auto",
    accept_corpus: bool = False,
    reranker: str | None = None,
    relevance: Relevance | None = None,
    most_relevant: float = 0.5,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """A triplet for each positive pair and each of its anchor's negatives; the stage `triplets`.

    Similarity is that of `calibration`; else by s-norm, fitted to the texts themselves where they are 400 or more;
    else, or with similarity="cosine", the cosine: the counts say which. reranker: a cross-encoder that drops a
    negative to which it gives more than to the positive less the margin. relevance: a curve that drops a negative which
    it gives the probability `most_relevant` or more, of the model's similarity, or of the reranker's number in place of
    the margin. Dropped: pairs that aren't positive, of other splits, or without any negative left. Embeddings and
    finished shards survive a kill.
    """
    rules = rules or Rules()
    if relevance and not 0 < most_relevant <= 1:
        raise InputError(f"--most-relevant {most_relevant:g}: give a probability above 0, at most 1.")
    found = positives_of(
        pairs, corpus, both_sides=rules.both_sides, positive_score=rules.positive_score, near=rules.near
    )
    with Answers(run.folder / "answers.sqlite", synced=False) as answers:
        encoder = open_encoder(model, answers=answers, tokenizer=tokenizer)
        judge = Reranker(reranker, answers=answers) if reranker else None
        inputs = pairs.inputs | (corpus.inputs if corpus else {}) | {encoder.model.name: encoder.model.fingerprint}
        inputs |= {judge.model.name: judge.model.fingerprint} if judge else {}
        inputs |= {"calibration": calibration.fingerprint} if calibration else {}
        settings = {"by": "mining", "model": encoder.model.name, "similarity": similarity, **rules.settings}
        settings |= {"reranker": judge.model.name} if judge else {}
        settings |= {"calibration": calibration.settings} if calibration else {}
        settings |= {"relevance": relevance.settings, "most_relevant": most_relevant} if relevance else {}
        inputs |= {"relevance": relevance.fingerprint} if relevance else {}
        stage = run.stage("triplets", tables=["triplets"], inputs=inputs, settings=settings, seed=seed)
        if stage.entry:
            return stage.entry
        if calibration:  # before the vectors, which take long
            calibration.hold_to(encoder.model, encoder.reads, found.texts, accept_corpus=accept_corpus)
        if relevance:
            of = judge.model if judge else None
            relevance.hold_to(encoder.model, encoder.reads, found.texts, reranker=of, accept_corpus=accept_corpus)
        lengths = lengths_of(encoder, found.texts)
        vectors = encoder.encode(found.texts, progress=progress)
        if calibration:
            method = calibration.method
        else:
            name = "s-norm" if similarity == "auto" and len(found.texts) >= FEWEST else "cosine"
            method = METHODS[name].fit(*checked(vectors, lengths))
        likely = Likely(relevance, most_relevant, vectors, lengths) if relevance else None
        miner = Miner(found, rules, method, method.texts(vectors, lengths), judge, seed, likely)
        told = miner.tally(lengths, Texts(vectors, np.zeros((len(vectors), 0))))
        _write(stage, miner, told, progress)
        return stage.commit()


def _write(stage: Stage, miner: Miner, told: Tally, progress: Progress) -> None:
    anchors = miner.anchors
    for shard, start in enumerate(range(0, len(anchors), _SHARD)):
        progress("mined anchors", start, len(anchors))
        if stage.has(shard):
            continue
        tally = Tally()
        if shard == 0:
            tally.add(told)
        rows = list(miner.triplets(anchors[start : start + _SHARD], tally))
        columns = {name: [row.get(name) for row in rows] for name in TRIPLETS.names}
        stage.write(shard, {"triplets": pa.table(columns, schema=TRIPLETS)}, tally)
    progress("mined anchors", len(anchors), len(anchors))
