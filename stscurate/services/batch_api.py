"""OpenAI's batch API at one endpoint: files sent, batches made, looked at and read, through faults on the way.

https://platform.openai.com/docs/api-reference/batch. What is only asked for (a look, a file's content) is tried
again after any fault that may pass; making a batch isn't, before it is seen that the fault hasn't hidden one that was
made.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from stscurate.errors import InputError, ServiceError
from stscurate.services.chat import ChatEndpoint, without_password

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch

_TRIES = 12  # in a row that brought nothing
_LONGEST_PAUSE = 60.0  # seconds
_UPLOAD = 600.0  # seconds for a file of 200 MB
_PASSING = {408, 409, 425, 429}  # statuses after which it is tried again; and all of 500 and above
_NO_SUCH_PLACE = {404, 405, 501}
MARK = "stscurate"  # the key of a batch's metadata that says which of ours it is

Call = Callable[[], Any]


class Seen(NamedTuple):
    """How a batch stands. status: "validating", "in_progress", "completed", "failed", "expired", "cancelled", ...

    output, errors: files that hold its rows, where there are such. wrong: what its validation found, with its code.
    """

    id: str
    status: str
    output: str | None
    errors: str | None
    wrong: list[tuple[str, str]]
    done: int  # requests that have come to an end

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in ("completed", "failed", "expired", "cancelled")


class BatchApi:
    """The batch API at the address and with the key of an endpoint. first_pause: seconds, doubled up to a minute."""

    def __init__(
        self, endpoint: ChatEndpoint, *, first_pause: float = 1.0, sleep: Callable[[float], None] = time.sleep
    ):
        self._endpoint = endpoint
        self._first_pause = first_pause
        self._sleep = sleep

    def connect(self) -> AbstractContextManager["OpenAI"]:
        """A client without retries of its own; to be used as a context."""
        from openai import OpenAI

        url, headers = without_password(self._endpoint.base_url) if self._endpoint.base_url else (None, {})
        return OpenAI(
            api_key=self._endpoint.address[1],
            base_url=url,
            default_headers=headers,
            max_retries=0,
            timeout=self._endpoint.timeout,
        )

    def upload(self, client: "OpenAI", file: IO[bytes]) -> str:
        """Send a file of requests, and give back its id. InputError where the service has no files."""

        def call() -> str:
            file.seek(0)
            return client.files.create(file=("batch.jsonl", file), purpose="batch", timeout=_UPLOAD).id

        return str(self._tried(call, "files"))

    def make(self, client: "OpenAI", file: str, token: str) -> Seen:
        """Make a batch of an uploaded file, once: where a fault leaves open whether it was made, it is looked for."""
        tries = 0
        while True:
            try:
                made = client.batches.create(
                    input_file_id=file,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={MARK: token},
                )
                return _seen(made)
            except Exception as error:
                tries += 1
                self._pause(error, tries, "batches")
                if found := self.find(client, token):
                    return found

    def find(self, client: "OpenAI", token: str) -> Seen | None:
        """Our batch of that token, among all that the account has; None too where the service can't list them."""
        try:
            batches = self._tried(lambda: list(client.batches.list(limit=100)), "batches")
        except _NoBatchesError:
            return None
        return next((_seen(batch) for batch in batches if (batch.metadata or {}).get(MARK) == token), None)

    def look(self, client: "OpenAI", batch: str) -> Seen:
        """How a batch stands."""
        return _seen(self._tried(lambda: client.batches.retrieve(batch), f"batch {batch}"))

    def rows(self, client: "OpenAI", file: str) -> Iterator[dict[str, Any]]:
        """The rows of a file, when all of it has come as JSON lines. ServiceError where it never does."""
        with TemporaryFile() as content:
            self._tried(lambda: _fetch(client, file, content), f"file {file}")
            content.seek(0)
            yield from map(json.loads, content)

    def _tried(self, call: Call, what: str) -> Any:
        tries = 0
        while True:
            try:
                return call()
            except Exception as error:
                tries += 1
                self._pause(error, tries, what)

    def _pause(self, error: Exception, tries: int, what: str) -> None:
        """Wait, where the fault may pass; else raise what it means. what: is asked for."""
        import openai

        place = self._endpoint.place
        if isinstance(error, openai.APIStatusError):
            status, told = error.status_code, self._endpoint.told(error)
            if status in _NO_SUCH_PLACE and what in ("files", "batches"):
                raise _NoBatchesError(f"{place} has no batches ({status}: {told}): leave out --batch.") from None
            if status == 404:
                raise InputError(
                    f"{place} doesn't know {what}, which was sent there: use the key and the address that it was sent "
                    "with; to ask all anew, name another run folder (--out)."
                ) from None
            if final := self._endpoint.final(status, told):
                raise final from None
            if status < 500 and status not in _PASSING:
                raise ServiceError(
                    f"{place} refuses the batch ({status}: {told}): mend that, or leave out --batch."
                ) from None
            why = f"{status}: {told}"
        elif isinstance(error, openai.APIError | OSError | _BrokenError) or _of_transport(error):
            why = str(error) or type(error).__name__
        else:
            raise error
        if tries >= _TRIES:
            raise ServiceError(
                f"{place} doesn't answer about batches ({why}). Those that it has go on: the same command fetches them."
            ) from None
        self._sleep(min(self._first_pause * 2.0 ** (tries - 1), _LONGEST_PAUSE))


class _NoBatchesError(InputError):
    """The service has no batch API, or not this part of it."""


class _BrokenError(Exception):
    """A file that didn't come whole."""


def _fetch(client: "OpenAI", file: str, into: IO[bytes]) -> None:
    """A file's content, whole lines of JSON objects. They are split at \\n alone: texts may hold other breaks."""
    into.seek(0)
    into.truncate()
    with client.files.with_streaming_response.content(file) as response:
        for part in response.iter_bytes():
            into.write(part)
    into.seek(0)
    for number, line in enumerate(into, start=1):
        try:
            whole = isinstance(json.loads(line), dict)
        except ValueError:
            whole = False
        if not whole:
            raise _BrokenError(f"line {number} of file {file} is no JSON object")


def _of_transport(error: Exception) -> bool:
    """Whether it comes from the HTTP library below the client: a connection lost while a file is read."""
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2")


def _seen(batch: "Batch") -> Seen:
    found = (batch.errors.data if batch.errors else None) or []
    wrong = [
        (f"line {each.line}: {each.message}" if each.line else str(each.message), str(each.code)) for each in found
    ]
    counts = batch.request_counts
    done = counts.completed + counts.failed if counts else 0
    return Seen(batch.id, batch.status, batch.output_file_id or None, batch.error_file_id or None, wrong, done)
