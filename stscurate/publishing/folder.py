"""A run as a folder that `datasets.load_dataset(folder, config)` loads, with its card; nothing is sent anywhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.artifacts import Artifact
from stscurate.disk import atomic, write_json
from stscurate.errors import InputError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.publishing.card import check_card, front_matter, merge, render
from stscurate.publishing.checksums import write_checksums
from stscurate.publishing.croissant import CROISSANT
from stscurate.publishing.croissant import croissant as describe
from stscurate.publishing.facts import gather
from stscurate.publishing.gates import check_gates
from stscurate.publishing.ids import known_templates
from stscurate.publishing.parts import Parts
from stscurate.publishing.preparing import Prepared, card_there, prepare
from stscurate.publishing.writing import output_of, write_layout
from stscurate.records import Tally
from stscurate.store import Run

CARD_FACTS = "card.json"


def publish_folder(
    run: Run,
    folder: Path,
    *,
    title: str | None = None,
    licence: str | None = None,
    language: Sequence[str] = ("en",),
    accept: Sequence[str] = (),
    texts: bool = False,
    croissant: bool = False,
    before: Callable[[], Mapping[str, Any] | None] | None = None,
    replace: bool = False,
    progress: Progress = silent,
) -> Entry:
    """Write the run's pairs, triplets and provenance to `folder` as Parquet splits with a card (README.md).

    Pairs of GitHub issues are published by their ids (`ids.py`), without texts and triplets, unless `texts` says so:
    the texts are their authors', and whoever wants them can fetch them again. Other pairs always have their texts.
    title: the run's name by default. licence: SPDX identifier of the set, needed unless every pair names one.
    accept: names of gates (`gates.GATES`) whose findings are published all the same, and told on the card.
    croissant: describe the set in croissant.json as well. before: gives the YAML of the card that the columns are
    compared with, if the folder has to be made; by default that of the card in `folder`.
    Without a split a pair is for training; a pair without any score or label isn't published, and is counted.
    InputError where a gate refuses, nothing is there to publish, or `folder` holds something else.
    """
    with run.scratch("publish") as scratch:
        ready = prepare(run, scratch, title=title, licence=licence, language=language, accept=accept, texts=texts)
        settings = ready.settings | ({"croissant": True} if croissant else {})
        opened = Artifact.open(folder, stage="publish", inputs=ready.inputs, settings=settings, replace=replace)
        with opened as artifact:
            if artifact.entry:
                return artifact.entry
            card = before() if before else card_there(folder)
            return _write(run, ready, artifact, scratch, card, progress)


def _write(
    run: Run, ready: Prepared, artifact: Artifact, scratch: Path, card: Mapping[str, Any] | None, progress: Progress
) -> Entry:
    pairs, published, settings = ready.pairs, ready.published, artifact.key["settings"]
    accepted = check_gates(
        pairs,
        ready.triplets,
        scratch,
        accept=settings["accept"],
        texts=not ready.by_ids,
        published=published,
        before=card,
    )
    votes, scores = (_parts(run, name) for name in ("votes", "scores"))
    told = (votes, scores, published, accepted, settings, ready.from_issues, _dates(run), run.prompts)
    facts = gather(run.entries, pairs, *told)
    artifact.result.mkdir(exist_ok=True)
    sizes = {}
    for number, layout in enumerate(published):
        progress("publish", number, len(published))
        sizes[layout.name] = write_layout(layout, artifact.result)
    matter = front_matter(
        published,
        sizes,
        title=settings["title"],
        licences=settings["licences"],
        languages=settings["languages"],
        annotated=_annotators(pairs),
        original=run.has("issues") or run.has("texts"),
    )
    with atomic(artifact.result / "README.md") as file:
        file.write(edited(render(matter, facts), artifact).encode())
    if settings.get("croissant"):
        write_json(artifact.result / CROISSANT, describe(matter, published))
    if ready.by_ids:  # what the card is made of, since it has to be made again once the texts are there
        templates = known_templates(_parts(run, "issues", ["repository", "body"]), pairs)
        write_json(artifact.result / CARD_FACTS, {"matter": matter, "facts": facts, "templates": templates})
    check_card(artifact.result)
    write_checksums(artifact.result)
    progress("publish", len(published), len(published))
    outputs = {layout.name: output_of(layout, artifact.result) for layout in published}
    return artifact.commit(outputs, _tally(ready))


def _parts(run: Run, table: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """A table of the run in parts; none where it has no such table."""
    return run.parts(table, columns=columns) if run.has(table) else iter(())


def _tally(ready: Prepared) -> Tally:
    tally = Tally(rows_in=sum(ready.rows.values()))
    if "pairs" in ready.rows:
        tally.drop("no_score_or_label", ready.rows["pairs"] - ready.pairs.num_rows)
    if ready.by_ids:
        tally.drop("triplets_are_texts", ready.rows.get("triplets", 0))
    for layout in ready.published:
        for split, rows in layout.counts.items():
            tally.count(layout.name, split, rows)
    return tally


def _annotators(pairs: Parts) -> list[str]:
    """The Hub's words for who labelled: models, or labels that were found with the data."""
    sources = {value for batch in pairs.batches(["score_from"]) for value in pc.unique(batch["score_from"]).to_pylist()}
    words = {"machine-generated": "annotators" in sources, "found": bool(sources & {"score", "label"})}
    return [word for word, holds in words.items() if holds]


def edited(card: str, artifact: Artifact) -> str:
    """The card, with what a person has written into the one that it replaces."""
    for place in (artifact.folder, artifact.replaced):  # a kill may have come between the commit's two renames
        if (place / "README.md").is_file():
            try:
                return merge((place / "README.md").read_bytes().decode("utf-8"), card)
            except UnicodeDecodeError as error:
                raise InputError(f"{place / 'README.md'} isn't UTF-8 (byte {error.start}): save it so.") from None
    return card


def _dates(run: Run) -> tuple[str, str] | None:
    """The days when the first and the last of the run's issues were opened; None where they aren't known."""
    batches = run.batches("issues", columns=["created_at"]) if run.has("issues") else ()
    ends = [end for batch in batches for end in pc.min_max(batch["created_at"]).as_py().values() if end]
    return (min(ends).date().isoformat(), max(ends).date().isoformat()) if ends else None
