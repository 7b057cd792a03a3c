"""Sources: raw issues with their comments, and the duplicate links found in them."""

from stscurate.sources.collect import collect_issues
from stscurate.sources.licences import note_licences
from stscurate.sources.rehydrate import fetch_again

__all__ = ["collect_issues", "fetch_again", "note_licences"]
