"""The command audit labels: gold that may be wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stscurate.cli.console import session
from stscurate.cli.options import AcceptCorpus, CalibrationFolder, Columns, Json, Quiet, Scale, Seed, Yes, check_place
from stscurate.wording import counted

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from stscurate.methods.calibration.saved import Calibration
    from stscurate.progress import Progress

_EXAMPLES = 5


def labels(
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="File of pairs with gold, or a run.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Embedding model whose cosines say what gold to expect, repeatable. Not one that was trained on these "
            "pairs.",
        ),
    ] = None,
    calibration: CalibrationFolder = None,
    accept: AcceptCorpus = None,
    threshold: Annotated[
        float, typer.Option(help="Robust standard deviations from what is expected that make gold suspect.", min=0)
    ] = 3.0,
    gap: Annotated[float, typer.Option(help="Difference of gold (0 to 1) that equal pairs may have.", min=0)] = 0.2,
    out: Annotated[Path | None, typer.Option(help="Parquet file for all suspect rows, the most suspect first.")] = None,
    columns: Columns = None,
    scale: Scale = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Name the pairs whose gold may be wrong: it contradicts itself, or what models and annotators expect."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.audit import find_suspects
        from stscurate.disk import write_parquet
        from stscurate.errors import InputError
        from stscurate.methods.calibration.saved import Calibration
        from stscurate.tables import pairs_source, scores_of

        check_place(out, [pairs], yes=yes)
        source = pairs_source(pairs, columns=columns, scale=scale)
        if calibration and len(model or []) != 1:
            raise InputError("--calibration belongs to one model: name that one with --model.")
        fitted = Calibration.load(calibration) if calibration else None
        evidence = {
            name: _similarity(name, source.table, fitted, accept_corpus=accept == "corpus", progress=console.progress)
            for name in model or []
        }
        scores, _ = scores_of(pairs)
        if scores is not None:
            evidence["annotators"] = _scores(source.table, scores)
        found = find_suspects(source.table, evidence, threshold=threshold, gap=gap, seed=seed)
        reasons = [{"reason": name, "pairs": rows} for name, rows in found.counts.items()]
        console.table("suspect_labels", reasons, title="suspect labels")
        examples = found.rows.slice(0, _EXAMPLES).to_pylist()
        for row in examples:
            expected = "" if row["expected"] is None else f", expected {row['expected']:.2f}"
            told = f", other gold in {row['other']}" if row["other"] else ""
            console.say(f"{row['pair_id']}: gold {row['gold']:.2f}{expected} ({', '.join(row['reasons'])}{told})")
            console.say(f"    {row['text1']!r:.150}")
            console.say(f"    {row['text2']!r:.150}")
        witnesses = ", ".join(evidence) or "none: name a --model to hear one"
        suspect = found.rows.num_rows
        console.say(f"{suspect:,} of {counted(found.pairs, 'pair')} ({suspect / found.pairs:.1%}) are suspect.")
        console.say(f"Witnesses: {witnesses}.")
        console.keep(
            pairs=found.pairs,
            without_gold=found.without_gold,
            left_out=dict(source.tally.dropped),
            suspects=suspect,
            examples=examples,
        )
        if out:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(out, found.rows)
            console.say(f"All of them: {out}")


def _similarity(
    model: str, table: "pa.Table", calibration: "Calibration | None", *, accept_corpus: bool, progress: "Progress"
) -> "NDArray[np.float64]":
    """The model's cosine of each pair, or what the calibration makes of it."""
    from stscurate.methods.pair_similarity import pair_similarity
    from stscurate.services.encoders import open_encoder

    pairs = list(zip(table["text1"].to_pylist(), table["text2"].to_pylist(), strict=True))
    return pair_similarity(open_encoder(model), pairs, calibration, accept_corpus=accept_corpus, progress=progress)


def _scores(table: "pa.Table", scores: "pa.Table") -> "NDArray[np.float64]":
    """The ensemble's score of each pair, nan where it has none."""
    import numpy as np
    import pyarrow.compute as pc

    place = pc.index_in(table["pair_id"], value_set=scores["pair_id"].combine_chunks())
    return np.asarray(scores["score"].take(place).to_numpy(), dtype=np.float64)
