"""What the Hub's client raises, as errors of ours: what to mend, what to try again, and never a token in them."""

import re
from collections.abc import Iterator

from stscurate.errors import InputError, ServiceError, StscurateError, first_line

# The transport's exceptions by their names: which library the client stands on changes with its version.
_NETWORK = {"TransportError", "TimeoutException", "NetworkError", "ProtocolError"}
_AWAY = {"ConnectError", "ConnectTimeout", "UnsupportedProtocol"}


class HubBusyError(ServiceError):
    """The Hub, or the way to it, failed in a way that passes; `wait` is how many seconds it asks to be left alone."""

    def __init__(self, message: str, wait: float | None = None):
        super().__init__(message)
        self.wait = wait


class HubMovedError(ServiceError):
    """What was asked for no longer fits what is there: somebody else was quicker."""


class HubMissingError(HubMovedError):
    """There is no such repository (any more), or none that this token may see."""


def translated(
    error: Exception, what: str, endpoint: str, *, token: str | None, reached: bool = True
) -> StscurateError:
    """The error to raise instead. what: "write to me/set"; reached: the Hub has answered something before."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    chain = list(_chain(error))
    if any(isinstance(found, OfflineModeIsEnabled) for found in chain):
        return InputError(f"Can't {what}: HF_HUB_OFFLINE is set. Unset it.")
    if any(isinstance(found, HFValidationError) for found in chain):
        return InputError(f"Can't {what}: that is no name of a repository. Write it as OWNER/NAME.")
    for found in chain:
        if isinstance(found, HfHubHTTPError) and found.response is not None:
            return _answered(found, what, token)
    names = {kind.__name__ for found in chain for kind in type(found).__mro__}
    if names & _AWAY and not reached:
        return ServiceError(f"The Hub at {endpoint} can't be reached: check the connection and HF_ENDPOINT.")
    if names & _NETWORK or names & {"ConnectionError", "TimeoutError"}:
        return HubBusyError(f"The connection to the Hub at {endpoint} broke off while asking to {what}.")
    return ServiceError(f"Can't {what}: {_without(token, first_line(error))} ({type(error).__name__}).")


def _answered(error: Exception, what: str, token: str | None) -> StscurateError:
    """By the status of the answer. error: a HfHubHTTPError."""
    from huggingface_hub.errors import RepositoryNotFoundError

    response = getattr(error, "response")  # noqa: B009 - typed without its class, which is imported late
    status = response.status_code
    code = response.headers.get("X-Error-Code")
    said = _without(token, first_line(Exception(getattr(error, "server_message", None) or "")))
    told = f" ({said})" if said else ""
    if code == "RepoNotFound" or isinstance(error, RepositoryNotFoundError):
        return HubMissingError(f"Can't {what}: there is no such repository, or none that this token may see.")
    if code in ("RevisionNotFound", "EntryNotFound") or status in (409, 412):
        return HubMovedError(f"Can't {what}: it has changed meanwhile{told}.")
    if status == 401:
        return InputError(
            f"Can't {what}: the Hub doesn't take this token, or there is none. Set HF_TOKEN to one that may write, or "
            "run `hf auth login`."
        )
    if status == 403:
        return InputError(
            f"Can't {what}: the token has no right to{told}. Use one that may write there, or a name of your own."
        )
    if status == 429 or status >= 500:
        why = "has had too many requests" if status == 429 else f"failed (status {status})"
        return HubBusyError(f"Can't {what}: the Hub {why}. Run the same command later.", _seconds(response.headers))
    return ServiceError(f"Can't {what}: the Hub refuses it with status {status}{told}.")


def _seconds(headers: object) -> float | None:
    """What Retry-After, or else the t= of RateLimit, asks to wait."""
    get = getattr(headers, "get")  # noqa: B009 - any library's headers
    found = re.fullmatch(r"\s*(\d+)\s*", get("Retry-After") or "") or re.search(r";\s*t=(\d+)", get("RateLimit") or "")
    return float(found[1]) if found else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it came from: uploads wrap what their threads raise."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _without(token: str | None, text: str) -> str:
    return text.replace(token, "***") if token else text
