"""Sources: raw issues with their comments, and the duplicate links found in them."""

from stscurate.sources.collect import collect_issues

__all__ = ["collect_issues"]
