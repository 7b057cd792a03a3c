"""Whether all of a model's weights came out of its files: transformers draws those that are missing at random.

It tells so in a log alone, by which a folder that was copied in part would give vectors that mean nothing.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from stscurate.errors import InputError


def check_whole(name: str, missing: Collection[str], *, unused: str | None = None) -> None:
    """InputError where weights are missing of the model `name`; `unused` is a module that nothing reads."""
    lost = sorted(key for key in missing if unused not in key.split("."))
    if lost:
        more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        raise InputError(f"{name} lacks a part of its weights ({lost[0]}{more}): copy or save the model again, whole.")


@contextmanager
def told_missing() -> Iterator[set[str]]:
    """Within it, names of the weights that transformers doesn't find, whoever calls its `from_pretrained`.

    sentence-transformers passes on no `output_loading_info`, so that the function itself has to be asked for it.
    """
    from transformers import PreTrainedModel

    missing: set[str] = set()
    plain = PreTrainedModel.__dict__["from_pretrained"]

    def from_pretrained(kind: Any, *given: Any, **options: Any) -> Any:
        wanted = options.pop("output_loading_info", False)
        network, told = plain.__func__(kind, *given, output_loading_info=True, **options)
        missing.update(told["missing_keys"])
        return (network, told) if wanted else network

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield missing
    finally:
        PreTrainedModel.from_pretrained = plain
