"""The leak gate: no training on texts that stand in a set which the model is to be tested on, unless accepted."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.leaks import text_digest
from stscurate.store import is_run
from stscurate.tables import TextRow, text_rows
from stscurate.training.data import TrainingRows
from stscurate.wording import counted

_NAMED = 5  # rows that a refusal names


@dataclass(frozen=True)
class HeldOut:
    """A set that the model is to be tested on: its name, its hash, its rows."""

    name: str
    fingerprint: str
    rows: list[TextRow]


def held_out(path: Path, *, columns: str | None = None) -> HeldOut:
    """Any file of texts, pairs or triplets; of a run, and of a file with several splits, the split test."""
    rows = text_rows(path, columns=columns, gold=False)
    if is_run(path) or len({row.split for row in rows} - {None}) > 1:
        rows = [row for row in rows if row.split == "test"]
    if not any(row.texts for row in rows):
        raise InputError(f"--test {path} has no text to hold out (of a run, the split test is taken): name another.")
    return HeldOut(path.resolve().name, fingerprint(path), rows)


def leaks_into(
    rows: TrainingRows, seen: Collection[str], sets: Sequence[HeldOut], *, accepted: bool
) -> dict[str, dict[str, Any]]:
    """How many training rows hold a text of each set, and how many of its rows are spoiled, by the set's name.

    seen: digests of what the model to start from was trained on, which spoil a test too. Texts are equal after
    normalising (methods.leaks). InputError names the rows where there are any and they aren't accepted.
    """
    known = frozenset(seen)
    found: dict[str, dict[str, Any]] = {}
    complaints = []
    digests = [{text_digest(text) for text in texts} for texts in rows.texts_of_rows()]
    for held in sets:
        where = {text_digest(text): row.place for row in reversed(held.rows) for text in row.texts.values()}
        spoiling = [
            (key, min(where[digest] for digest in own & where.keys()))
            for key, own in zip(rows.ids, digests, strict=True)
            if not own.isdisjoint(where)
        ]
        trained = known.union(*digests) if spoiling else known
        spoiled = [row for row in held.rows if any(text_digest(text) in trained for text in row.texts.values())]
        found[held.name] = {
            "sha256": held.fingerprint,
            "training_rows": len(spoiling),
            "rows_spoiled": len(spoiled),
            "rows": len(held.rows),
        }
        if spoiling:
            complaints.append(
                f"{len(spoiling)} of {counted(len(rows), 'training row')} hold a text of {_named(spoiling, held)}"
            )
        elif spoiled:
            places = ", ".join(row.place for row in spoiled[:_NAMED])
            complaints.append(f"the model to start from was trained on texts of {places}")
    if complaints and not accepted:
        raise InputError(
            f"{'; '.join(complaints)}. Leave these rows out, or give --accept leaks: the model's card then says so, "
            "and evaluate shows the number without them too."
        )
    return found


def _named(spoiling: Sequence[tuple[str, str]], held: HeldOut) -> str:
    shown = ", ".join(f"row {key} ({place})" for key, place in spoiling[:_NAMED])
    more = f" and {len(spoiling) - _NAMED} more" if len(spoiling) > _NAMED else ""
    return f"{held.name}: {shown}{more}"
