"""From a run to a data set that others load: layouts, gates, card, folder."""

from stscurate.publishing.folder import publish_folder
from stscurate.publishing.ids import place_of
from stscurate.publishing.rehydrated import publish_rehydrated, published_ids, published_templates
from stscurate.publishing.review import Review, review

__all__ = [
    "Review",
    "place_of",
    "publish_folder",
    "publish_rehydrated",
    "published_ids",
    "published_templates",
    "review",
]
