"""How numbers are told in words."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with what it counts; many: where that isn't `one` with an s.

    >>> counted(1, "pair"), counted(2000, "pair"), counted(0, "row holds", "rows hold")
    ('1 pair', '2,000 pairs', '0 rows hold')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
