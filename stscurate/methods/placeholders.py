"""Placeholders for what names a person or opens a door: mentions, e-mail and IP addresses, home folders, secrets.

They are numbered within one issue: "@user-1", "[email-1]", "[ip-1]", "[github-token-1]". So the same value has the
same placeholder in an issue, whatever else was collected and by whichever run, and nothing can be computed back: a hash
of an address of which there are only four billion can. It also says that two issues needn't be one person's, which a
model could learn instead of what the texts mean.

Not replaced: addresses of private, loopback and documentation networks (127.0.0.1 is content); what is rather a version
than an address: fewer than seven digits ("1.2.3.4"), ".0" at its end, "version" or "v" before it; "@scope/package" (a
package, or a team, which is no person); owners of repositories in URLs; and logins written as plain words, which
nothing tells from other words.
"""

import ipaddress
import re

from stscurate.methods.secrets import find_secrets

_EMAIL = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@[A-Za-z\d-]{1,63}(?:\.[A-Za-z\d-]{1,63}){1,8}")
_MENTION = re.compile(r"(?<![\w@./`+-])@([A-Za-z\d][A-Za-z\d-]{0,38}+)(?![\w@(/.]\w|[\w@(])")
# Annotations and rules of languages that people write without code marks.
_ANNOTATIONS = (
    "abstractmethod app author autowired bean beta cached canary charset classmethod click component const "
    "container dataclass deprecated each else example extend fixture fn font-face for frozen function if import "
    "include injectable input int keyframes latest layer media mixin mut next ngmodule nightly nullable observable "
    "org output overload override page param params private property protected public pytest return returns section "
    "see selector self since static staticmethod str supports swc tailwind task test throws todo ts-ignore type "
    "typedef types use value viewchild watch wraps"
)
_NO_LOGIN = frozenset(_ANNOTATIONS.split())
_DOTS = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.")
_DIGITS_BEFORE = re.compile(r"(?:^|[^0-9])([0-9]{1,3})$")
_DIGITS_AFTER = re.compile(r"[0-9]{1,3}(?![0-9A-Za-z_]|[-.][0-9A-Za-z])")
_SHORTEST = 10  # characters: hardly one public address in a hundred has fewer than seven digits, most versions do
_NO_ADDRESS = re.compile(r"(?:[\w.+~^-]|==|\b(?:v|ver|versions?|release|build)[ \t:=.(]{1,3})$", re.IGNORECASE)
_V6 = re.compile(r"[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{3,34}+(?![\w:])")  # 2000::/3 holds all public ones
_GROUP = re.compile(":[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]")  # in all but the shortest of them, and much faster to look for
# What may not stand before them is looked at after their first letters, which are found fast.
_FOLDER = r"([^\s/\\:;,\"'<>|*?()`$%{}\[\]]{1,64})(?=/)"
_HOME = re.compile(r"(/home/)(?<![\w.~-]/home/)" + _FOLDER)
_USERS = re.compile(r"(/Users/)(?<![\w.~-]/Users/)" + _FOLDER)
_WINDOWS_HOME = re.compile(r"([A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/))([^\\/:;,\"<>|*?`$%{}\[\]\n]{1,40})(?=[\\/])")
_ACCOUNTS = (
    "admin administrator all app build builder circleci default jenkins jovyan linuxbrew me name node pi public "
    "root runner runneradmin rustbuild shared travis ubuntu user username vagrant vscode xxx you your-name yourname"
)
_NOBODY = frozenset(_ACCOUNTS.split())
_PROFILE = re.compile(r"github\.com/([A-Za-z\d][A-Za-z\d-]{0,38}+)(?![\w/.?#-])")
_PAGES = "about apps contact explore features issues login marketplace new orgs pricing topics"
_NO_PROFILE = frozenset(_PAGES.split())
_OTHER = re.compile("[^a-z0-9]+")


