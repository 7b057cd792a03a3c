"""A corpus and a model -> a calibration of the model's cosines, and what it leaves of the bias by length."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from stscurate.methods.calibration import FEWEST, METHODS, Method, checked
from stscurate.methods.calibration.residual import Bands, Residual, residual, thirds
from stscurate.methods.calibration.saved import Calibration, digests_of, lengths_of
from stscurate.methods.correlation import bootstrap_interval, spearman
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.answers import Answers
from stscurate.services.encoders import TextEncoder, open_encoder
from stscurate.tables import Source
from stscurate.wording import counted

REPORT = "report.json"
_HELD_OUT = 3_000  # texts whose pairs are all looked at: 4.5 million

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """n texts by a model: (n, d) unit vectors, and lengths in tokens that the model sees, (n,)."""

    vectors: Vectors
    lengths: Ints

    def __getitem__(self, rows: Ints) -> "Corpus":
        """Some of the texts."""
        return Corpus(self.vectors[rows], self.lengths[rows])

    def fitted(self, name: str) -> Method:
        """A method, fitted to all of them."""
        return METHODS[name].fit(*checked(self.vectors, self.lengths))


def calibrate(
    out: Path,
    texts: Source,
    *,
    model: str = "all-MiniLM-L6-v2",
    tokenizer: str | None = None,
    method: str = "length-centering",
    all_methods: bool = False,
    gold: Source | None = None,
    seed: int = 0,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Fit `method` to the texts into the folder `out`, and measure it where it wasn't fitted.

    A half drawn by `seed` is fitted to, the other (3,000 of it at the most, all pairs) is measured, for the method and
    the bare cosine or for all methods; what is kept is then fitted to all texts. gold: pairs with scores or labels,
    whose rank correlation is told too. model, tokenizer: as open_encoder takes them. Embeddings so far survive a kill.
    InputError for fewer than 400 texts, for texts of one length, and for an unknown method.
    """
    if method not in METHODS:
        raise InputError(f"There is no calibration {method}: give one of {', '.join(METHODS)}.")
    if texts.table.num_rows < FEWEST:
        raise InputError(
            f"{texts.name} has {counted(texts.table.num_rows, 'different text')}, and a calibration needs {FEWEST}: "
            "give more."
        )
    pairs, scores = _gold(gold)
    with Artifact.open(
        out,
        stage="calibrate",
        inputs={**texts.inputs, **(gold.inputs if gold else {}), **_of_model(model, tokenizer)},
        settings={"method": method, "all_methods": all_methods, "precision": "float32"},
        seed=seed,
        replace=replace,
    ) as artifact:
        if artifact.entry:
            return artifact.entry
        found = texts.table["text"].to_pylist()
        with Answers(artifact.work / "embeddings.sqlite") as answers:
            encoder = open_encoder(model, answers=answers, tokenizer=tokenizer)
            corpus = _read(encoder, found, progress)
            bands = thirds(corpus.lengths)
            sides = (
                _read(encoder, [text for side in zip(*pairs, strict=True) for text in side], progress)
                if pairs
                else None
            )
        names = list(METHODS) if all_methods else list(dict.fromkeys(["cosine", method]))
        rows = measured(corpus, bands, names, seed=seed, sides=sides, scores=scores, progress=progress)
        folder = artifact.clear_result()
        known = Calibration(
            corpus.fitted(method),
            encoder.model.name,
            encoder.model.fingerprint,
            encoder.reads,
            texts.name,
            np.sort(digests_of(found)),
        )
        known.save(folder)
        about = {"bands": {"short": f"up to {bands.short} tokens", "long": f"from {bands.long} tokens"}}
        write_json(folder / REPORT, {**about, "methods": rows})
        tally = Tally()
        tally.add(texts.tally)
        for name, rule in about["bands"].items():
            tally.count(name, rule, int((bands.of(corpus.lengths) == (0 if name == "short" else 2)).sum()))
        return artifact.commit({"texts": {"rows": len(found)}}, tally)


def measured(
    corpus: Corpus,
    bands: Bands,
    names: Sequence[str],
    *,
    seed: int,
    sides: Corpus | None = None,
    scores: Floats | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """A row for each method, fitted to one half of the corpus drawn by `seed` and measured on the other.

    sides: of m pairs with `scores`, (m,), all first texts and then all second ones.
    """
    order = np.random.default_rng(seed).permutation(len(corpus.lengths))
    half = len(order) // 2
    fitted_to, held_out = corpus[order[:half]], corpus[order[half : half + _HELD_OUT]]
    rows = []
    for done, name in enumerate(names):
        progress("calibrations", done, len(names))
        method = fitted_to.fitted(name)
        row = {"method": name, **_row(residual(method, held_out.vectors, held_out.lengths, bands))}
        if sides is not None and scores is not None and len(scores):
            row |= _with_gold(method, sides, scores, seed)
        rows.append(row)
    progress("calibrations", len(names), len(names))
    return rows


def _row(found: Residual) -> dict[str, Any]:
    rates = {str(nominal): rates for nominal, rates in found.rates.items()}
    thresholds = {str(nominal): threshold for nominal, threshold in found.thresholds.items()}
    return {"shift": found.shift, "rates": rates, "thresholds": thresholds, "pairs": found.pairs}


def _with_gold(method: Method, sides: Corpus, scores: Floats, seed: int) -> dict[str, Any]:
    m = len(scores)
    left, right = sides[np.arange(m)], sides[np.arange(m, 2 * m)]
    similarity = method.similarity(left.vectors, left.lengths, right.vectors, right.lengths)
    low, high = bootstrap_interval(similarity, scores, seed=seed)
    return {"spearman": spearman(similarity, scores), "low": low, "high": high}


def _read(encoder: TextEncoder, texts: list[str], progress: Progress) -> Corpus:
    return Corpus(encoder.encode(texts, progress=progress), lengths_of(encoder, texts))


def _gold(source: Source | None) -> tuple[list[tuple[str, str]], Floats]:
    """The pairs that have a score or a label, and these."""
    if source is None:
        return [], np.zeros(0)
    gold = pc.coalesce(source.table["score"], source.table["label"].cast(pa.float64()))
    table = source.table.append_column("gold", gold).filter(pc.is_valid(gold))
    if len(pc.unique(table["gold"])) < 2:
        raise InputError(f"{source.name} has no pairs with gold that varies: name another file with --pairs.")
    return list(zip(table["text1"].to_pylist(), table["text2"].to_pylist(), strict=True)), table["gold"].to_numpy()


def _of_model(name: str, tokenizer: str | None) -> dict[str, str]:
    model = open_encoder(name, tokenizer=tokenizer).model
    return {model.name: model.fingerprint}
