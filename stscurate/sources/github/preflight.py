"""Before a long collection: what each listed repository is today, and reserves in the place of those that won't do.

A repository won't do that isn't there, is archived, has its issues switched off, opted out, stands in the list under
another name too, or is estimated to hold too few pairs. The estimate is that of `plan`: of the issues that at least one
of its searches finds, 2 % of all issues are taken off as questions ("Is this a duplicate of ...?"), half of those found
at the most; each that remains is a duplicate, and with its original a pair.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stscurate.disk import atomic
from stscurate.services.github import GitHub
from stscurate.sources.github.plan import Plan, make_plans
from stscurate.sources.github.repositories import Described, describe
from stscurate.sources.lists import Listed, OptOut
from stscurate.wording import counted

LEAST_PAIRS = 100


@dataclass(frozen=True)
class Checked:
    """A repository of the list as GitHub has it; `reason` why it won't do, None where it does."""

    listed: Listed
    found: Described | None
    issues: int
    candidates: int  # issues that at least one search finds
    pairs: int  # estimated
    reason: str | None

    @property
    def licence_differs(self) -> bool:
        """Whether the list names another licence than GitHub; what GitHub can't name differs from nothing."""
        said = self.found and self.found.licence
        return bool(said and self.listed.licence and not _same(said, self.listed.licence))


@dataclass(frozen=True)
class Preflight:
    """All repositories asked about, those that are to be collected, who takes whose place, and who has no successor."""

    checked: list[Checked]
    kept: list[Listed]
    replaced: list[tuple[Checked, Checked]]  # (who drops out, the reserve)
    missing: list[Checked]  # who drops out and has no reserve left


def check_repositories(
    github: GitHub,
    listed: Sequence[Listed],
    *,
    least: int = LEAST_PAIRS,
    opt_out: OptOut = OptOut(),  # noqa: B008
) -> Preflight:
    """Ask about all, reserves too, by one counting query each; put the first good reserves where others drop out."""
    described = describe(github, [row.name for row in listed])
    there = {row.name: found for row in listed if (found := described[row.name]) and found.has_issues}
    labels = {row.name: row.labels for row in listed}
    asked = [Listed(found.name, labels[name]) for name, found in there.items()]
    plans = {plan.repository.lower(): plan for plan in make_plans(github, asked, negatives=0, opt_out=opt_out)}
    seen: dict[str, str] = {}
    checked = [_check(row, described[row.name], plans, seen, least, opt_out) for row in listed]
    kept: list[Listed] = []
    replaced, missing = [], []
    reserves = iter([row for row in checked if row.listed.reserve and row.reason is None])
    for row in (row for row in checked if not row.listed.reserve):
        if row.reason is None:
            kept.append(row.listed)
        elif reserve := next(reserves, None):
            kept.append(reserve.listed)
            replaced.append((row, reserve))
        else:
            missing.append(row)
    return Preflight(checked, kept, replaced, missing)


def write_list(path: Path, tables: Sequence[Any], kept: Sequence[Listed]) -> None:
    """Write the kept repositories' [[repository]] tables as they stood, in the order of `kept`, none a reserve."""
    by_name = {_plain_name(table): table for table in tables}
    blocks = []
    for row in kept:
        table = by_name[row.name.lower()]
        values = {name: value for name, value in table.items() if name != "reserve"} if isinstance(table, dict) else {}
        values["name"] = row.name
        # Strings, lists of strings, numbers and booleans are written alike in JSON and TOML.
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        blocks.append("\n".join(["[[repository]]", *lines]) + "\n")
    with atomic(path) as file:
        file.write("\n".join(blocks).encode())


def _check(
    row: Listed,
    found: Described | None,
    plans: dict[str, Plan],
    seen: dict[str, str],
    least: int,
    opt_out: OptOut,
) -> Checked:
    plan = plans.get(found.name.lower()) if found else None
    issues, candidates = (plan.issues, plan.candidates) if plan else (0, 0)
    pairs = plan.duplicates if plan else 0
    reason = None
    if found is None:
        reason = "not there"
    elif opt_out.repository(row.name) or opt_out.repository(found.name):
        reason = "opted out"
    elif found.archived:
        reason = "archived"
    elif not found.has_issues:
        reason = "has no issues"
    elif (first := seen.setdefault(found.name.lower(), row.name)) != row.name:
        reason = f"the same as {first}"
    elif pairs < least:
        reason = counted(pairs, "pair")
    return Checked(row, found, issues, candidates, pairs, reason)


def _same(one: str, other: str) -> bool:
    """Whether GitHub's identifier of one licence file can be what the list's expression says of the code."""
    names = {part.strip("()") for part in other.split() if part not in ("OR", "AND")}
    return _root(one) in {_root(name) for name in names}


def _root(licence: str) -> str:
    return licence.lower().removesuffix("-only").removesuffix("-or-later")


def _plain_name(table: Any) -> str:
    name = str(table["name"] if isinstance(table, dict) else table)
    return name.removeprefix("https://github.com/").removesuffix("/").removesuffix(".git").lower()
