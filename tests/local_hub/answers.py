"""Answers of the Hub: JSON, bytes, a file or a part of it, or a refusal with its code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Answer:
    """Status, headers, and a body in memory or on the disk (from `start`, `length` bytes)."""

    status: int = 200
    body: bytes | Path = b""
    headers: dict[str, str] = field(default_factory=dict)
    start: int = 0
    length: int = 0
    cut: bool = False  # the connection is closed instead

    def __post_init__(self) -> None:
        if isinstance(self.body, bytes):
            self.length = len(self.body)


class Refused(Exception):
    """An answer that isn't the one wanted: status, X-Error-Code (or ""), and the message."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.answer = as_json({"error": message}, status)
        self.answer.headers |= {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """The value as JSON."""
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})
