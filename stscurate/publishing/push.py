"""The push: one commit upon what is there, as often as it takes until what is there is what was to be sent.

Nothing is remembered of an attempt. Each begins with what the Hub holds now: after an answer that was lost, a rival's
commit, a limit or a failure, the difference is computed again, and where there is none left, that is the end.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from stscurate.errors import InputError, ServiceError
from stscurate.publishing.card import read_front_matter
from stscurate.publishing.checksums import CARD, CHECKSUMS, read_checksums
from stscurate.publishing.gate_schema import columns_of, schema_changes
from stscurate.publishing.gates import Found
from stscurate.publishing.merging import merge
from stscurate.publishing.outgoing import Difference, Outgoing, OutgoingFile, difference
from stscurate.services.hub import MAIN, Head, HubRepository
from stscurate.services.hub_errors import HubBusyError, HubMovedError

ATTEMPTS = 8
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 300.0  # seconds
_SHOWN = 16  # digits of the content hash in a title

T = TypeVar("T")
Wait = Callable[[float], None]
Confirm = Callable[[str], bool]


@dataclass(frozen=True)
class Options:
    """How to push. direct: onto `main`, not by a pull request; public: make a new repository public, and know it;
    schema: columns and classes may be others than those that are published.
    """

    title: str
    direct: bool = False
    public: bool = False
    schema: bool = False


@dataclass(frozen=True)
class Pushed:
    """Where the content stands: its commit, in which pull request if in one, and what this call had to do for it."""

    commit: str
    card: OutgoingFile  # as it stands there
    base: str  # the commit of `main` then
    pull_request: int | None = None
    sent: Difference | None = None  # None where all was there already
    created: bool = False


def patiently(call: Callable[[], T], wait: Wait) -> T:
    """What the call gives, tried again where the Hub is busy."""
    pause = _FIRST_WAIT
    for _ in range(ATTEMPTS - 1):
        try:
            return call()
        except HubBusyError as error:
            wait(min(pause if error.wait is None else error.wait, _LONGEST_WAIT))
            pause *= 2
    return call()


def push(
    repository: HubRepository,
    outgoing: Outgoing,
    options: Options,
    *,
    confirm: Confirm,
    wait: Wait = time.sleep,
) -> Pushed:
    """Make the repository hold `outgoing`, and say in which commit it does.

    A repository that isn't there, or is empty, is written directly; any other by a pull request unless
    options.direct. confirm: asked before anything is written that everybody can read. InputError where that is
    refused or the token lacks the right; ServiceError where the Hub keeps failing.
    """
    attempt = _Attempt(repository, outgoing, options, confirm)
    pause = _FIRST_WAIT
    for number in range(ATTEMPTS):
        try:
            return attempt.go()
        except HubMovedError as error:
            problem: ServiceError = error  # read again at once, but not for ever
        except HubBusyError as error:
            problem = error
            if number < ATTEMPTS - 1:
                wait(min(pause if error.wait is None else error.wait, _LONGEST_WAIT))
                pause *= 2
    raise ServiceError(f"{problem} It was tried {ATTEMPTS} times; what was sent is kept there.")


class _Attempt:
    """One try, and what earlier tries of this call have settled."""

    def __init__(self, repository: HubRepository, outgoing: Outgoing, options: Options, confirm: Confirm):
        self.repository = repository
        self.outgoing = outgoing
        self.options = options
        self.confirm = confirm
        self.confirmed = False
        self.created = False
        self.sent: Difference | None = None
        self.base = ""

    def go(self) -> Pushed:
        head = self.repository.head()
        if head is None:
            self._create()
            head = self.repository.head()
            if head is None:
                raise HubMovedError(f"{self.repository.name} was made and isn't there.")
        self.base = head.commit
        card, found = compare(self.repository, self.outgoing, head)
        if not found:
            return self._done(head.commit, card)
        if self.options.direct or is_empty(head):
            return self._commit(head, card, found)
        number = open_pull_request(self.repository, self.outgoing)
        if number is None:
            return self._commit(head, card, found, pull_request=True)
        head = self.repository.head(f"refs/pr/{number}")
        if head is None:
            raise HubMovedError(f"{self.repository.name} is gone.")
        card, found = compare(self.repository, self.outgoing, head)
        if not found:
            return self._done(head.commit, card, number)
        return self._commit(head, card, found, number)

    def _commit(
        self, head: Head, card: OutgoingFile, found: Difference, number: int | None = None, pull_request: bool = False
    ) -> Pushed:
        if found.schema and not self.options.schema:
            raise InputError(f"{self.repository.name}: {Found.changes(found.schema).refusal()}")
        if not head.private:
            self._ask(f"{self.repository.address} is public: everybody can read what is pushed there.")
        self.sent = found
        made = self.repository.commit(
            found.additions,
            found.removed,
            parent=head.commit,
            title=title_of(self.outgoing, self.options),
            revision=MAIN if number is None else f"refs/pr/{number}",
            pull_request=pull_request,
        )
        if number is None and not pull_request:
            self.base = made.commit
        return self._done(made.commit, card, number or made.pull_request)

    def _done(self, commit: str, card: OutgoingFile, number: int | None = None) -> Pushed:
        return Pushed(commit, card, self.base, number, self.sent, self.created)

    def _create(self) -> None:
        other = {"dataset": "model", "model": "dataset"}[self.repository.kind]
        if self.repository.head(kind=other) is not None:
            kinds = {"dataset": "data set", "model": "model"}
            raise InputError(
                f"{self.repository.name} is a {kinds[other]}, and you publish a {kinds[self.repository.kind]}: name "
                "another repository, or make an empty one of that name first."
            )
        if self.options.public:
            self._ask(f"{self.repository.address} will be public: everybody can read what is pushed there.")
        self.repository.create(private=not self.options.public)
        self.created = True

    def _ask(self, what: str) -> None:
        if not self.confirmed and not self.confirm(what):
            raise InputError(f"{what} Nothing was pushed: say --public (or --yes) if that is meant.")
        self.confirmed = True


def compare(repository: HubRepository, outgoing: Outgoing, head: Head) -> tuple[OutgoingFile, Difference]:
    """The card as it is to stand in that revision, and what has to happen there: none to two small reads."""
    card = outgoing.card_file
    schema: list[str] = []
    if CARD in head.files and not card.is_there(head.files[CARD]):
        try:
            there = repository.read(CARD, head.commit).decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{repository.name}: its {CARD} isn't UTF-8: mend it, or remove it there.") from None
        card = OutgoingFile.of_bytes(CARD, merge(there, outgoing.card).encode())
        schema = list(schema_changes(_matter(there), columns_of(_matter(outgoing.card))))
    ours: list[str] = []
    sums = head.files.get(CHECKSUMS)
    foreign = head.files.keys() - outgoing.files.keys() - {CARD, ".gitattributes"}
    if sums and foreign and not outgoing.files[CHECKSUMS].is_there(sums):
        ours = list(read_checksums(repository.read(CHECKSUMS, head.commit)))
    return card, replace(difference(outgoing, card, head, ours), schema=schema)


def published_matter(repository: HubRepository, wait: Wait = time.sleep) -> Mapping[str, Any] | None:
    """The YAML of the card on `main`, by two reads; None without a repository or a card."""
    head = patiently(repository.head, wait)
    if head is None or CARD not in head.files:
        return None
    return _matter(patiently(lambda: repository.read(CARD, head.commit), wait).decode("utf-8", errors="replace"))


def _matter(card: str) -> Mapping[str, Any]:
    """The YAML of a card; nothing where it can't be read."""
    try:
        return read_front_matter(card)
    except InputError:
        return {}


def open_pull_request(repository: HubRepository, outgoing: Outgoing) -> int | None:
    """The number of the pull request that is open with this content."""
    mark = _mark(outgoing)
    return next((number for number, title in sorted(repository.pull_requests().items()) if mark in title), None)


def title_of(outgoing: Outgoing, options: Options) -> str:
    """The commit's title, by which a pull request is found again."""
    return f"{options.title} {_mark(outgoing)}"


def is_empty(head: Head) -> bool:
    """Whether nobody has put anything there yet."""
    return head.files.keys() <= {".gitattributes"}


def _mark(outgoing: Outgoing) -> str:
    return f"[content {outgoing.content[:_SHOWN]}]"
