"""From a user's file or a run to the records that stages read: texts, and pairs with labels or scores."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from stscurate import cells
from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.files import RawTable
from stscurate.manifest import Entry
from stscurate.records import PAIRS, Tally, from_rows
from stscurate.roles import parse_scale, read_roles
from stscurate.store import Run, is_run

# The role of a pair's second text -> the label that the role itself gives.
_PAIR: dict[str, int | None] = {"text2": None}
_CONTRASTS: dict[str, int | None] = {"positive": 1, "negative": 0}
_KEPT = ("id1", "id2", "component", "repository", "licence", "origin")


@dataclass(frozen=True)
class Source:
    """What a stage reads: a table of records, where it came from, its hash, and the rows left out.

    positives: pairs of a file that names what belongs together, and nothing else (query, positive).
    """

    table: pa.Table
    name: str
    fingerprint: str
    tally: Tally
    positives: bool = False

    @property
    def inputs(self) -> dict[str, str]:
        """The source as a stage's `inputs`."""
        return {self.name: self.fingerprint}


def pairs_source(path: Path, *, columns: str | None = None, scale: str | None = None) -> Source:
    """Pairs of a run or of a file, by schema PAIRS.

    columns: names in order ("question1,question2,score") or by role ("text1=question1,text2=question2"); the
    usual names need none. scale: "0-5" where the file's scores aren't 0..1.
    InputError names the place of an id that stands twice, a label other than 0 and 1, a score out of range.
    """
    if is_run(path):
        table = Run(path).table("pairs")
        return Source(table, "pairs", Run(path).fingerprint("pairs"), Tally(rows_in=table.num_rows))
    raw, roles = read_roles(path, columns, ("text1", "text2"))
    return _pairs(raw, roles, parse_scale(scale), Source(PAIRS.empty_table(), raw.name, fingerprint(path), Tally()))


def training_source(path: Path, *, columns: str | None = None, scale: str | None = None) -> Source:
    """Pairs to train on: as pairs_source, and files of positives and negatives, which carry no label of their own.

    Of angle_emb's formats, A (text1, text2, label) is a file of pairs. A row of C (query, positive, negative; B before
    its 0.6) is the pair query, positive with the label 1, and the pair query, negative with the label 0; a row of B
    (query, positive; C before) is the first of these alone. `anchor` may stand for `query`. Of a run that has triplets
    and no pairs, each is such a row of C. A row of which a text is empty is left out whole. A file of B has one label
    only: in-batch negatives can be trained by it, a ranking can't.
    """
    if is_run(path):
        return _of_triplets(Run(path)) if _only_triplets(Run(path)) else pairs_source(path)
    raw, roles = read_roles(path, columns, ("text1", "text2"))
    known = _CONTRASTS if "positive" in roles and not {"score", "label"} & roles.keys() else _PAIR
    sides = {side: label for side, label in known.items() if side in roles}
    source = Source(PAIRS.empty_table(), raw.name, fingerprint(path), Tally(), positives=list(sides) == ["positive"])
    return _pairs(raw, roles, parse_scale(scale), source, sides)


def _only_triplets(run: Run) -> bool:
    return run.has("triplets") and not run.has("pairs")


def _of_triplets(run: Run) -> Source:
    """The triplets of a run as pairs; each pair once, though triplets share it."""
    tally = Tally()
    rows: dict[str, dict[str, Any]] = {}
    for triplet in run.table("triplets").to_pylist():
        for role, label in _CONTRASTS.items():
            tally.rows_in += 1
            key = pair_id(triplet["anchor"], triplet[role])
            if key in rows:
                tally.drop("repeated_pair")
                continue
            row: dict[str, Any] = dict.fromkeys(PAIRS.names)
            row |= {"pair_id": key, "text1": triplet["anchor"], "text2": triplet[role], "label": label}
            rows[key] = row | {"weight": 1.0, "origin": "triplets", "flags": []}
    return Source(from_rows(list(rows.values()), "pairs"), "triplets", run.fingerprint("triplets"), tally)


