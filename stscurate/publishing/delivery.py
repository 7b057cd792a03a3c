"""From files that are ready to a repository that holds them, checked and tagged; and finding that it does already."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stscurate.disk import write_json
from stscurate.errors import InputError, ServiceError
from stscurate.progress import Progress, silent
from stscurate.publishing.outgoing import Difference, Outgoing, difference
from stscurate.publishing.push import Confirm, Options, Pushed, Wait, compare, patiently, push
from stscurate.publishing.verify import Reload, reload
from stscurate.services.hub import Head, HubRepository
from stscurate.services.hub_errors import HubMissingError, HubMovedError

_KNOWN = ".hub.json"  # hidden: it isn't a part of the set or the model


@dataclass(frozen=True)
class Delivered:
    """Where it lies. rows: compared after it was read back; fresh: this call did something."""

    address: str
    commit: str
    pull_request: int | None
    tag: str | None
    rows: int
    created: bool = False
    sent: Difference | None = None
    fresh: bool = True

    @property
    def place(self) -> str:
        """The page to look at."""
        return f"{self.address}/discussions/{self.pull_request}" if self.pull_request else self.address


@dataclass(frozen=True)
class _Known:
    """What was found right, and needn't be read back again. base: the commit of `main` then."""

    content: str
    commit: str
    base: str
    pull_request: int | None
    rows: int
    tag: str | None = None


def check_name(name: str) -> None:
    """InputError unless it looks like OWNER/NAME."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    if name.count("/") != 1:
        raise InputError(
            f"{name!r:.80} is no repository: name it as OWNER/NAME, with your name on the Hub before the /."
        )
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise InputError(
            f"{name!r:.80} can't be the name of a repository: letters, digits and - _ . are allowed."
        ) from None


def check_token(repository: HubRepository) -> None:
    """InputError where nobody is named who could push there."""
    if repository.token is None:
        raise InputError(
            "There is no token for the Hub: set HF_TOKEN, or run `hf auth login`, with one that may write."
        )


def refuse(what: str) -> bool:
    """Nobody to ask."""
    return False


def deliver(
    repository: HubRepository,
    outgoing: Outgoing,
    folder: Path,
    options: Options,
    *,
    tag: str | None = None,
    confirm: Confirm = refuse,
    reload: Reload = reload,
    wait: Wait = time.sleep,
    progress: Progress = silent,
) -> Delivered:
    """Push, read back and compare, and only then tag. The same again, with nothing changed, is one or two reads.

    folder: where the files lie; what is known of the repository is kept there in a hidden file. A pull request is
    tagged by the same call once it is merged. InputError where there is no token, the tag names something else, or as
    `push`; ServiceError where what arrived isn't what was sent.
    """
    check_token(repository)
    known = _read_known(folder, repository)
    if known and known.content == outgoing.content:
        found = _finished(repository, outgoing, known, tag, wait)
        if found:
            _keep_known(folder, repository, found)
            return _told(repository, found, fresh=False)
    if tag:
        _check_tag(repository, outgoing, tag, wait)
    progress("push", 0, 3)
    pushed = push(repository, outgoing, options, confirm=confirm, wait=wait)
    progress("read back", 1, 3)
    if known and (known.content, known.commit) == (outgoing.content, pushed.commit):
        rows = known.rows
    else:
        _check_listing(repository, outgoing, pushed, wait)
        rows = reload(repository, pushed.commit, outgoing, folder)
    found = _Known(outgoing.content, pushed.commit, pushed.base, pushed.pull_request, rows)
    _keep_known(folder, repository, found)
    if tag and pushed.pull_request is None:
        progress("tag", 2, 3)
        found = _Known(**{**asdict(found), "commit": _tag(repository, outgoing, tag, pushed.commit, wait), "tag": tag})
        _keep_known(folder, repository, found)
    return _told(repository, found, created=pushed.created, sent=pushed.sent)


def _finished(
    repository: HubRepository, outgoing: Outgoing, known: _Known, tag: str | None, wait: Wait
) -> _Known | None:
    """The same, if nothing is left to do: `main` is where it was, or what others did there isn't about our files."""
    head = patiently(repository.head, wait)
    if head is None:
        return None
    if known.pull_request:
        is_open = head.commit == known.base and known.pull_request in patiently(repository.pull_requests, wait)
        return known if is_open else None
    if tag not in (None, known.tag) or (head.commit != known.base and compare(repository, outgoing, head)[1]):
        return None
    return _Known(**{**asdict(known), "base": head.commit})


def _check_listing(repository: HubRepository, outgoing: Outgoing, pushed: Pushed, wait: Wait) -> None:
    """The Hub's own hashes of what it holds."""
    head = patiently(lambda: repository.head(pushed.commit), wait)
    left = difference(outgoing, pushed.card, head, []) if head else None
    if left is None or left:
        names = ", ".join(left.additions)[:200] if left else "all of it"
        raise ServiceError(
            f"Commit {pushed.commit} of {repository.name} lacks what was sent ({names}). Run the same command again."
        )


def _check_tag(repository: HubRepository, outgoing: Outgoing, tag: str, wait: Wait) -> None:
    """InputError where the tag is there and names another content."""
    tags: Mapping[str, str] = {}
    with suppress(HubMissingError):
        tags = patiently(repository.tags, wait)
    if tag in tags and not _holds(repository, outgoing, tags[tag], wait):
        raise InputError(
            f"{repository.name} has a tag {tag} already, for another content (commit {tags[tag]}): choose another."
        )


def _holds(repository: HubRepository, outgoing: Outgoing, commit: str, wait: Wait) -> bool:
    head: Head | None = patiently(lambda: repository.head(commit), wait)
    return head is not None and not compare(repository, outgoing, head)[1]


def _tag(repository: HubRepository, outgoing: Outgoing, tag: str, commit: str, wait: Wait) -> str:
    """Tag the commit; the commit that has the tag, which is an earlier one where that has the same content."""
    there = patiently(repository.tags, wait).get(tag)
    if there is None:
        with suppress(HubMovedError):  # an answer that was lost, or a rival
            patiently(lambda: repository.tag(tag, commit), wait)
            return commit
        there = patiently(repository.tags, wait).get(tag)
    if there is None or (there != commit and not _holds(repository, outgoing, there, wait)):
        raise InputError(f"{repository.name} has a tag {tag} by now, for another content: choose another.")
    return there


def _told(
    repository: HubRepository,
    known: _Known,
    *,
    created: bool = False,
    sent: Difference | None = None,
    fresh: bool = True,
) -> Delivered:
    return Delivered(repository.address, known.commit, known.pull_request, known.tag, known.rows, created, sent, fresh)


def _read_known(folder: Path, repository: HubRepository) -> _Known | None:
    """What was kept of that repository, if it can be read."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        return _Known(**json.loads((folder / _KNOWN).read_text("utf-8"))[repository.key])
    return None


def _keep_known(folder: Path, repository: HubRepository, known: _Known) -> None:
    kept: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        kept = json.loads((folder / _KNOWN).read_text("utf-8"))
    write_json(folder / _KNOWN, {**kept, repository.key: asdict(known)})
