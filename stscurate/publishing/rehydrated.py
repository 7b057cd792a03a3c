"""A set that was published by ids, with its texts once they were fetched again: the layouts that hold texts."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stscurate.artifacts import Artifact
from stscurate.disk import atomic, fingerprint
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.methods.templates import Template
from stscurate.progress import Progress, silent
from stscurate.publishing.card import check_card, front_matter, render, template_path
from stscurate.publishing.folder import CARD_FACTS
from stscurate.publishing.gates import GATES, check_gates
from stscurate.publishing.ids import read_templates, text_hash
from stscurate.publishing.layouts import Layout, text_layouts
from stscurate.publishing.lengths import lengths, size_bias
from stscurate.publishing.parts import InMemory
from stscurate.publishing.writing import output_of, write_layout
from stscurate.records import SPLITS, Tally
from stscurate.store import Run

NEEDED_FILES = ("data/ids/*", "data/provenance/*", CARD_FACTS)


def published_ids(published: Path) -> pa.Table:
    """The configs `ids` and `provenance` of a set, side by side, with a column `split`.

    InputError where the folder isn't a set that was published by ids, or is broken.
    """
    if not (published / "data" / "ids").is_dir() or not (published / CARD_FACTS).is_file():
        raise InputError(
            f"{published} isn't a set that stscurate has published by ids: name a folder, or a repository on the Hub, "
            "that holds data/ids. A set with texts needs no rehydration."
        )
    parts = []
    try:
        for split in SPLITS:
            both = [sorted((published / "data" / name).glob(f"{split}-*.parquet")) for name in ("ids", "provenance")]
            if not both[0]:
                continue
            ids, provenance = (pa.concat_tables(pq.read_table(path, partitioning=None) for path in one) for one in both)
            for name in provenance.column_names:
                if name not in ids.column_names:
                    ids = ids.append_column(name, provenance[name])
            parts.append(ids.append_column("split", pa.array([split] * ids.num_rows)))
        left_out = {"label": pa.int64(), "licence": pa.string()}
        return _with_missing(pa.concat_tables(parts, promote_options="default"), left_out)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise InputError(f"{published} is broken ({str(error)[:200]}): copy or download it again.") from None


def published_templates(published: Path) -> dict[str, Template]:
    """The issue templates that were taken out of the set's texts, by repository. InputError where they are broken."""
    try:
        return read_templates(json.loads((published / CARD_FACTS).read_text("utf-8")).get("templates", {}))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{published / CARD_FACTS} isn't as it was written ({error}): download the set again."
        ) from None