def texts_source(path: Path, *, columns: str | None = None) -> Source:
    """Texts of a file (column `text`, or any pair or triplet columns), or of a run's training pairs; each text once.

    A run's validation and test texts are left out, so that nothing trained on them can be evaluated by them.
    """
    tally = Tally()
    if is_run(path):
        run = Run(path)
        name = "texts" if run.has("texts") else "pairs"
        table = run.table(name)
        if name == "pairs":
            table = table.filter(pc.equal(pc.fill_null(table["split"], "train"), "train"))
            sides = (table[side].to_pylist() for side in ("text1", "text2"))
            found = [text for pair in zip(*sides, strict=True) for text in pair]
        else:
            found = table["text"].to_pylist()
        digest = run.fingerprint(name)
    else:
        raw, roles = read_roles(path, columns, ("text",), ("anchor",), ("text1", "text2"))
        wanted = [role for role in ("text", "anchor", "text1", "text2") if role in roles]
        wanted = wanted[:1] if wanted[0] == "text" else wanted
        found = [cells.text(raw, roles[role], row) for row in range(len(raw)) for role in dict.fromkeys(wanted)]
        name, digest = raw.name, fingerprint(path)
    rows: dict[str, str] = {}
    for text in found:
        tally.rows_in += 1
        if text is None or not text.strip():
            tally.drop("empty_text")
        elif text_id(text) in rows:
            tally.drop("repeated_text")
        else:
            rows[text_id(text)] = text
    if not rows:
        raise InputError(f"{path} has no text in it: every row is empty.")
    table = from_rows([{"text_id": key, "text": text} for key, text in rows.items()], "texts")
    return Source(table, name, digest, tally)


def texts_with(
    path: Path, role: Literal["group", "label"], *, columns: str | None = None
) -> tuple[RawTable, dict[str, str]]:
    """A file of texts with a group or a label each, and role -> column. InputError where it lacks either."""
    return read_roles(path, columns, ("text", role))


def triplets_source(path: Path, *, columns: str | None = None) -> Source | None:
    """Columns anchor, positive and negative of a file that has them; None for any other file, and for a run."""
    if is_run(path):
        return None
    raw, roles = read_roles(path, columns, ("text",), ("anchor",), ("text1", "text2"))
    if not {"anchor", "positive", "negative"} <= roles.keys():
        return None
    tally = Tally(rows_in=len(raw))
    kept: dict[str, list[str | None]] = {"anchor": [], "positive": [], "negative": []}
    for row in range(len(raw)):
        texts = {role: cells.text(raw, roles[role], row) for role in kept}
        if all(text and text.strip() for text in texts.values()):
            for role, text in texts.items():
                kept[role].append(text)
        else:
            tally.drop("empty_text")
    return Source(pa.table(kept), raw.name, fingerprint(path), tally)


@dataclass(frozen=True)
class TextRow:
    """A row as it stands: where a user finds it, its split if it names one, texts by column, gold from 0 to 1."""

    place: str
    split: str | None
    texts: dict[str, str]
    gold: float | None


def text_rows(path: Path, *, columns: str | None = None, scale: str | None = None, gold: bool = True) -> list[TextRow]:
    """All rows of a file of texts, pairs or triplets, or of a run's pairs, else triplets; empty texts left out.

    columns and scale as elsewhere; gold=False reads no score and no label, on whatever scale they are.
    """
    if is_run(path) and _only_triplets(Run(path)):
        triplets = Run(path).table("triplets").select(["anchor", "positive", "negative"]).to_pylist()
        return [
            TextRow(
                f"{path.name}, triplet {number}", None, {name: text for name, text in row.items() if text.strip()}, None
            )
            for number, row in enumerate(triplets, start=1)
        ]
    if is_run(path):
        sides = ("text1", "text2")
        return [
            TextRow(
                f"{path.name}, pair {row['pair_id']}",
                row["split"],
                {name: row[name] for name in sides if row[name].strip()},
                row["label"] if row["score"] is None else row["score"],
            )
            for row in Run(path).table("pairs").to_pylist()
        ]
    raw, roles = read_roles(path, columns, ("text",), ("anchor",), ("text1", "text2"))
    wanted = dict.fromkeys(roles[role] for role in roles if role not in ("score", "label"))
    ends = parse_scale(scale)
    found = []
    for row in range(len(raw)):
        texts = {column: cells.text(raw, column, row) for column in wanted}
        score = cells.score(raw, roles.get("score"), row, ends) if gold else None
        label = cells.label(raw, roles.get("label"), row) if gold and score is None else None
        kept = {column: text for column, text in texts.items() if text and text.strip()}
        found.append(TextRow(raw.place(row), cells.split(raw, row), kept, label if score is None else score))
    return found


