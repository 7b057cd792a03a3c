"""A calibration in a folder: what was fitted, and the model and corpus that it holds for."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stscurate.disk import fingerprint, write_json
from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS, Method
from stscurate.methods.leaks import text_digest
from stscurate.services.encoders import Identified, TextEncoder

_ARRAYS = "calibration.npz"
_ABOUT = "calibration.json"
_DIGESTS = "text_digests"
_SHARE = 0.5  # of the texts to compare, or of those fitted to, at the least, have to be among the other


@dataclass(frozen=True)
class Calibration:
    """A fitted `method`, the model whose vectors it takes, and the corpus that it was fitted to.

    model: name and fingerprint, reads: tokens of a text that the model sees, None for all;
    lengths count no more. digests: of the corpus's texts, sorted. place: the folder it was read from.
    """

    method: Method
    model: str
    model_fingerprint: str
    reads: int | None
    corpus: str
    digests: NDArray[np.uint64]
    place: Path | None = None

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """The calibration that `audit calibrate` has left in a folder. InputError where there is no whole one."""
        folder = Path(folder)
        try:
            about = json.loads((folder / _ABOUT).read_text("utf-8"))
            with (folder / _ARRAYS).open("rb") as file, np.load(file) as found:
                arrays = dict(found)
            digests = arrays.pop(_DIGESTS)
            method = METHODS[about["method"]](**arrays)
            model = about["model"]
            return cls(method, model["name"], model["fingerprint"], model["reads"], about["corpus"], digests, folder)
        except FileNotFoundError:
            raise InputError(
                f"{folder} holds no calibration: name the folder that `stscurate audit calibrate` wrote."
            ) from None
        except (ValueError, LookupError, TypeError, OSError, zipfile.BadZipFile):
            raise InputError(
                f"The calibration {folder} isn't whole: bring it back from a copy, or fit it again."
            ) from None

    def save(self, folder: Path) -> None:
        """Write it into a folder that is there."""
        about = {"method": self.method.name, "corpus": self.corpus, "texts": len(self.digests)}
        model = {"name": self.model, "fingerprint": self.model_fingerprint, "reads": self.reads}
        arrays: dict[str, Any] = {_DIGESTS: self.digests, **self.method.arrays()}
        np.savez(folder / _ARRAYS, **arrays)
        write_json(folder / _ABOUT, {**about, "model": model})

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what was fitted, as a stage's input."""
        return fingerprint(self._folder / _ARRAYS)

    def hold_to(
        self, model: Identified, reads: int | None, texts: Sequence[str], *, accept_corpus: bool = False
    ) -> float:
        """How much of `texts` and of what it was fitted to is the same: the share of either in the other, the greater.

        InputError for another model, and unless accepted for another corpus, which is one where that is below a half.
        A corpus that was fitted to by a part is the same one; so are some texts of one that was fitted to as a whole.
        """
        if model.fingerprint != self.model_fingerprint or reads != self.reads:
            another = "another " if model.name == self.model and reads == self.reads else ""
            raise InputError(
                f"The calibration {self._folder} was fitted to vectors of {self.model}, reading {self.reads or 'all'} "
                f"tokens of a text, and these are of {another}{model.name}, reading {reads or 'all'}: fit one to these "
                "with `stscurate audit calibrate`."
            )
        own = digests_of(texts)
        share = float(np.isin(own, self.digests).mean()) if texts else 0.0
        known = max(share, float(np.isin(self.digests, own).mean()))
        if known < _SHARE and not accept_corpus:
            raise InputError(
                f"The calibration {self._folder} was fitted to {self.corpus}, which holds {share:.0%} of these texts, "
                "and one corpus's calibration can make another worse: fit one to texts of this kind, or add "
                "--accept corpus."
            )
        return known

    @property
    def settings(self) -> dict[str, str]:
        """What it is, as the manifest of a run that uses it says, and its card."""
        return {"method": self.method.name, "model": self.model, "corpus": self.corpus}

    @property
    def _folder(self) -> Path:
        if self.place is None:
            raise ValueError("this calibration was never saved")
        return self.place


def lengths_of(encoder: TextEncoder, texts: Sequence[str]) -> NDArray[np.int64]:
    """Tokens of each text that the model sees, (n,). InputError where nobody knows how many it has."""
    counts = encoder.token_counts(texts)
    if counts is None:
        raise InputError(
            f"{encoder.model.name} doesn't tell how many tokens a text has: name the model with the same tokenizer by "
            "--tokenizer."
        )
    return seen_lengths(counts, encoder.reads)


def seen_lengths(token_counts: NDArray[np.int64], reads: int | None) -> NDArray[np.int64]:
    """Tokens of each text that a model sees, 1 at the least, which cuts at `reads` tokens."""
    return np.maximum(token_counts if reads is None else np.minimum(token_counts, reads), 1)


def digests_of(texts: Sequence[str]) -> NDArray[np.uint64]:
    """64 bits of each text's `text_digest`, in their order."""
    return np.array([int(text_digest(text)[:16], 16) for text in texts], dtype=np.uint64)
