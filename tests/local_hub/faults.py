"""What can go wrong: a fault stands in for the answer to a request, and may let the true one happen first."""

from collections.abc import Callable

from tests.local_hub.answers import Answer, Refused

Answering = Callable[[], Answer]
Fault = Callable[[Answering], Answer]


def status(code: int, *, retry_after: int | None = None, error: str = "", message: str = "") -> Fault:
    """The request isn't done; seconds in Retry-After, X-Error-Code."""

    def fault(answer: Answering) -> Answer:
        refused = Refused(code, error, message or f"status {code}").answer
        if retry_after is not None:
            refused.headers["Retry-After"] = str(retry_after)
        return refused

    return fault


def drop() -> Fault:
    """The connection is closed, and nothing was done."""
    return lambda answer: Answer(cut=True)


def lose() -> Fault:
    """The request is done, and the connection closed before anything is said."""

    def fault(answer: Answering) -> Answer:
        answer()
        return Answer(cut=True)

    return fault


def meanwhile(change: Callable[[], object]) -> Fault:
    """Somebody else is quicker; then the request is answered as it has to be."""

    def fault(answer: Answering) -> Answer:
        change()
        return answer()

    return fault
