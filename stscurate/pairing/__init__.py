"""Pairing: from issues and duplicate links to labelled pairs in leak-free splits."""

from stscurate.pairing.pairs import make_pairs
from stscurate.pairing.tracing import trace

__all__ = ["make_pairs", "trace"]
