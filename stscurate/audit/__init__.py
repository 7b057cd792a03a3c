"""Audits: what is wrong with a set, ours or not, before anyone trusts a number made with it."""

from stscurate.audit.labels import Suspects, find_suspects
from stscurate.audit.leaks import find_leaks, read_splits

__all__ = ["Suspects", "find_leaks", "find_suspects", "read_splits"]
