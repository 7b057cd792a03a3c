"""Issues from GH Archive's hours of public events: candidates, which GitHub can be asked to confirm."""

from stscurate.sources.gharchive.hours import is_archive, is_mixed
from stscurate.sources.gharchive.stage import collect_from_archive, read_archive

__all__ = ["collect_from_archive", "is_archive", "is_mixed", "read_archive"]
