"""What GitHub answered, kept under all that shapes it, found again after a kill, and let go of when it has to be."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stscurate.services.answers import Answers, answer_key

Page = dict[str, Any]

_PAGE, _NOTE = "page", "note"


class Kept:
    """The answers of one API. answers: where they lie; without it nothing is kept.

    collection: names what an answer belongs to, where it isn't one that lasts: another collection asks anew.
    previous: the collection whose notes are read. Used by many threads.
    """

    def __init__(self, answers: Answers | None, url: str, *, collection: str = "", previous: str | None = None):
        self.collection = collection
        self.previous = previous
        self._answers = answers
        self._url = url
        self._lock = threading.Lock()  # for the one connection to the file
        self._used: set[str] = set()

    def key(self, **parts: Any) -> str:
        """The key of an answer that holds for this collection."""
        return answer_key(url=self._url, collection=self.collection, **parts)

    def lasting_key(self, **parts: Any) -> str:
        """The key of an answer that holds for all, since its parts say of which state it is."""
        return answer_key(url=self._url, **parts)

    def known(self, keys: Iterable[str]) -> dict[str, Any]:
        """key -> answer of those that are there."""
        if self._answers is None:
            return {}
        with self._lock:
            found = self._answers.get(keys)
            self._used.update(found)
        return {key: json.loads(value) for key, value in found.items()}

    def keep(self, values: Mapping[str, Any]) -> None:
        """Keep answers, all or none of them, in the place of older ones."""
        self._put(_PAGE, values)

    def node_key(self, query: str, node: str, updated: str) -> str:
        """The key of what `query` gives of a node in the state that it has since `updated`."""
        return self.lasting_key(query=query, node=node, updated=updated)

    def keep_page(self, key: str, page: Page | None, apart: str | None) -> None:
        """Keep a page of a connection; `apart`: its nodes by themselves, as answers of that query."""
        if not page or not apart:
            self.keep({key: page})
            return
        nodes = [node for node in page["nodes"] or [] if node and "id" in node]
        places = [[node["id"], node["updatedAt"]] for node in nodes]
        by_themselves = {self.node_key(apart, *place): node for place, node in zip(places, nodes, strict=True)}
        self.keep({key: {**page, "nodes": places}, **by_themselves})

    def page(self, key: str, apart: str | None) -> tuple[Page | None] | None:
        """The page that was kept, in a tuple; None where it, or one of its nodes, isn't there."""
        found = self.known([key])
        if key not in found or not found[key] or not apart:
            return (found[key],) if key in found else None
        page = found[key]
        keys = [self.node_key(apart, *place) for place in page["nodes"]]
        known = self.known(keys)
        return ({**page, "nodes": [known[key] for key in keys]},) if known.keys() >= set(keys) else None

    def note(self, name: str, value: Any) -> None:
        """Keep for the next collection what it has to know of this one; no text and no name of a person."""
        self._put(_NOTE, {self.key(note=name): value})

    def has_note(self, name: str) -> bool:
        """Whether this collection has that note."""
        return bool(self.known([self.key(note=name)]))

    def recall(self, name: str) -> Any:
        """The note of the previous collection; None where there is none."""
        if self.previous is None:
            return None
        key = answer_key(url=self._url, collection=self.previous, note=name)
        return self.known([key]).get(key)

    def mend(self, change: Callable[[Any], Any]) -> None:
        """Put what `change` gives in the place of every kept answer that it changes."""
        if self._answers is None:
            return
        with self._lock:
            for key, value in self._answers.items(_PAGE):
                old = json.loads(value)
                new = change(old)
                if new != old:
                    self._answers.put(_PAGE, {key: json.dumps(new).encode()})
            self._answers.seal()

    def drop_unused(self) -> None:
        """Delete for good what this collection has neither asked nor found again."""
        if self._answers is None:
            return
        with self._lock:
            self._answers.delete((self._answers.keys(_PAGE) | self._answers.keys(_NOTE)) - self._used)

    def _put(self, kind: str, values: Mapping[str, Any]) -> None:
        if self._answers is not None and values:
            with self._lock:
                self._answers.put(kind, {key: json.dumps(value).encode() for key, value in values.items()})
                self._used.update(values)
