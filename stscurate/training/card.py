"""The card of a trained model: what it came from, by what settings, on which rows."""

from typing import Any

import yaml

from stscurate.training.data import TrainingRows

_METHODS = {
    "angle": "AnglE (cosine, in-batch and angle objectives; arXiv 2309.12871)",
    "arccse": "ArcCSE (additive angular margin and nested masked triplets; Zhang et al., ACL 2022)",
}


def model_card(method: str, start: str, settings: dict[str, Any], rows: TrainingRows) -> str:
    """The README.md of a model folder: YAML head and a short, plain body."""
    head = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "base_model": start,
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "stscurate", method],
    }
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(rows.tally.dropped.items())) or "none"
    table = "\n".join(f"| {name} | {value} |" for name, value in settings.items())
    data = "\n".join(f"- {name}: SHA-256 `{digest}`" for name, digest in rows.inputs.items())
    return f"""---
{yaml.safe_dump(head, sort_keys=False).strip()}
---

# {start}, trained by {method}

{start}, trained further with stscurate by {_METHODS[method]}.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
embeddings = model.encode(["The first text.", "Another one."])
```

## Training data

{len(rows):,} of {rows.tally.rows_in:,} rows; left out: {dropped}.

{data}

`training_texts.sha256` holds a digest of each training text, so that an evaluation can leave out what the model
has seen.

## Settings

| setting | value |
|---|---|
{table}
"""
