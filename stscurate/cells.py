"""The values of a user's file, one at a time: read as what a column means, or refused with their place and the mend."""

import math
from typing import Any

from stscurate.errors import InputError
from stscurate.files import RawTable


def optional(raw: RawTable, column: str, row: int) -> Any:
    """The value of a column that may be missing; None then."""
    return raw.columns[column][row] if column in raw.columns else None


def as_text(value: Any) -> str | None:
    """The value as text; None stays None."""
    return None if value is None else str(value)


def text(raw: RawTable, column: str, row: int) -> str | None:
    """A text. InputError where it is something else, or no file can store it."""
    value = raw.columns[column][row]
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(
            f"{raw.place(row)}: {column} holds {value!r:.40}, which isn't text: name the text columns with --columns."
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{raw.place(row)}: {column} holds half of a surrogate pair (character {error.start}), which no file can "
            "store: replace the character or remove the row."
        ) from None
    return value


def label(raw: RawTable, column: str | None, row: int) -> int | None:
    """A label, 0 or 1, also as a boolean; None where there is none. InputError for anything else."""
    value = raw.columns[column][row] if column else None
    if value is None:
        return None
    number = {"true": 1.0, "false": 0.0}.get(str(value).lower(), as_number(value))  # as pandas writes them
    if number not in (0, 1):
        raise InputError(
            f"{raw.place(row)}: label {value!r:.40}: labels are 0 or 1. A graded similarity is a score: "
            f"--columns score={column} and its --scale."
        )
    return int(number)


def score(raw: RawTable, column: str | None, row: int, scale: tuple[float, float]) -> float | None:
    """A score on the file's scale, brought to 0..1; None where there is none. InputError where it is off the scale."""
    value = raw.columns[column][row] if column else None
    if value is None:
        return None
    low, high = scale
    number = as_number(value)
    if math.isnan(number):
        raise InputError(
            f"{raw.place(row)}: score {value!r:.40} isn't a number: mend the row, leave the field empty, or name the "
            "column of scores with --columns."
        )
    if not low <= number <= high:
        raise InputError(
            f"{raw.place(row)}: score {value!r:.40} isn't within {low:g} to {high:g}: "
            "give the file's scale (--scale 0-5), or mend the row."
        )
    return (number - low) / (high - low)


def weight(raw: RawTable, row: int) -> float:
    """A weight of 0 or more; 1 where there is none."""
    value = optional(raw, "weight", row)
    number = 1.0 if value is None else as_number(value)
    if not 0 <= number < math.inf:
        raise InputError(f"{raw.place(row)}: weight {value!r:.40} isn't a number of 0 or more: mend the row.")
    return number


def split(raw: RawTable, row: int) -> str | None:
    """The split's usual name; None where there is none."""
    value = optional(raw, "split", row)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{raw.place(row)}: split {value!r:.40} isn't a name: train, validation or test.")
    return {"dev": "validation", "valid": "validation"}.get(value, value) if value else None


def tier(raw: RawTable, row: int) -> int | None:
    """A tier, 1 to 3; None where there is none."""
    value = optional(raw, "tier", row)
    if value is not None and as_number(value) not in (1, 2, 3):
        raise InputError(
            f"{raw.place(row)}: tier {value!r:.40}: tiers are 1, 2 or 3. Rename the column or mend the row."
        )
    return None if value is None else int(as_number(value))


def flags(raw: RawTable, row: int) -> list[str]:
    """A list of words, also as one string with commas between; empty where there is none. InputError for others."""
    value = optional(raw, "flags", row) or []
    given = [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise InputError(f"{raw.place(row)}: flags {value!r:.40} isn't a list of words: mend the row.")
    return given


def as_number(value: Any) -> float:
    """The value as a number; NaN where it is none, infinite where it is beyond all that a float can hold."""
    if isinstance(value, str) and "_" in value:  # 0_5 is a number in Python alone
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf
