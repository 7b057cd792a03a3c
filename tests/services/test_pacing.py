"""Pauses that services demand."""

from email.utils import formatdate

from stscurate.services.pacing import retry_after


def test_retry_after_reads_seconds_and_dates() -> None:
    assert retry_after({"retry-after": "3"}, 0.0) == 3.0
    assert retry_after({"retry-after": formatdate(1_000_060, usegmt=True)}, 1_000_000.0) == 60.0
    assert retry_after({"retry-after": formatdate(1_000, usegmt=True)}, 1_000_000.0) == 0.0
    assert retry_after({"retry-after": "soon"}, 0.0) is None
    assert retry_after({}, 0.0) is None
