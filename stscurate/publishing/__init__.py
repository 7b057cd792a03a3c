"""From a run to a data set that others load: layouts, gates, card, folder."""

from stscurate.publishing.folder import publish_folder

__all__ = ["publish_folder"]
