"""Requests to GitHub's API under its limits: sent when they may be, and what their failures mean."""

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import requests

from stscurate.errors import InputError, ServiceError
from stscurate.services.pacing import HOUR, Pacer, demanded_pause

LIMITED_TRIES = 6  # of one request that meets a limit; pauses of 60, 120, ... seconds where no time is named
MOST_AT_ONCE = 100  # GitHub's own bound on requests under way
_FIRST_PAUSE = 60.0  # seconds
_POINTS_A_MINUTE = {"graphql": 2_000, "core": 900}
_PART = 65_536  # bytes read at a time
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "stscurate",
    "X-GitHub-Api-Version": "2022-11-28",
}
_LIMIT_WORDS = re.compile(r"rate limit|abuse|too many requests|submitted too quickly", re.IGNORECASE)
_NOBODY = re.compile("NewConnectionError|NameResolutionError")
_KEPT = "Run the same command again then: what was fetched is kept."


class AgainError(Exception):
    """A try failed and may be repeated."""


class HeavyError(AgainError):
    """The server gave up on what was asked at once; less may pass."""


class Reply(NamedTuple):
    """Status, headers and JSON body (None where it has none)."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Channel:
    """The way to one API for one account; shared by all threads that ask.

    clock: seconds of the epoch. sleep: waits so many seconds; where None, waits that `stop` cuts short.
    """

    def __init__(
        self,
        token: str,
        *,
        concurrency: int,
        timeout: float,
        clock: Callable[[], float],
        sleep: Callable[[float], object] | None,
        session: requests.Session | None,
    ):
        self.sent = 0  # requests so far
        self._token = token
        self._timeout = timeout
        self._clock = clock
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._sleep = sleep or self._stopping.wait
        self._own = session is None
        self._session = session or _session(concurrency)
        self._under_way = threading.Semaphore(concurrency)
        self._reached = False
        self.pacers = {
            name: Pacer(per_minute=points, clock=clock, sleep=self.pause) for name, points in _POINTS_A_MINUTE.items()
        }

    def ask(self, resource: str, method: str, url: str, *, cost: int, **request: Any) -> Reply:
        """Send a request of `cost` points against the limits of `resource` ("graphql" or "core").

        Waits out every limit, up to LIMITED_TRIES times. AgainError for what may pass another time, HeavyError for
        502 and 504; InputError for a refused token; ServiceError for a limit that doesn't end. All other answers
        come back as they are.
        """
        for tried in range(LIMITED_TRIES):
            with self._under_way:
                self.pacers[resource].wait(cost)
                self.pause(0)
                status, headers, content = self._try(method, url, request)
            reply = Reply(status, headers, _parsed(status, content))
            self.pacers[resource].learn(reply.headers)
            if not _is_limit(reply):
                return self._sound(reply)
            pause = demanded_pause(reply.headers, self._clock())
            pause = min(_FIRST_PAUSE * 2**tried, HOUR) if pause is None else pause
            for pacer in self.pacers.values():
                pacer.hold(pause)
        raise ServiceError(
            f"GitHub's limit held after {LIMITED_TRIES} waits ({self.told(reply.body)}); it asks for {pause:.0f} "
            f"seconds more. {_KEPT}"
        )

    def pause(self, seconds: float) -> None:
        """Wait, unless the work has failed elsewhere meanwhile: then that failure is raised here too."""
        if seconds > 0:
            self._sleep(seconds)
        if self._failure:
            raise self._failure

    def fail(self, error: BaseException) -> None:
        """Let no thread go on; those that wait raise `error`."""
        self._failure = self._failure or error
        self._stopping.set()

    def close(self) -> None:
        """Close the connections."""
        self._stopping.set()
        if self._own:
            self._session.close()

    def told(self, body: Any) -> str:
        """What the server said, on one line and without the token."""
        message = body.get("message") if isinstance(body, dict) else body
        line = " ".join(str(message or "no message").split())
        if len(self._token) > 8:  # no token of GitHub's is shorter
            line = line.replace(self._token, "***")
        return line[:200].rstrip(".")

    def _try(self, method: str, url: str, request: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        headers = {**_HEADERS, **request.get("headers", {})}
        ends = time.monotonic() + self._timeout
        try:
            # Redirects are answers here, and following one would take the token along.
            with self._session.request(
                method,
                url,
                auth=self._sign,
                headers=headers,
                params=request.get("params"),
                json=request.get("json"),
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            ) as response:
                content = bytearray()
                for part in response.iter_content(_PART):
                    content += part
                    if time.monotonic() > ends:  # the library's timeout begins anew with each byte
                        raise AgainError("timeout")
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema):
            raise InputError(f"GITHUB_API_URL {url} is no address: give it as in https://api.github.com.") from None
        except requests.Timeout:
            raise AgainError("timeout") from None
        except requests.RequestException as error:
            if not self._reached and _NOBODY.search(repr(error)):
                raise ServiceError(
                    f"Nobody answers at {url}: check the network, and GITHUB_API_URL where that is set."
                ) from None
            raise AgainError("lost connection") from None
        finally:
            self.sent += 1
        self._reached = True
        return response.status_code, response.headers, bytes(content)

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """As `auth` rather than a header: so the library never puts a password from .netrc in its place."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _sound(self, reply: Reply) -> Reply:
        if reply.status == 401:
            raise InputError(
                f"GitHub refuses the token ({self.told(reply.body)}): set GITHUB_TOKEN to a valid one, "
                "or log in by `gh auth login`."
            )
        if reply.status in (502, 504):
            raise HeavyError(f"HTTP {reply.status}")
        if reply.status >= 500 or reply.status == 408:
            raise AgainError(f"HTTP {reply.status}")
        if reply.status == 403:
            raise ServiceError(f"GitHub forbids what is asked ({self.told(reply.body)}): check the token's rights.")
        if reply.status == 200 and reply.body is None:
            raise AgainError("an answer that isn't whole JSON")
        return reply


def github_token() -> str:
    """GITHUB_TOKEN, or what `gh auth token` prints. InputError where there is neither."""
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        try:
            asked = subprocess.run(["gh", "auth", "token"], capture_output=True, text=True, timeout=20, check=False)
            token = asked.stdout.strip() if asked.returncode == 0 else ""
        except (OSError, subprocess.TimeoutExpired):
            token = ""
    if not token:
        raise InputError("GitHub asks for a token: set GITHUB_TOKEN, or log in by `gh auth login`.")
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise InputError("GITHUB_TOKEN holds characters that no token has: set it anew, without spaces or quotes.")
    return token


def _is_limit(reply: Reply) -> bool:
    """A limit comes as 429, as 403 with or without headers, or as 200 with an error in the body."""
    body = reply.body if isinstance(reply.body, dict) else {}
    if reply.status == 429:
        return True
    if reply.status == 403:
        said = bool(_LIMIT_WORDS.search(str(body.get("message", ""))))
        return said or "retry-after" in reply.headers or reply.headers.get("x-ratelimit-remaining") == "0"
    errors = body.get("errors") if reply.status == 200 else None
    return isinstance(errors, list) and any(
        isinstance(error, dict) and error.get("type") in ("RATE_LIMITED", "RATE_LIMIT") for error in errors
    )


def _parsed(status: int, content: bytes) -> Any:
    """The JSON of a body; None for an empty, cut or other one."""
    if status == 304 or not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return None


def _session(concurrency: int) -> requests.Session:
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=concurrency)
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)
    return session