class Placeholders:
    """The placeholders of one issue."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}  # kind -> value -> number

    @property
    def kinds(self) -> list[str]:
        """What has been replaced: user, email, ip, or a kind of secret."""
        return sorted(self._numbers)

    def secrets(self, text: str) -> str:
        """The text without its secrets."""
        parts: list[str] = []
        at = 0
        for secret in find_secrets(text):
            if secret.start >= at:
                name = self._name(secret.kind, text[secret.start : secret.stop])
                parts += [text[at : secret.start], f"[{_OTHER.sub('-', name.lower()).strip('-')}]"]
                at = secret.stop
        return "".join([*parts, text[at:]]) if parts else text

    def emails(self, line: str) -> str:
        """The line without e-mail addresses."""
        return _EMAIL.sub(lambda match: f"[{self._name('email', match[0].lower())}]", line) if "@" in line else line

    def mentions(self, line: str) -> str:
        """The line of prose without mentions of people; what stands between backticks stays."""
        if "@" not in line:
            return line
        parts = line.split("`")
        for at in range(0, len(parts), 2):
            if "@" in parts[at]:
                parts[at] = _MENTION.sub(self._mention, parts[at])
        return "`".join(parts)

    def places(self, text: str) -> str:
        """The text without public IP addresses, names of home folders and addresses of profiles."""
        text = _USERS.sub(self._home, _HOME.sub(self._home, text))
        if "\\Users\\" in text or ":/Users/" in text:
            text = _WINDOWS_HOME.sub(self._home, text)
        if "github.com/" in text:
            text = _PROFILE.sub(self._profile, text)
        if _GROUP.search(text):
            text = self._replace(text, [span for match in _V6.finditer(text) if (span := _public_v6(match))])
        return self._replace(text, [span for match in _DOTS.finditer(text) if (span := _public_v4(match))])

    def _name(self, kind: str, value: str) -> str:
        numbers = self._numbers.setdefault(kind, {})
        return f"{kind}-{numbers.setdefault(value, len(numbers) + 1)}"

    def _replace(self, text: str, addresses: list[tuple[int, int]]) -> str:
        parts: list[str] = []
        at = 0
        for start, stop in addresses:
            parts += [text[at:start], f"[{self._name('ip', text[start:stop].lower())}]"]
            at = stop
        return "".join([*parts, text[at:]]) if parts else text

    def _mention(self, match: re.Match[str]) -> str:
        login = match[1].lower()
        return match[0] if login in _NO_LOGIN else f"@{self._name('user', login)}"

    def _home(self, match: re.Match[str]) -> str:
        name = match[2].lower()
        return match[0] if name in _NOBODY else match[1] + self._name("user", name)

    def _profile(self, match: re.Match[str]) -> str:
        name = match[1].lower()
        return match[0] if name in _NO_PROFILE else f"github.com/{self._name('user', name)}"


def _public_v4(dots: re.Match[str]) -> tuple[int, int] | None:
    """Where a public IPv4 address stands around its two middle numbers, if one does."""
    text = dots.string
    first = _DIGITS_BEFORE.search(text, max(0, dots.start() - 4), dots.start())
    last = _DIGITS_AFTER.match(text, dots.end())
    if not first or not last:
        return None
    start, stop = first.start(1), last.end()
    return None if _is_version(text, start, stop) or not _is_public(text[start:stop]) else (start, stop)


def _public_v6(match: re.Match[str]) -> tuple[int, int] | None:
    start, stop = match.span()
    if start and (match.string[start - 1].isalnum() or match.string[start - 1] in "_:."):
        return None
    return (start, stop) if _is_public(match.string[start:stop]) else None


def _is_version(text: str, start: int, stop: int) -> bool:
    if stop - start < _SHORTEST or text.endswith(".0", start, stop):
        return True
    return _NO_ADDRESS.search(text, max(0, start - 12), start) is not None


def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False
