"""What a run was told to leave out, and what is gone from GitHub: remembered without its words, so that nothing that
is kept, or fetched again, brings it back.

`tombstones.json` in the run folder names issues and repositories, and accounts by a hash, each with the reason. What
was once left out of a run stays out, also where a later call names no opt-out file; remove the file to begin anew.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stscurate.disk import write_json
from stscurate.errors import InputError
from stscurate.services.github import GitHub
from stscurate.sources.lists import LEFT_OUT, OptOut, hash_of

Place = tuple[str, int]

_NAME = "tombstones.json"
_OPTED_OUT = "opted out "
_OWNERS = ("author", "user")  # where the account of whoever wrote a text stands beside it
_STUB = ("__typename", "id", "number", "createdAt", "updatedAt", "repository")


@dataclass
class Tombstones:
    """opt_out: all that was ever to be left out. gone: what GitHub had, place -> why it has it no more."""

    opt_out: OptOut = OptOut()  # noqa: RUF009 - it can't be changed
    gone: dict[Place, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Tombstones":
        """Those of a run; none where it has none. InputError for a damaged file."""
        path = folder / _NAME
        if not path.exists():
            return cls()
        try:
            rows = json.loads(path.read_text("utf-8"))["left_out"]
            issues = {(row["repository"], row["number"]): row["reason"] for row in rows if "number" in row}
            return cls(
                OptOut(
                    accounts=frozenset(row["account"] for row in rows if "account" in row),
                    repositories=frozenset(row["repository"] for row in rows if row.keys() == {"repository", "reason"}),
                    issues=frozenset(place for place, reason in issues.items() if reason == "opted_out"),
                ),
                {place: reason for place, reason in issues.items() if reason != "opted_out"},
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            raise InputError(f"{path} isn't a list of tombstones: bring it back from a copy, or remove it.") from None

    @classmethod
    def begin(cls, folder: Path, opt_out: OptOut, github: GitHub | None = None) -> "Tombstones":
        """Those of a run, with opt_out among them. From now on `github` gives nothing of what is to be left out."""
        found = cls.read(folder)
        found.opt_out |= opt_out
        everything = found.opt_out
        if github:
            github.mend = lambda data: redacted(data, everything)
        return found

    def cleanse(self, folder: Path, github: GitHub) -> None:
        """Keep what was asked to be left out, and take it out of answers that were kept before it was."""
        if self._is_new(github):
            self.write(folder)
            github.kept.mend(github.mend)

    def end(self, github: GitHub) -> None:
        """Let go of answers that aren't in use, after a refresh or where more is left out than before.

        To be called before the stage is finished, so that a kill can't leave it undone.
        """
        is_new = self._is_new(github)
        github.kept.note(_OPTED_OUT + hash_of(self.opt_out), True)
        if github.kept.previous is not None or is_new:
            github.kept.drop_unused()

    def _is_new(self, github: GitHub) -> bool:
        return bool(self.opt_out) and not github.kept.has_note(_OPTED_OUT + hash_of(self.opt_out))

    def write(self, folder: Path) -> None:
        """Keep them, where there are any."""
        rows: list[dict[str, Any]] = [
            {"account": account, "reason": "opted_out"} for account in sorted(self.opt_out.all_accounts)
        ]
        rows += [{"repository": name, "reason": "opted_out"} for name in sorted(self.opt_out.repositories)]
        issues = {**self.gone, **dict.fromkeys(self.opt_out.issues, "opted_out")}
        rows += [
            {"repository": name, "number": number, "reason": why} for (name, number), why in sorted(issues.items())
        ]
        if rows or (folder / _NAME).exists():
            write_json(folder / _NAME, {"left_out": rows})

    def buried(self, repository: str) -> dict[int, str]:
        """Numbers of issues that GitHub has deleted, which is for good, and why they are gone."""
        there = {number: why for (name, number), why in self.gone.items() if name == repository.lower()}
        return {number: why for number, why in there.items() if why == "deleted"}

    def bury(self, found: Mapping[Place, str], alive: Iterable[Place]) -> None:
        """Add what is gone; what GitHub shows again, such as issues of a repository that was hidden, is no more."""
        for repository, number in alive:
            self.gone.pop((repository.lower(), number), None)
        self.gone |= {(repository.lower(), number): why for (repository, number), why in found.items()}


def redacted(value: Any, opt_out: OptOut) -> Any:
    """GitHub's answer without the words and names of what is to be left out.

    Of an issue its id, number and times are left; a comment, an event or a mention of an account has LEFT_OUT in the
    place of its name, and no body.
    """
    if isinstance(value, list):
        return [redacted(entry, opt_out) for entry in value]
    if not isinstance(value, dict):
        return value
    if opt_out.user(_login(value)):
        return {"__typename": "User", "login": LEFT_OUT}
    own = any(opt_out.user(_login(value.get(name))) for name in _OWNERS)
    if "number" in value and "title" in value and (own or opt_out.issue(_home(value), value["number"])):
        stub = {name: value[name] for name in _STUB if name in value}
        # of REST, only whether it is a pull request is ever asked
        kind = {"pull_request": True} if "pull_request" in value else {}
        return {**stub, **kind, "author": {"__typename": "User", "login": LEFT_OUT}}
    changed = {name: redacted(entry, opt_out) for name, entry in value.items()}
    return {**changed, "body": ""} if own and "body" in value else changed


def _login(value: Any) -> str | None:
    login = value.get("login") if isinstance(value, dict) else None
    if not isinstance(login, str):
        return None
    return f"{login}[bot]" if value.get("__typename") == "Bot" and not login.endswith("[bot]") else login


def _home(issue: Mapping[str, Any]) -> str:
    """The repository of an issue, as GraphQL or REST names it."""
    if "repository_url" in issue:
        return "/".join(str(issue["repository_url"]).split("/")[-2:])
    return str((issue.get("repository") or {}).get("nameWithOwner", ""))
