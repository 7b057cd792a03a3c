"""Hard negatives: of each anchor, texts that are like it and aren't the same."""

from stscurate.mining.stage import Rules, mine

__all__ = ["Rules", "mine"]
