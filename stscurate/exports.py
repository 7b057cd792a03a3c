"""What people answered in Argilla or Label Studio, out of the JSON that these export."""

from collections.abc import Mapping, Sequence
from typing import Any

_QUESTION = "score"  # as the tasks that `ensemble --review` writes name it


def answer_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """The answers as rows: pair_id, text1, text2, rater, score (a number, or None where it was skipped).

    Of Argilla the records as its `to_json` writes them: submitted responses to the question `score`. Of Label Studio
    its JSON export: annotations that weren't cancelled, by a Number, Rating or Choices named `score`. None where the
    rows are of neither.
    """
    if rows and all(isinstance(row.get("data"), dict) and "annotations" in row for row in rows):
        return [answer for row in rows for answer in _of_label_studio(row)]
    if rows and all(isinstance(row.get("fields"), dict) and "responses" in row for row in rows):
        return [answer for row in rows for answer in _of_argilla(row)]
    return None


def _of_argilla(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = (record.get("responses") or {}).get(_QUESTION) or []
    return [
        _row(record["fields"], record.get("id"), one.get("user_id"), one.get("value"))
        for one in given
        if one.get("status", "submitted") == "submitted"
    ]


def _of_label_studio(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for one in task["annotations"] or []:
        if one.get("was_cancelled"):
            continue
        parts = [part.get("value") or {} for part in one.get("result") or [] if part.get("from_name") == _QUESTION]
        value = parts[0] if parts else {}
        choices = value.get("choices") or [None]
        number = next((value[name] for name in ("number", "rating") if name in value), choices[0])
        rater = one.get("completed_by")
        rater = (rater.get("email") or rater.get("id")) if isinstance(rater, dict) else rater
        found.append(_row(task["data"], task["data"].get("pair_id"), rater, number))
    return found


def _row(texts: Mapping[str, Any], pair_id: Any, rater: Any, value: Any) -> dict[str, Any]:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = None
    return {
        "pair_id": None if pair_id is None else str(pair_id),
        "text1": texts.get("text1"),
        "text2": texts.get("text2"),
        "rater": "rater" if rater is None else str(rater),
        "score": number,
    }
