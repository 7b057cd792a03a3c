"""The two lists that a collection from GitHub is told by: which repositories, and what is to be left out."""

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stscurate.errors import InputError
from stscurate.files import open_text, reading

LEFT_OUT = "left out"  # in the place of the name of an account that is to be left out; no login has a space
_USUAL_LABELS = ("duplicate",)
_NAME = re.compile(r"(?:https://github\.com/)?([A-Za-z\d][A-Za-z\d-]{0,38}/[\w.-]{1,100}?)(?:\.git)?/?", re.ASCII)
_ISSUE = re.compile(
    r"(?:https://github\.com/)?([A-Za-z\d][A-Za-z\d-]*/[\w.-]+)(?:#|/issues/)([1-9]\d*)", re.ASCII | re.IGNORECASE
)
_USER = re.compile(r"@?([A-Za-z\d](?:[A-Za-z\d_-]*[A-Za-z\d])?(?:\[bot\])?)", re.ASCII)


@dataclass(frozen=True)
class Listed:
    """A repository to collect from, "owner/name", and the labels that its maintainers put on duplicates.

    licence: SPDX expression of its code's. reserve: it stands by for one that drops out.
    """

    name: str
    labels: tuple[str, ...]
    licence: str | None = None
    reserve: bool = False


def account_of(login: str) -> str:
    """A hash that stands for a login where that mustn't be written down."""
    return hashlib.sha256(login.lower().encode()).hexdigest()


@dataclass(frozen=True)
class OptOut:
    """What nothing is to be collected of, all in lower case; accounts: users by `account_of`."""

    users: frozenset[str] = frozenset()
    repositories: frozenset[str] = frozenset()
    issues: frozenset[tuple[str, int]] = frozenset()
    accounts: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self.users or self.repositories or self.issues or self.accounts)

    def __or__(self, other: "OptOut") -> "OptOut":
        """What either leaves out."""
        return OptOut(
            self.users | other.users,
            self.repositories | other.repositories,
            self.issues | other.issues,
            self.accounts | other.accounts,
        )

    @property
    def all_accounts(self) -> frozenset[str]:
        """All users by `account_of`."""
        return self.accounts | {account_of(user) for user in self.users}

    def user(self, login: str | None) -> bool:
        """Whether this account wants to be left out."""
        name = (login or "").lower()
        return name == LEFT_OUT or name in self.users or bool(self.accounts and account_of(name) in self.accounts)

    def repository(self, name: str) -> bool:
        """Whether this repository is to be left out."""
        return name.lower() in self.repositories

    def issue(self, repository: str, number: int) -> bool:
        """Whether this issue, or its whole repository, is to be left out."""
        return self.repository(repository) or (repository.lower(), number) in self.issues


def read_repositories(path: Path, *, reserves: bool = False) -> list[Listed]:
    """The repositories of a TOML file ([[repository]] tables as in datasets/github-issues/repositories.toml) or of
    a text file of owner/name lines, in its order, each once. "#" begins a comment. reserves: those too.

    A text file says nothing of labels: `duplicate` is taken. InputError names the place of what can't be read.
    """
    if not path.is_file():
        raise InputError(f"{path} isn't a file: --repos names a file of repositories.")
    found = _of_toml(path) if path.suffix == ".toml" else _of_lines(path)
    found = [listed for listed in found if reserves or not listed.reserve]
    if not found:
        raise InputError(f"{path} names no repository: write one owner/name a line.")
    once: dict[str, Listed] = {}
    for listed in found:
        once.setdefault(listed.name.lower(), listed)
    return list(once.values())


def repository_tables(path: Path) -> list[Any]:
    """The [[repository]] tables of a TOML file as they stand, reserves too; of a text file, their names alone."""
    if path.suffix != ".toml":
        return [{"name": listed.name} for listed in _of_lines(path)]
    with reading(path):
        text = path.read_text("utf-8")
    try:
        tables = tomllib.loads(text).get("repository", [])
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} isn't valid TOML ({error}): mend the file.") from None
    if not isinstance(tables, list):
        raise InputError(f"{path}: `repository` is no list of tables: write [[repository]] above each.")
    return tables


def read_opt_out(path: Path) -> OptOut:
    """A file of one a line: @user, owner/name, owner/name#number, or the address of a repository or an issue."""
    users, repositories, issues = set(), set(), set()
    if not path.is_file():
        raise InputError(f"{path} isn't a file: --opt-out names a file of users, repositories and issues.")
    for number, line in _lines(path):
        if match := _ISSUE.fullmatch(line):
            issues.add((match[1].lower(), int(match[2])))
        elif match := _NAME.fullmatch(line):
            repositories.add(match[1].lower())
        elif match := _USER.fullmatch(line):
            users.add(match[1].lower())
        else:
            raise InputError(f"{path}, line {number}: {line!r:.60} is no user, repository or issue: mend the line.")
    return OptOut(frozenset(users), frozenset(repositories), frozenset(issues))


def hash_of(opt_out: OptOut) -> str:
    """What is left out shapes the result; the manifest isn't to name it."""
    plain = [sorted(value) for value in (opt_out.all_accounts, opt_out.repositories, opt_out.issues)]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def _of_lines(path: Path) -> list[Listed]:
    return [Listed(_name(line, f"{path}, line {number}"), _USUAL_LABELS) for number, line in _lines(path)]


def _of_toml(path: Path) -> list[Listed]:
    return [
        _of_table(table, f"{path}, [[repository]] {number}") for number, table in enumerate(repository_tables(path), 1)
    ]


def _of_table(table: Any, place: str) -> Listed:
    name = table.get("name") if isinstance(table, dict) else table
    labels = table.get("duplicate_labels", list(_USUAL_LABELS)) if isinstance(table, dict) else []
    if not isinstance(labels, list) or not all(isinstance(label, str) and '"' not in label for label in labels):
        raise InputError(f"{place}: duplicate_labels is no list of labels without quotation marks: mend it.")
    licence = table.get("licence") if isinstance(table, dict) else None
    if not isinstance(licence, str | None):
        raise InputError(f"{place}: licence is {licence!r:.40}: give an SPDX identifier, as in MIT.")
    reserve = isinstance(table, dict) and bool(table.get("reserve"))
    return Listed(_name(name, place), tuple(dict.fromkeys(labels)), licence, reserve)


def _name(value: Any, place: str) -> str:
    match = _NAME.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise InputError(f"{place}: {value!r:.60} is no repository: give it as owner/name.")
    return match[1]


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines that say something, without their comments; the "#" of an issue begins none."""
    with reading(path), open_text(path) as file:
        stripped = ((number, re.sub(r"(?:^|\s)#.*", "", line).strip()) for number, line in enumerate(file, 1))
        return [(number, line) for number, line in stripped if line]