def publish_rehydrated(
    run: Run,
    published: Path,
    folder: Path,
    *,
    unchanged_only: bool = False,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Write the set in `published` with the texts of the run's issues to `folder`: pairs, pair-class, gis, provenance.

    A pair whose texts aren't those that the set was made of is kept, and marked in `provenance` (text1_state and
    text2_state: same or changed), or with unchanged_only left out; one whose issue is gone is left out. Both are
    counted. InputError where no pair is left.
    """
    ids = published_ids(published)
    inputs = {"published": fingerprint(published / "data"), "card": fingerprint(published / CARD_FACTS)}
    inputs |= {"issues": run.fingerprint("issues"), "card template": fingerprint(template_path())}
    settings = {"unchanged_only": unchanged_only}
    with Artifact.open(folder, stage="rehydrate", inputs=inputs, settings=settings, replace=replace) as artifact:
        if artifact.entry:
            return artifact.entry
        tally = Tally(rows_in=ids.num_rows)
        pairs = _with_texts(ids, run, unchanged_only, tally)
        if not pairs.num_rows:
            raise InputError(
                f"No pair of {published} is left (left out: {dict(tally.dropped)}): the issues are gone"
                f"{' or changed' if unchanged_only else ''}."
            )
        layouts = [*(found for found in text_layouts(InMemory(pairs)) if found.num_rows), _provenance(pairs, ids)]
        artifact.result.mkdir(exist_ok=True)
        sizes = {}
        for number, layout in enumerate(layouts):
            progress("rehydrate", number, len(layouts))
            sizes[layout.name] = write_layout(layout, artifact.result)
        with atomic(artifact.result / "README.md") as file:
            with run.scratch("rehydrate") as scratch:
                found = check_gates(InMemory(pairs), None, scratch, accept=GATES)
            file.write(_card(published, layouts, sizes, pairs, tally, found, unchanged_only).encode())
        check_card(artifact.result)
        outputs = {layout.name: output_of(layout, artifact.result) for layout in layouts}
        return artifact.commit(outputs, tally)


def _with_texts(ids: pa.Table, run: Run, unchanged_only: bool, tally: Tally) -> pa.Table:
    """The pairs whose issues are there, with text1, text2, text1_state, text2_state and row."""
    issues = run.table("issues").select(["repository", "number", "clean_text"]).to_pylist()
    texts = {f"{row['repository']}#{row['number']}".lower(): row["clean_text"] for row in issues}
    kept: list[int] = []
    added: dict[str, list[str]] = {name: [] for name in ("text1", "text2", "text1_state", "text2_state")}
    columns = (ids[name].to_pylist() for name in ("id1", "id2", "hash1", "hash2"))
    for row, (id1, id2, hash1, hash2) in enumerate(zip(*columns, strict=True)):
        text1, text2 = texts.get(id1.lower()), texts.get(id2.lower())
        if not text1 or not text2:
            tally.drop("gone" if text1 is None or text2 is None else "empty_now")
            continue
        states = ["same" if text_hash(text) == known else "changed" for text, known in ((text1, hash1), (text2, hash2))]
        if unchanged_only and "changed" in states:
            tally.drop("changed")
            continue
        tally.count("pairs", "changed" if "changed" in states else "same")
        kept.append(row)
        for name, value in zip(added, (text1, text2, *states), strict=True):
            added[name].append(value)
    table = ids.take(pa.array(kept, pa.int64()))
    for name, values in {**added, "row": kept}.items():
        kind = pa.int64() if name == "row" else pa.string()
        table = table.append_column(name, pa.array(values, kind))
    looked_at = {"component": pa.string(), "tokens1": pa.int32(), "tokens2": pa.int32()}  # by the gates and the card
    return _with_missing(table, looked_at)


def _with_missing(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """The table with those columns that it lacks, full of nulls: a column of nothing else isn't published."""
    for name, kind in kinds.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, kind))
    return table


def _provenance(pairs: pa.Table, ids: pa.Table) -> Layout:
    """All that the set says of its rows, but for what stands in other configs, and the states of their texts."""
    left_out = {"url1", "url2", "hash1", "hash2", "label", "score", "split"}
    names = [name for name in ids.column_names if name not in left_out and pairs[name].null_count < pairs.num_rows]
    return Layout.of_table("provenance", pairs.select([*names, "text1_state", "text2_state"]), pairs["split"])


def _card(
    published: Path,
    layouts: Sequence[Layout],
    sizes: dict[str, dict[str, int]],
    pairs: pa.Table,
    tally: Tally,
    found: dict[str, int],
    unchanged_only: bool,
) -> str:
    """The set's card, made again. found: by gates, since texts that were edited can leak where they didn't."""
    try:
        known = json.loads((published / CARD_FACTS).read_text("utf-8"))
        old, facts = dict(known["matter"]), dict(known["facts"])
        found = Counter(dict(facts["accepted"])) | Counter(found)
        matter = front_matter(
            layouts,
            sizes,
            title=old["pretty_name"],
            licences=[old["license"]] if isinstance(old["license"], str) else old["license"],
            languages=old["language"],
            annotated=old["annotations_creators"],
            original="source_datasets" in old,
        )
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{published / CARD_FACTS} isn't as it was written ({error}): download the set again."
        ) from None
    counts = Counter(tally.counts.get("pairs", {}))
    rehydrated: dict[str, Any] = {
        "pairs": tally.rows_in,
        "same": counts["same"],
        "changed": counts["changed"] + tally.dropped["changed"],
        "gone": tally.dropped["gone"] + tally.dropped["empty_now"],
        "unchanged_only": unchanged_only,
    }
    facts |= {
        "configs": [(layout.name, split, rows) for layout in layouts for split, rows in layout.counts.items()],
        "names": [layout.name for layout in layouts],
        "lengths": lengths(InMemory(pairs)),
        "bias": size_bias(InMemory(pairs)),
        "accepted": sorted(found.items()),
        "row_licences": _licences(pairs),
        "rehydrated": rehydrated,
    }
    return render(matter, facts)


def _licences(pairs: pa.Table) -> list[tuple[str, int]]:
    counted = pc.value_counts(pairs["licence"].drop_null()).to_pylist()
    return sorted((item["values"], item["counts"]) for item in counted)
