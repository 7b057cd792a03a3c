"""The audit of a model on a corpus: the sets that are compared, the controls, and the folder with its figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stscurate.artifacts import Artifact
from stscurate.audit.size_bias.corpus import Corpus, controls, joined, pairs_within, word_counts
from stscurate.audit.size_bias.lengths import Binned, by_length, hubs
from stscurate.disk import write_json
from stscurate.manifest import Entry
from stscurate.methods.cosine_counts import (
    DRAWN,
    Counts,
    count_between,
    count_within,
    dkw_bound,
    draw_between,
)
from stscurate.methods.cosine_counts import Distribution as Counted
from stscurate.methods.cosines import Moments, Spread, unit_rows
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.embeddings_api import EmbeddingsApi
from stscurate.services.encoder import Encoder
from stscurate.services.encoders import TextEncoder, is_api, open_encoder

STAGE = "audit size-bias"
JOINED = 10  # documents
EXACT_UP_TO = 20_000  # texts: 200 million pairs, some seconds
_COARSE = 200  # steps of a histogram that is drawn
_QUERY, _PASSAGE = ("query",), ("passage", "document")
Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Settings:
    """What shapes an audit beside its texts. tasks: of an API, one, or one of queries and one of passages."""

    model: str
    sentences: str = "rules"
    controls: int = 400
    exact_up_to: int = EXACT_UP_TO
    max_tokens: int | None = None
    precision: Literal["fp32", "bf16"] = "fp32"
    tasks: tuple[str, ...] = ()
    late_chunking: bool = False
    tokenizer: str | None = None
    batch_size: int = 64
    seed: int = 0

    def encoder(self, answers: Answers | None, *, prompt: str | None = None, task: str | None = None) -> TextEncoder:
        """The model, with one of its prompts, or one task."""
        return open_encoder(
            self.model,
            answers=answers,
            batch_size=self.batch_size,
            max_tokens=self.max_tokens,
            precision=self.precision,
            prompt=prompt,
            task=task or (self.tasks[-1] if self.tasks else None),
            late_chunking=self.late_chunking,
            tokenizer=self.tokenizer,
        )


def audit_into(
    out: Path, corpus: Corpus, settings: Settings, *, replace: bool = False, progress: Progress = silent
) -> Entry:
    """Audit into the folder `out`: results.json, results.md, and size_bias.png and .svg. Embeddings survive a kill."""
    from stscurate.audit.size_bias.figure import draw
    from stscurate.audit.size_bias.report import as_markdown

    model = settings.encoder(None).model
    shaping = {name: value for name, value in vars(settings).items() if name not in ("model", "seed", "batch_size")}
    with Artifact.open(
        out,
        stage=STAGE,
        inputs={f"texts: {corpus.name}": corpus.fingerprint, f"model: {model.name}": model.fingerprint},
        settings=shaping,
        seed=settings.seed,
        replace=replace,
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        with Answers(artifact.work / "embeddings.sqlite", synced=is_api(settings.model)) as answers:
            results = audit(corpus, settings, answers=answers, progress=progress)
        folder = artifact.clear_result()
        write_json(folder / "results.json", results)
        (folder / "results.md").write_text(as_markdown(results))
        draw(results, folder)
        return artifact.commit({"results": {"rows": len(results["sets"])}}, corpus.tally)


def audit(
    corpus: Corpus, settings: Settings, *, answers: Answers | None = None, progress: Progress = silent
) -> dict[str, Any]:
    """Measure how length moves a model's cosines on a corpus; plain data, as results.json has it.

    The sets are those of the article that showed it (documents, their sentences, both against each other, ten
    documents joined). `shift` is how far a set's mean lies above that of the sentences, in the sentences' deviations.
    InputError for texts of which nothing can be told; ServiceError as `encode` raises it.
    """
    encoder = settings.encoder(answers)
    documents, sentences = _vectors(encoder, corpus, settings, progress)
    moments = {"documents": Moments.of(documents), "sentences": Moments.of(sentences)}
    rng = np.random.default_rng(settings.seed)
    base = moments["sentences"].within()
    texts = [*corpus.documents, *corpus.flat]
    if not corpus.split:  # each document is one sentence: the two sets are the same
        base, texts, sentences = moments["documents"].within(), corpus.documents, documents
    lengths = encoder.token_counts(texts)
    unit = "words" if lengths is None else "tokens"
    lengths = word_counts(texts) if lengths is None else lengths

    def row(name: str, spread: Spread, counts: Counts | None, own: Sequence[str]) -> dict[str, Any]:
        return {
            "set": name,
            "texts": len(own),
            **_words(own),
            "pairs": spread.pairs,
            "mean": spread.mean,
            "sd": spread.sd,
            "shift": (spread.mean - base.mean) / base.sd if base.sd > 0 else None,
            **_truncation(encoder, own),
            "histogram": None if counts is None else _coarse(counts),
        }

    exact = len(texts) <= settings.exact_up_to
    sets = [row("documents", moments["documents"].within(), _within(documents, exact, rng), corpus.documents)]
    if corpus.split:
        sets.append(row("sentences", base, _within(sentences, exact, rng), corpus.flat))
        between = count_between(documents, sentences) if exact else draw_between(documents, sentences, DRAWN, rng)
        sets.append(row("documents x sentences", moments["documents"].between(moments["sentences"]), between, texts))
    parts = joined(corpus.documents, JOINED)
    if len(parts) > 1:
        long = ["\n".join(part) for part in parts]
        for name, vectors in (
            (f"{JOINED} documents joined", encoder.encode(long, progress=progress)),
            (f"{JOINED} documents, mean of their vectors", _means(encoder, documents, parts, progress)),
        ):
            sets.append(row(name, Moments.of(vectors).within(), count_within(vectors), long))
        sets[-1] |= {"texts_cut": sets[0]["texts_cut"], "tokens_cut": sets[0]["tokens_cut"]}  # as its documents are
    sets += _asymmetric(encoder, corpus, settings, answers, row, progress)
    pool = documents if texts is corpus.documents else np.concatenate([documents, sentences])
    related = pairs_within(corpus.groups[: len(texts)])
    binned = Binned.of(pool, lengths, related)
    order = np.argsort(_bins(binned, lengths), kind="stable")
    return {
        "model": encoder.model.name,
        "fingerprint": encoder.model.fingerprint,
        "texts": corpus.name,
        "sentence_splitter": settings.sentences,
        "length_unit": unit,
        "reads": encoder.reads,
        "sets": sets,
        "controls": _controls(encoder, corpus, settings, progress),
        "by_length": by_length(binned, exact_up_to=settings.exact_up_to, seed=settings.seed),
        "hubs": hubs(binned, lengths[order], exact_up_to=settings.exact_up_to, seed=settings.seed),
        "histogram_bound": 0.0 if exact else dkw_bound(DRAWN),
    }


def _vectors(encoder: TextEncoder, corpus: Corpus, settings: Settings, progress: Progress) -> tuple[Matrix, Matrix]:
    documents = encoder.encode(corpus.documents, progress=progress)
    if settings.late_chunking and isinstance(encoder, EmbeddingsApi):
        return documents, np.concatenate(encoder.encode_chunks(corpus.sentences, progress=progress))
    return documents, encoder.encode(corpus.flat, progress=progress)


def _means(encoder: TextEncoder, documents: Matrix, parts: Sequence[Sequence[str]], progress: Progress) -> Matrix:
    """The mean vector of each ten documents at unit length; with late chunking these have seen each other."""
    if isinstance(encoder, EmbeddingsApi) and encoder.late_chunking:
        return unit_rows(np.stack([part.mean(axis=0) for part in encoder.encode_chunks(parts, progress=progress)]))
    used = documents[: len(parts) * JOINED]
    return unit_rows(used.reshape(len(parts), JOINED, -1).mean(axis=1))


def _asymmetric(
    encoder: TextEncoder,
    corpus: Corpus,
    settings: Settings,
    answers: Answers | None,
    row: Any,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Sentences as queries against documents as passages, where the model has prompts, or two tasks were named."""
    if isinstance(encoder, Encoder):
        query, passage = (
            next((name for name in names if name in encoder.prompts), None) for names in (_QUERY, _PASSAGE)
        )
        if query is None and passage is None:
            return []
        sides = [settings.encoder(answers, prompt=name) for name in (query, passage)]
    elif len(settings.tasks) == 2:
        sides = [settings.encoder(answers, task=task) for task in settings.tasks]
    else:
        return []
    one = sides[0].encode(corpus.flat, progress=progress)
    two = sides[1].encode(corpus.documents, progress=progress)
    counts = count_between(one, two) if len(one) + len(two) <= settings.exact_up_to else None
    spread = Moments.of(one).between(Moments.of(two))
    return [row("sentences as queries x documents as passages", spread, counts, [*corpus.documents, *corpus.flat])]


