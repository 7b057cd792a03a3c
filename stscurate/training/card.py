"""The card of a trained model: what it came from, by what settings, on which rows."""

from typing import Any

import yaml

from stscurate.records import Tally
from stscurate.training.data import TrainingRows
from stscurate.wording import counted

_METHODS = {
    "angle": "AnglE (cosine, in-batch and angle objectives; arXiv 2309.12871)",
    "in-batch": "the in-batch objective of AnglE on positives alone (arXiv 2309.12871)",
    "cosent": "CoSENT's rank loss over cosines (doi:10.1109/TASLP.2024.3402087)",
    "simcse": "unsupervised SimCSE (NT-Xent, dropout as the only difference; arXiv 2104.08821)",
    "arccse": "ArcCSE (additive angular margin and nested masked triplets; Zhang et al., ACL 2022)",
}


def model_card(
    methods: list[str], start: str, settings: dict[str, Any], rows: TrainingRows, tally: Tally, found: dict[str, Any]
) -> str:
    """The README.md of a model folder: YAML head and a short, plain body. found: what the training itself told."""
    head = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "base_model": start,
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "stscurate", *methods],
    }
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(tally.dropped.items())) or "none"
    leaks = settings.get("held_out", {})
    shown = {name: value for name, value in settings.items() if name not in ("held_out", "sources")}
    table = "\n".join(f"| {name} | {value} |" for name, value in shown.items())
    table += "".join(f"\n| {name} | {found[name]} |" for name in ("pooling", "prompt") if found[name] is not None)
    sources = settings.get("sources", [])
    trained = len(rows) - tally.dropped["not_reached"]
    data = "\n".join(f"- {name}: SHA-256 `{digest}`" for name, digest in rows.inputs.items())
    return f"""---
{yaml.safe_dump(head, sort_keys=False).strip()}
---

# {start}, trained by {" and ".join(methods)}

{start}, trained further with stscurate by {"; and by ".join(_METHODS[method] for method in methods)}.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
embeddings = model.encode(["The first text.", "Another one."])
```

## Training data

{trained:,} of {counted(rows.tally.rows_in, "row")}; left out: {dropped}.

{data}
{_of_sources(sources, tally)}
`training_texts.sha256` holds a digest of each training text, so that an evaluation can leave out what the model
has seen. `row_losses.parquet` holds the loss of each row at the end, the rows that the model couldn't learn first:
look there for wrong labels. {_read(tally)}{_checked(leaks)}{_validated(tally, found)}
## Settings

| setting | value |
|---|---|
{table}
"""


def _of_sources(sources: list[dict[str, Any]], tally: Tally) -> str:
    """Of several sources each with its loss and settings, and what became of its rows."""
    lines = []
    for given in sources:
        name, loss = given["source"], given["loss"]
        settings = ", ".join(f"{key} {value}" for key, value in given.items() if key not in ("source", "loss"))
        rows = ", ".join(f"{what} {count:,}" for what, count in sorted(tally.counts[f"rows of {name}"].items()))
        lines.append(f"| {name} | {loss} | {rows} | {settings} |\n")
    return "\n| source | loss | rows | settings |\n|---|---|---|---|\n" + "".join(lines) if lines else ""


def _read(tally: Tally) -> str:
    texts, tokens = tally.counts["texts"], tally.counts["tokens"]
    share = tokens["cut"] / max(tokens["cut"] + tokens["read"], 1)
    return f"{texts['truncated']:,} of {counted(texts['distinct'], 'text')} were cut, by {share:.1%} of all tokens.\n"


def _checked(leaks: dict[str, dict[str, Any]]) -> str:
    if not leaks:
        return ""
    lines = [
        f"- {name}: {counted(found['training_rows'], 'training row holds', 'training rows hold')} a text of it, which "
        f"spoils {found['rows_spoiled']:,} "
        f"of its {counted(found['rows'], 'row')}."
        for name, found in leaks.items()
    ]
    warning = ""
    if any(found["rows_spoiled"] for found in leaks.values()):
        warning = "\n**Trained on texts of a test set.** Trust the leak-clean numbers alone.\n"
    return "\nChecked against sets to be tested on:\n\n" + "\n".join(lines) + "\n" + warning


def _validated(tally: Tally, found: dict[str, Any]) -> str:
    if "validation" not in tally.counts:
        return ""
    seen, best = tally.counts["validation"], found["best"]
    chosen = (
        f"the best weights, of step {best['step']}, reach {best['spearman']:.4f} there" if best else "no look counted"
    )
    return f"""
## Validation

Spearman on {counted(seen["pairs"], "validation pair")} chose the weights ({seen["with_training_text"]:,} of these
hold a training text): {chosen}. `training_curve.json` holds the curve.
"""
