"""The licence that a card names: an SPDX identifier in the Hub's spelling."""

from collections.abc import Iterable

from stscurate.errors import InputError
from stscurate.publishing.hub_words import hub_words

_OTHER_NAMES = {"odbl-1.0": "odbl", "odc-by-1.0": "odc-by", "pddl-1.0": "pddl"}


def hub_licence(name: str) -> str:
    """The Hub's spelling of an SPDX identifier. InputError where the Hub doesn't know it.

    >>> hub_licence("Apache-2.0"), hub_licence("GPL-3.0-or-later")
    ('apache-2.0', 'gpl-3.0')
    """
    plain = name.strip().lower().removesuffix("-only").removesuffix("-or-later")
    plain = _OTHER_NAMES.get(plain, plain)
    if plain not in hub_words("licences"):
        raise InputError(
            f"Licence {name!r:.60} isn't an identifier that the Hub knows: give an SPDX identifier such as cc-by-4.0, "
            'cc0-1.0, mit or apache-2.0, or "other", with --licence.'
        )
    return plain


def set_licences(given: str | None, rows: Iterable[str | None], *, of_code: bool = False) -> list[str]:
    """The licences of the set: the one given, else all that its rows name. InputError where a row names none.

    of_code: the rows name the licences of repositories' code, which say nothing of the set's: then one must be given.
    """
    if given is not None:
        return [hub_licence(given)]
    if of_code:
        raise InputError(
            "The licence of the set isn't known (that of a repository's code needn't cover what people wrote in its "
            "issues): give one with --licence, as in --licence cc-by-4.0, if you have the right to, or --licence other."
        )
    found = set()
    for number, licence in enumerate(rows):
        if licence is None:
            raise InputError(
                f"The licence of the set isn't known (row {number} names none): give one with --licence, as in "
                "--licence cc-by-4.0, if you have the right to."
            )
        found.add(hub_licence(licence))
    return sorted(found)
