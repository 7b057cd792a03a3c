"""Secrets that slip into public texts: tokens, keys and passwords, by the shape that their issuers publish.

One list for all: cleaning replaces what is found here, publishing refuses it. Only shapes that are almost never
anything else. No pattern repeats within a repetition, and none gives back what it took: the time is linear.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

_START = r"(?<![A-Za-z0-9])"
# kind -> (words of which one must stand in the text, pattern; a group is the secret in it). The words are looked for
# first: most texts have none.
_PATTERNS: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    # Its letters stand before what may not stand before them: so it is looked for as fast as a word.
    "GitHub token": (("",), re.compile(r"gh(?<![A-Za-z0-9]gh)[pousr]_[A-Za-z0-9]{36,255}+")),
    "GitHub fine-grained token": (("github_pat_",), re.compile(_START + r"github_pat_[A-Za-z0-9_]{50,255}+")),
    "GitLab token": (("glpat-",), re.compile(_START + r"glpat-[A-Za-z0-9_-]{20,255}+")),
    "Hugging Face token": (("hf_",), re.compile(_START + r"hf_[A-Za-z0-9]{30,64}+")),
    "npm token": (("npm_",), re.compile(_START + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])")),
    "PyPI token": (("pypi-Ag",), re.compile(_START + r"pypi-Ag[A-Za-z0-9_-]{50,500}+")),
    "API key (sk-)": (("sk-",), re.compile(r"(?<![A-Za-z0-9-])sk-[A-Za-z0-9_-]{20,255}+")),
    "Stripe key": (("_live_",), re.compile(_START + r"[sr]k_live_[A-Za-z0-9]{20,255}+")),
    "Google API key": (("AIza",), re.compile(_START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    "Slack token": (("xox",), re.compile(_START + r"xox[abeoprs]-[A-Za-z0-9-]{20,255}+")),
    "AWS access key": (("AKIA", "ASIA"), re.compile(_START + r"A(?:KIA|SIA)[0-9A-Z]{16}(?![A-Za-z0-9])")),
    "AWS secret key": (
        ("ecret", "ECRET"),
        re.compile(
            r"secret[_-]?(?:access[_-]?)?key[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
            re.IGNORECASE,
        ),
    ),
    "JSON web token": (
        ("eyJ",),
        re.compile(
            r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,2000}+\.eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{16,2000}+", re.ASCII
        ),
    ),
    "Google OAuth secret": (("GOCSPX-",), re.compile(_START + r"GOCSPX-[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])")),
    "Slack webhook": (
        ("hooks.slack.com/",),
        re.compile(r"hooks\.slack\.com/services/(T[A-Z0-9]{6,16}/B[A-Z0-9]{6,16}/[A-Za-z0-9]{20,40})(?![A-Za-z0-9])"),
    ),
    "SendGrid key": (("SG.",), re.compile(_START + r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")),
    "Twilio key": (("SK",), re.compile(_START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])")),
    "Telegram token": ((":AA",), re.compile(_START + r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")),
    # The number of the bot in base64, a time, a signature. A number begins with 1 to 9, and so with one of these.
    "Discord bot token": (
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        re.compile(r"(?<![\w-])[MNO][A-Za-z0-9]{22,27}+\.[\w-]{6}\.[\w-]{27,38}+(?![\w-])", re.ASCII),
    ),
    "Mailchimp key": (("-us",), re.compile(_START + r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])")),
    "Square token": (("sq0",), re.compile(_START + r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}(?![A-Za-z0-9_-])")),
    "Azure storage key": (("AccountKey=",), re.compile(r"AccountKey=([A-Za-z0-9+/]{86}==)")),
    "DigitalOcean token": (("_v1_",), re.compile(_START + r"do[opr]_v1_[0-9a-f]{64}(?![A-Za-z0-9])")),
    "Databricks token": (("dapi",), re.compile(_START + r"dapi[0-9a-f]{32}(?![A-Za-z0-9])")),
    "Shopify token": (("shp",), re.compile(_START + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?![A-Za-z0-9])")),
    "password in an address": (("://",), re.compile(r"://[^\s/:@]{1,100}+:([^\s/@]{6,100}+)@")),
}
_WORDS = [(word, kind) for kind, (words, _) in _PATTERNS.items() for word in words]
_FEWEST_CHARACTERS = 8  # "ghp_xxxxxxxx..." and "sk-000000..." are placeholders: a real token has more different ones
_PLACEHOLDER = re.compile(r"[$<{\[%*]|(?:your|my|the)?[-_]?(?:pass|pwd|secret|token|api_?key|x{3})", re.IGNORECASE)

_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(r"(?:\s{1,8}[A-Za-z0-9+/=]{16,200}+)*+")


@dataclass(frozen=True)
class Secret:
    """Where a secret stands in a text (characters, stop excluded) and what it looks like."""

    kind: str
    start: int
    stop: int


def find_secrets(text: str) -> list[Secret]:
    """All that looks like a secret, in the order of the text. A private key is a whole block, also without its end.

    >>> find_secrets("token: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH")
    [Secret(kind='Hugging Face token', start=7, stop=44)]
    """
    found = list(_private_keys(text)) if "PRIVATE KEY" in text else []
    for kind in dict.fromkeys([kind for word, kind in _WORDS if word in text]):
        found += _matches(kind, text)
    return sorted(found, key=lambda secret: (secret.start, -secret.stop))


def _matches(kind: str, text: str) -> Iterator[Secret]:
    for match in _PATTERNS[kind][1].finditer(text):
        group = match.lastindex or 0
        if _is_real(kind, match[group]):
            yield Secret(kind, *match.span(group))


def _private_keys(text: str) -> Iterator[Secret]:
    ends = [match.end() for match in _KEY_END.finditer(text)]
    begins = list(_KEY.finditer(text))
    at = 0
    for number, begin in enumerate(begins):
        following = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        while at < len(ends) and ends[at] < begin.end():
            at += 1
        if at < len(ends) and ends[at] <= following:
            stop = ends[at]
        else:
            lines = _KEY_LINES.match(text, begin.end())
            stop = lines.end() if lines else begin.end()
        yield Secret("private key", begin.start(), stop)


def _is_a_number(encoded: str) -> bool:
    """Whether base64 without its padding is of ASCII digits."""
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        return False
    return decoded.isdigit() and base64.b64encode(decoded).decode().rstrip("=") == encoded


def _is_real(kind: str, token: str) -> bool:
    if kind == "password in an address":
        return len(set(token)) > 3 and not _PLACEHOLDER.match(token)
    if len(set(token[4:])) < _FEWEST_CHARACTERS or token.endswith(
        ("EXAMPLE", "EXAMPLEKEY")
    ):  # keys of AWS's own manual
        return False
    if kind == "Discord bot token":
        return _is_a_number(token.partition(".")[0])
    # A CSS class such as sk-circle-fade-dot-animation has no digit or no capital.
    if kind == "API key (sk-)":
        return bool(re.search("[0-9]", token)) and bool(re.search("[A-Z]", token))
    return kind != "Slack token" or bool(re.search("[0-9]", token))
