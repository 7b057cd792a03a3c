"""How many tokens texts have by a model's own tokenizer, without loading the model."""

from collections.abc import Sequence

from stscurate.disk import fingerprint
from stscurate.errors import InputError, first_line
from stscurate.services.models import locate

_FILE = "tokenizer.json"
_AT_ONCE = 1_024  # texts per call: bounds the memory


class Tokenizer:
    """The tokenizer.json of a model by name, as `locate` finds it; of the Hub only that file is fetched.

    InputError for an unknown model, and for one without that file.
    """

    def __init__(self, name: str):
        from tokenizers import Tokenizer as Loaded

        model = locate(name, only=[_FILE])
        path = model.path / _FILE
        if not path.is_file():
            raise InputError(f"{model.name} has no {_FILE}: name another model's tokenizer, or words.")
        try:
            self._loaded = Loaded.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise InputError(f"{model.name}: its {_FILE} can't be read ({first_line(error)}): copy it again.") from None
        self._loaded.no_truncation()
        self._loaded.no_padding()
        self.name = model.name
        self.fingerprint = fingerprint(path)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text before any cut, the special ones that the model adds included."""
        counts: list[int] = []
        for start in range(0, len(texts), _AT_ONCE):
            counts += [
                len(found.ids) for found in self._loaded.encode_batch_fast(list(texts[start : start + _AT_ONCE]))
            ]
        return counts
