"""Hard negatives: of each anchor, texts that are like it and aren't the same."""

from stscurate.mining.rules import Rules
from stscurate.mining.stage import mine

__all__ = ["Rules", "mine"]