def _controls(encoder: TextEncoder, corpus: Corpus, settings: Settings, progress: Progress) -> list[dict[str, Any]]:
    if not settings.controls:
        return []
    found = []
    for kind, what, texts in controls(corpus, settings.controls, settings.seed):
        spread = Moments.of(encoder.encode(texts, progress=progress)).within()
        cut = _truncation(encoder, texts)
        row = {"control": kind, "what": what, "texts": len(texts), "words": float(word_counts(texts).mean())}
        found.append({**row, "mean": spread.mean, "sd": spread.sd, **cut})
    return found


def _truncation(encoder: TextEncoder, texts: Sequence[str]) -> dict[str, float | None]:
    """Shares of the texts and of their tokens that are cut off; None where nobody knows."""
    cut, counts = encoder.cut(texts), encoder.token_counts(texts)
    if cut is None or counts is None:
        return {"texts_cut": None, "tokens_cut": None}
    return {"texts_cut": float(np.mean(cut > 0)), "tokens_cut": float(cut.sum() / max(int(counts.sum()), 1))}


def _words(texts: Sequence[str]) -> dict[str, float]:
    counts = word_counts(texts)
    return {"words_mean": float(counts.mean()), "words_sd": float(counts.std())}


def _within(vectors: Matrix, exact: bool, rng: np.random.Generator) -> Counts:
    return count_within(vectors) if exact else draw_between(vectors, None, DRAWN, rng)


def _coarse(counts: Counts) -> list[int]:
    return [int(count) for count in Counted(counts).coarse(_COARSE)]


def _bins(binned: Binned, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted([greatest for _, greatest in binned.ends], lengths)
