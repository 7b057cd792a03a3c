"""GitHub by GraphQL and REST: pages and nodes, asked again where that helps, each kept when it comes.

Answers are kept under all that shapes them but the size of a page, so that a page which came in pieces is found
again as it was: after a kill, at most the requests then under way are sent a second time.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self, TypeVar

import requests

from stscurate.errors import ServiceError
from stscurate.services.answers import Answers
from stscurate.services.github_http import MOST_AT_ONCE, AgainError, Channel, HeavyError
from stscurate.services.github_kept import Kept

TRIES = 8  # of a request that meets no limit; the pauses between them are 1, 2, 4, ... 30 seconds
LARGEST_PAGE = 100
_LONGEST_PAUSE = 30.0
_FINAL = {"NOT_FOUND", "FORBIDDEN", "UNPROCESSABLE"}  # errors that stay, however often asked: the value is null
_AS_VALUES = {200, 301, 302, 307, 308, 404, 410, 451}  # of REST

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Page(NamedTuple):
    """A REST answer: its data (None but for 200), the address of the next page if there is one, and the status."""

    data: Any
    next: str | None
    status: int


class GitHub:
    """One account's access to one API. answers: where pages are kept; without it nothing is.

    url: the API's address; GITHUB_API_URL, or https://api.github.com. collection: names what the kept answers
    belong to: another one asks anew; previous: the one that it follows. concurrency: requests under way, at most
    100. page_size: items asked for at once, at most 100. timeout: seconds for one try, with its whole body. clock
    (seconds of the epoch), sleep and session can be replaced.
    """

    def __init__(
        self,
        token: str,
        *,
        url: str | None = None,
        answers: Answers | None = None,
        collection: str = "",
        previous: str | None = None,
        concurrency: int = 8,
        page_size: int = LARGEST_PAGE,
        timeout: float = 60.0,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] | None = None,
        session: requests.Session | None = None,
    ):
        self.url = (url or os.environ.get("GITHUB_API_URL") or "https://api.github.com").rstrip("/")
        self.page_size = min(page_size, LARGEST_PAGE)
        self.concurrency = min(concurrency, MOST_AT_ONCE)
        self.clock = clock
        self.points = 0  # GraphQL points spent so far, as GitHub counts them
        self.heard: Callable[[], object] = lambda: None  # called after each answer to a query, by one thread at a time
        self.mend: Callable[[Any], Any] = lambda data: data  # what all data goes through before it is used or kept
        self.kept = Kept(answers, self.url, collection=collection, previous=previous)
        self._lock = threading.Lock()  # for the counters here
        self._costs: dict[str, int] = {}  # query -> points, as its last answer said
        self._sizes: dict[str, int] = {}  # query -> items to ask for at once
        self._channel = Channel(
            token, concurrency=self.concurrency, timeout=timeout, clock=clock, sleep=sleep, session=session
        )

    def __enter__(self) -> Self:
        """The client."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connections."""
        self._channel.close()

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._channel.sent

    @property
    def points_left(self) -> int | None:
        """GraphQL points left until the limit resets; None before the first answer."""
        return self._channel.pacers["graphql"].left

    @property
    def resets_in(self) -> float:
        """Seconds until the limit of points resets."""
        return self._channel.pacers["graphql"].resets_in

    def graphql(self, query: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The `data` of a query, kept. What isn't there, or isn't ours to see, is null in it, or makes it empty.

        InputError for a refused token; ServiceError once all tries failed, and where the query itself is refused.
        """
        variables = dict(variables or {})

        def attempt() -> dict[str, Any]:
            data, problems = self._post(query, variables)
            if problems:
                raise AgainError(_message(problems[0]))
            return data

        key = self.kept.key(query=query, variables=variables)
        return dict(self._found(key, lambda: self._tried(attempt)))

    def pages(
        self,
        query: str,
        variables: Mapping[str, Any],
        path: Sequence[str],
        *,
        after: str | None = None,
        updated: str | None = None,
        apart: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The pages of the connection at `path` of a query's data; the query has variables $first and $after.

        updated: the last change of what they belong to: an earlier collection's pages of that state are used again.
        apart: a query `nodes(ids: $ids)`: the nodes of the pages are kept as its answers.
        A path that leads to null ends it. ServiceError where hasNextPage comes with no cursor or an old one, every
        time it is asked: what was fetched until then is kept.
        """
        seen = {after}
        while True:
            page = self._page(query, {**variables, "after": after}, path, seen, updated, apart)
            if page is None:
                return
            yield page
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]
            seen.add(after)

    def nodes(
        self,
        query: str,
        ids: Iterable[str],
        *,
        updated: Mapping[str, str] | None = None,
        anew: Collection[str] = (),
    ) -> dict[str, dict[str, Any] | None]:
        """The nodes of a query `nodes(ids: $ids)`, each kept by itself; None where it is gone or isn't ours to see.

        updated: id -> its `updatedAt` now: what an earlier collection fetched of the same state is used again,
        but for the ids `anew`.
        """
        here = {node: self.kept.key(query=query, node=node) for node in dict.fromkeys(ids)}
        keys = {node: self.kept.node_key(query, node, updated[node]) for node in here} if updated is not None else here
        signs = {node: here[node] for node in anew} if updated is not None else {}  # of what was fetched anew
        known = self.kept.known([*keys.values(), *signs.values()])
        found = {node: known[key] for node, key in keys.items() if {key, signs.get(node, key)} <= known.keys()}
        missing = [node for node in keys if node not in found]
        chunks = [missing[at : at + self.page_size] for at in range(0, len(missing), self.page_size)]
        for part in self.map(lambda chunk: self._chunk(query, chunk, keys, signs), chunks):
            found |= part
        return {node: found[node] for node in keys}

    def rest(self, path: str, params: Mapping[str, str | int] | None = None) -> Page:
        """GET a path below the API's address, or the `next` of an earlier page. Redirects, 404 and 410 are values.

        What came with an ETag is asked for with it in later collections: unchanged, it costs no point.
        """
        params = dict(params or {})
        key = self.kept.key(path=path, params=params)
        return Page(*self._found(key, lambda: self._tried(lambda: self._get(path, params))))

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], *, at_once: int | None = None
    ) -> Iterator[_Result]:
        """The results of a function that asks, in order, at work on `at_once` items: as many as may be under way.

        More than those, and some have an answer to work on while others are under way.
        """
        if len(items) <= 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(min(at_once or self.concurrency, len(items))) as pool:
            try:
                yield from pool.map(function, items)
            except (Exception, KeyboardInterrupt) as error:
                self._channel.fail(error)
                pool.shutdown(cancel_futures=True)
                raise

    def _page(
        self,
        query: str,
        variables: dict[str, Any],
        path: Sequence[str],
        seen: set[str | None],
        updated: str | None,
        apart: str | None,
    ) -> dict[str, Any] | None:
        def attempt() -> dict[str, Any] | None:
            data, problems = self._sized(query, lambda size: {**variables, "first": size})
            if problems:
                raise AgainError(_message(problems[0]))
            page: dict[str, Any] | None = data
            for name in path:
                page = page and page.get(name)
            info = page["pageInfo"] if page else {}
            if info.get("hasNextPage") and info["endCursor"] in seen | {None}:
                fault = "no cursor to it" if info["endCursor"] is None else f"the old cursor {info['endCursor']}"
                raise AgainError(f"a page of {'.'.join(path)} that promises another gives {fault}")
            return page

        parts: dict[str, Any] = {"query": query, "variables": variables}
        key = self.kept.lasting_key(**parts, updated=updated) if updated else self.kept.key(**parts)
        known = self.kept.page(key, apart)
        if known:
            return known[0]
        page = self._tried(attempt)
        self.kept.keep_page(key, page, apart)
        return page

    def _chunk(self, query: str, ids: list[str], keys: Mapping[str, str], signs: Mapping[str, str]) -> dict[str, Any]:
        """The nodes of at most a page of ids. The good part of an answer is kept, the rest asked for again."""
        found: dict[str, Any] = {}

        def attempt() -> None:
            due = [node for node in ids if node not in found]
            data, problems = self._sized(query, lambda size: {"ids": due[:size]})
            bad = {problem["path"][1] if len(problem.get("path") or []) > 1 else None for problem in problems}
            if None in bad or not isinstance(data.get("nodes"), list):
                raise AgainError(_message(problems[0]) if problems else "an answer without nodes")
            good = {
                node: value for at, (node, value) in enumerate(zip(due, data["nodes"], strict=False)) if at not in bad
            }
            kept = {keys[node]: value for node, value in good.items()}
            self.kept.keep(kept | {signs[node]: True for node in good if node in signs})
            found.update(good)
            if problems:
                raise AgainError(_message(problems[0]))

        while len(found) < len(ids):
            self._tried(attempt)
        return found

    def _sized(self, query: str, variables: Callable[[int], dict[str, Any]]) -> tuple[dict[str, Any], list[Any]]:
        """Ask for as much at once as went through last: half after a failure, twice as much after a success."""
        size = self._sizes.get(query, self.page_size)
        try:
            answer = self._post(query, variables(size))
        except HeavyError:
            self._sizes[query] = max(size // 2, 1)
            raise
        self._sizes[query] = min(size * 2, self.page_size)
        return answer

    def _post(self, query: str, variables: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The data of one try, and the errors that may pass when asked again."""
        reply = self._channel.ask(
            "graphql",
            "POST",
            f"{self.url.removesuffix('/v3')}/graphql",  # on a company's own server they are /api/v3 and /api/graphql
            cost=self._costs.get(query, 1),
            json={"query": query, "variables": variables},
        )
        body = reply.body if isinstance(reply.body, dict) else {}
        if reply.status != 200:
            raise ServiceError(f"GitHub refuses a query ({reply.status}: {self._channel.told(body)}).")
        errors = [error for error in body.get("errors") or [] if isinstance(error, dict)]
        data = self.mend(body.get("data"))
        if not isinstance(data, dict):
            told = self._channel.told(errors[0] if errors else body)
            if "something went wrong" in told.lower() or "timeout" in told.lower():
                raise HeavyError(told)
            if errors and errors[0].get("type") in _FINAL:
                return {}, []
            if not errors:
                raise AgainError("an answer without data")
            raise ServiceError(f"GitHub refuses a query ({told}).")
        with self._lock:
            self._costs[query] = (data.get("rateLimit") or {}).get("cost", 1)
            self.points += self._costs[query]
            self.heard()
        return data, [error for error in errors if error.get("type") not in _FINAL]

    def _get(self, path: str, params: dict[str, str | int]) -> tuple[Any, str | None, int]:
        tagged = self.kept.lasting_key(path=path, params=params, kept_by="etag")
        tag, page = self.kept.known([tagged]).get(tagged) or (None, None)
        headers = {"If-None-Match": tag} if tag else {}
        url = path if path.startswith(f"{self.url}/") else f"{self.url}/{path.lstrip('/')}"
        reply = self._channel.ask("core", "GET", url, cost=1, headers=headers, params=params)
        if reply.status == 304 and page:
            return (*page,)
        if reply.status not in _AS_VALUES:
            raise ServiceError(f"GitHub refuses {path} ({reply.status}: {self._channel.told(reply.body)}).")
        link = requests.utils.parse_header_links(reply.headers.get("link", ""))
        following = next((str(found["url"]) for found in link if found.get("rel") == "next"), None)
        if following and not following.startswith(f"{self.url}/"):
            raise ServiceError(f"The next page of {path} is on another server: it isn't asked, for the token's sake.")
        result = (self.mend(reply.body) if reply.status == 200 else None, following, reply.status)
        if reply.status == 200 and "etag" in reply.headers:
            self.kept.keep({tagged: [reply.headers["etag"], result]})
        return result

    def _tried(self, attempt: Callable[[], _Result]) -> _Result:
        for tried in range(TRIES):
            try:
                return attempt()
            except AgainError as error:
                reason = error
            if tried < TRIES - 1:
                self._channel.pause(min(2.0**tried, _LONGEST_PAUSE))
        raise ServiceError(
            f"GitHub failed {TRIES} times at one request ({str(reason).rstrip('.')}). "
            "Run the same command later: what was fetched is kept."
        )

    def _found(self, key: str, fetch: Callable[[], Any]) -> Any:
        known = self.kept.known([key])
        if key in known:
            return known[key]
        value = fetch()
        self.kept.keep({key: value})
        return value


def _message(problem: Mapping[str, Any]) -> str:
    return " ".join(str(problem.get("message") or problem.get("type") or "an error without a message").split())[:200]
