"""Sources: raw issues with their comments, and the duplicate links found in them."""

from stscurate.sources.collect import collect_issues
from stscurate.sources.licences import note_licences

__all__ = ["collect_issues", "note_licences"]
