"""Personal data that stands in a text: e-mail and public IP addresses, phone numbers, logins.

By the same shapes that cleaning replaces (`placeholders.py`), so that what it leaves on purpose (127.0.0.1, versions,
@override, its own placeholders) is nobody's here either; and phone numbers, which it doesn't touch.
"""

import re

from stscurate.methods.placeholders import Placeholders

# "+49 30 901820", "(212) 736-5000", "212-736-5000": with a plus sign, or cut as in North America. A number without
# either is a number.
_PHONE = re.compile(
    r"(?<![\w+.,/:=-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,5}(?:[ .-]\d{2,5}){1,4}|\+[1-9]\d{7,14}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}-\d{3}-\d{4})(?![\w-]|[.,:/]\d)"
)
_FICTION = re.compile(r"555\D?01\d\d$")  # numbers kept for films and manuals
_OURS = re.compile(r"(?:@|github\.com/|/)user-\d+")
_NAMES = {"email": "e-mail address", "ip": "IP address", "user": "login or home folder"}
_DIGITS = range(8, 16)  # E.164 has 15 at most


def find_personal(text: str) -> list[str]:
    """The kinds of personal data in a text, in alphabetical order; empty without any.

    >>> find_personal("Mail jo@example.org or ring +49 30 901820; @user-1 did.")
    ['e-mail address', 'phone number']
    """
    found = Placeholders()
    plain = _OURS.sub(" ", text)
    if "@" in plain:
        plain = found.mentions(found.emails(plain))
    found.places(plain)
    kinds = {_NAMES[kind] for kind in found.kinds if kind in _NAMES}
    return sorted(kinds | ({"phone number"} if any(map(_is_phone, _PHONE.finditer(text))) else set()))


def _is_phone(match: re.Match[str]) -> bool:
    return sum(letter.isdigit() for letter in match[0]) in _DIGITS and not _FICTION.search(match[0])