def rows_fingerprint(path: Path) -> str:
    """The hash of what `text_rows` reads: of the file, or of the run's table."""
    if not is_run(path):
        return fingerprint(path)
    return Run(path).fingerprint("triplets" if _only_triplets(Run(path)) else "pairs")


def import_pairs(run: Run, source: Source) -> Entry:
    """Make a user's pairs the stage `pairs` of a run, so that all that follows finds them there."""
    stage = run.stage("pairs", tables=["pairs"], inputs=source.inputs, settings={"imported": source.name})
    if stage.entry:
        return stage.entry
    stage.write(0, {"pairs": source.table}, source.tally)
    return stage.commit()


def scores_of(path: Path) -> tuple[pa.Table | None, dict[str, str]]:
    """The pseudo-labels (schema SCORES) of a run that has them, as a stage's input; None for a file."""
    if not is_run(path) or not Run(path).has("scores"):
        return None, {}
    return Run(path).table("scores"), {"scores": Run(path).fingerprint("scores")}


def text_id(text: str) -> str:
    """A text's id: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def pair_id(text1: str, text2: str) -> str:
    """A pair's id from its two texts, in their order."""
    return text_id(f"{text1}\0{text2}")


def _pairs(
    raw: RawTable,
    roles: dict[str, str],
    scale: tuple[float, float],
    source: Source,
    sides: Mapping[str, int | None] = MappingProxyType(_PAIR),
) -> Source:
    tally = source.tally
    rows: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    given: dict[str, int] = {}
    for row in range(len(raw)):
        tally.rows_in += 1
        text1, *seconds = (cells.text(raw, roles[role], row) for role in ("text1", *sides))
        if not all(text and text.strip() for text in (text1, *seconds)):
            tally.drop("empty_text")
            continue
        key = cells.optional(raw, "pair_id", row) or cells.optional(raw, "id", row)
        if key is not None and given.setdefault(str(key), row) != row:
            raise InputError(
                f"{raw.place(row)}: id {key} stood already in {raw.places[given[str(key)]]}: ids are given once."
            )
        tally.rows_in += len(sides) - 1  # a row with a negative is two pairs
        for number, (text2, label) in enumerate(zip(seconds, sides.values(), strict=True)):
            own = pair_id(str(text1), str(text2))
            seen[own] += 1
            values: dict[str, Any] = dict.fromkeys(PAIRS.names)
            values |= {name: cells.as_text(cells.optional(raw, name, row)) for name in _KEPT}
            values |= {
                "pair_id": _id(key, number, own, seen[own]),
                "text1": text1,
                "text2": text2,
                "label": cells.label(raw, roles.get("label"), row) if label is None else label,
                "score": cells.score(raw, roles.get("score"), row, scale),
                "weight": cells.weight(raw, row),
                "split": cells.split(raw, row),
                "origin": values["origin"] or f"file:{raw.name}",
                "tier": cells.tier(raw, row),
                "flags": cells.flags(raw, row),
            }
            rows.append(values)
    if not rows:
        raise InputError(f"{raw.name} has no pair with two texts: every row has an empty one.")
    return replace(source, table=from_rows(rows, "pairs"))


def _id(key: Any, number: int, own: str, times: int) -> str:
    """A pair's id: that of its row (the second pair of a row has it with "-negative"), else that of its texts."""
    if key is not None:
        return f"{key}-negative" if number else str(key)
    return own if times == 1 else f"{own}-{times}"
