"""ArcCSE with other shares of masked words, nested and independent spans, and other margins, told apart on a dev set.

    stscurate run ablate_masks --out runs/masks --set texts=texts.txt --set dev=dev.csv

`ratios` are shares of the positive and the negative; `margins` of ArcCon, in degrees. Independent spans are drawn each
for itself, so that the negative needn't lack what the positive lacks. `dev` chooses (`columns` are its), no test set.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from stscurate.evaluation import GoldSet, Wanted, evaluate_into
from stscurate.manifest import Entry
from stscurate.methods.words import word_spans
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.resources import definition
from stscurate.store import Run
from stscurate.tables import texts_source
from stscurate.training import Schedule, train_arccse, triplet_rows, validation_set
from stscurate.triplets import mask_text, nested_masks


def recipe(
    run: Run,
    *,
    texts: Path = definition("texts/sample.txt"),  # noqa: B008 - the sample's place doesn't change
    dev: Path = definition("texts/sample-gold.csv"),  # noqa: B008
    columns: str = "",
    scale: str = "0-5",
    ratios: tuple[str, ...] = ("0.2,0.4", "0.1,0.2", "0.3,0.6"),
    margins: tuple[str, ...] = ("0", "5", "10", "15"),
    model: str = "all-MiniLM-L6-v2",
    learning_rate: float = 1e-5,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Entry]:
    """A training for each combination, then the table."""
    source, models, schedule = texts_source(texts), [model], Schedule(learning_rate=learning_rate, seed=seed)
    more = {"model": model, "schedule": schedule, "replace": run.replace, "progress": progress}
    whole = [(text, spans) for text in source.table["text"].to_pylist() if len(spans := word_spans(text)) >= 5]
    tally = Tally(source.table.num_rows, Counter(too_short=source.table.num_rows - len(whole)))
    for ratio, kind in ((ratio, kind) for ratio in ratios for kind in ("nested", "independent")):
        shares, rng = [float(part) for part in ratio.split(",")], np.random.default_rng(seed)
        columns_of: dict[str, list[str]] = {"anchor": [text for text, _ in whole], "positive": [], "negative": []}
        for text, offsets in whole:
            alone = [nested_masks(len(offsets), [share], rng)[0] for share in shares]
            spans = nested_masks(len(offsets), shares, rng) if kind == "nested" else alone
            for name, span in zip(("positive", "negative"), spans, strict=True):
                columns_of[name].append(mask_text(text, offsets, span, mode="delete"))
        rows = triplet_rows(pa.table(columns_of), inputs={**source.inputs, f"{kind} {ratio}": str(seed)}, tally=tally)
        for margin in margins:
            models.append(str(run.folder / f"{kind}-{ratio.replace(',', '-')}-margin-{margin}"))
            yield train_arccse(rows, Path(models[-1]), margin_degrees=float(margin), **more)  # type: ignore[arg-type]
    on = validation_set(dev, columns=columns or None, scale=scale)
    sets = [GoldSet(on.name, on.pairs, on.gold, {})]
    yield evaluate_into(run.folder / "dev", models, sets, Wanted(seed=seed), replace=run.replace, progress=progress)
