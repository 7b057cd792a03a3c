"""What GitHub says of repositories themselves, many in one query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stscurate.services.github import GitHub

_AT_ONCE = 50
_NO_LICENCE = ("NOASSERTION", "NONE")  # GitHub found a licence file that it can't name
_FIELDS = "nameWithOwner isArchived hasIssuesEnabled licenseInfo { spdxId }"


@dataclass(frozen=True)
class Described:
    """A repository as it is now. licence: SPDX identifier, None where GitHub can't name one."""

    name: str
    licence: str | None
    archived: bool
    has_issues: bool


def describe(github: GitHub, names: Sequence[str]) -> dict[str, Described | None]:
    """What each repository is now, by the name it was asked under, also a former one; None where there is none."""
    parts = [names[at : at + _AT_ONCE] for at in range(0, len(names), _AT_ONCE)]
    found: dict[str, Described | None] = {}
    for part, data in zip(parts, github.map(lambda part: github.graphql(*_query(part)), parts), strict=True):
        for at, name in enumerate(part):
            node = data.get(f"r{at}")
            licence = ((node or {}).get("licenseInfo") or {}).get("spdxId")
            found[name] = node and Described(
                name=node["nameWithOwner"],
                licence=None if licence in _NO_LICENCE else licence,
                archived=node["isArchived"],
                has_issues=node["hasIssuesEnabled"],
            )
    return found


def licence_queries(names: int) -> int:
    """How many queries `describe` sends for so many repositories; each costs a point."""
    return -(-names // _AT_ONCE)


def _query(names: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    wanted = " ".join(f"$o{at}: String!, $n{at}: String!" for at in range(len(names)))
    asked = "\n".join(f"r{at}: repository(owner: $o{at}, name: $n{at}) {{ {_FIELDS} }}" for at in range(len(names)))
    owners = {
        f"{key}{at}": part for at, name in enumerate(names) for key, part in zip("on", name.split("/"), strict=True)
    }
    return f"query ({wanted}) {{ rateLimit {{ cost remaining resetAt }}\n{asked} }}", owners
