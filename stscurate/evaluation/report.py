"""Several models on several gold sets, kept as results.json and results.md."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stscurate.artifacts import Artifact
from stscurate.disk import write_json
from stscurate.evaluation.gold import GoldSet
from stscurate.evaluation.results import Result, as_markdown
from stscurate.evaluation.sts import evaluate
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import Tally
from stscurate.services.answers import Answers
from stscurate.services.models import locate


def evaluate_into(
    out: Path,
    models: Sequence[str],
    sets: Sequence[GoldSet],
    *,
    resamples: int = 1000,
    seed: int = 0,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Evaluate each model on each set into the folder `out`; embeddings so far survive a kill."""
    located = [locate(model) for model in models]
    inputs = {f"model {index}: {model.name}": model.fingerprint for index, model in enumerate(located)}
    inputs |= {f"set {index}: {gold.name}": gold.fingerprint for index, gold in enumerate(sets)}
    settings = {"resamples": resamples, "interval": "95 % percentile bootstrap", "precision": "float32"}
    with Artifact.open(out, stage="evaluate", inputs=inputs, settings=settings, seed=seed, replace=replace) as artifact:
        if artifact.entry:
            return artifact.entry
        results: list[Result] = []
        with Answers(artifact.work / "embeddings.sqlite") as answers:
            for model in models:
                results += evaluate(model, sets, answers=answers, resamples=resamples, seed=seed, progress=progress)
        folder = artifact.clear_result()
        write_json(folder / "results.json", {"results": [result.as_dict() for result in results]})
        (folder / "results.md").write_text(as_markdown(results))
        tally = Tally(rows_in=sum(len(gold.pairs) + sum(gold.dropped.values()) for gold in sets))
        for gold in sets:
            for reason, rows in gold.dropped.items():
                tally.drop(reason, rows)
        return artifact.commit({"results": {"rows": len(results)}}, tally)


def table_rows(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results, as `Result.as_dict` gives them, with the columns that a person reads first."""
    return [
        {
            "model": result["model"],
            "set": result["set"],
            "pairs": result["rows"],
            "left out": sum(result["dropped"].values()),
            "Spearman": result["spearman"],
            "95 % interval": _interval(result["low"], result["high"]),
            "AP": result["average_precision"],
            "leak-clean": result["spearman_clean"],
            "of pairs": result["rows_clean"],
            "tokens cut": f"{result['tokens_cut_share']:.1%}",
        }
        for result in results
    ]


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.3f} to {high:.3f}"
