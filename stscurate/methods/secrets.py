"""Secrets that slip into public texts: access tokens and private keys, by the shape that their issuers publish.

Thin on purpose: only shapes that are almost never anything else. Every pattern begins with fixed letters and has no
nested repetition, so the time is linear in the text.
"""

import re
from dataclasses import dataclass

# kind -> (letters that must stand in the text, pattern). The letters are looked for first: most texts have none.
_PATTERNS: dict[str, tuple[str, re.Pattern[str]]] = {
    "GitHub token": ("gh", re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}+")),
    "GitHub fine-grained token": ("github_pat_", re.compile(r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{50,255}+")),
    "Hugging Face token": ("hf_", re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,64}+")),
    "API key (sk-)": ("sk-", re.compile(r"(?<![A-Za-z0-9-])sk-[A-Za-z0-9_-]{20,255}+")),
    "AWS access key": ("A", re.compile(r"(?<![A-Za-z0-9])A(?:KIA|SIA)[0-9A-Z]{16}(?![A-Za-z0-9])")),
    "private key": ("PRIVATE KEY", re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----")),
}
_FEWEST_CHARACTERS = 8  # "ghp_xxxxxxxx..." and "sk-000000..." are placeholders: a real token has more different ones


@dataclass(frozen=True)
class Secret:
    """Where a secret stands in a text (characters, stop excluded) and what it looks like."""

    kind: str
    start: int
    stop: int


def find_secrets(text: str) -> list[Secret]:
    """All that looks like a secret, in the order of the text.

    >>> find_secrets("token: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH")
    [Secret(kind='Hugging Face token', start=7, stop=44)]
    """
    found = []
    for kind, (letters, pattern) in _PATTERNS.items():
        if letters in text:
            found += [Secret(kind, *match.span()) for match in pattern.finditer(text) if _is_real(kind, match[0])]
    return sorted(found, key=lambda secret: secret.start)


def _is_real(kind: str, token: str) -> bool:
    if kind == "private key":
        return True
    if len(set(token[4:])) < _FEWEST_CHARACTERS or token.endswith("EXAMPLE"):  # the latter: keys of AWS's own manual
        return False
    # A CSS class such as sk-circle-fade-dot-animation has no digit or no capital.
    return not token.startswith("sk-") or (bool(re.search("[0-9]", token)) and bool(re.search("[A-Z]", token)))
