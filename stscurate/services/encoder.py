"""Texts -> unit vectors by a sentence-transformers model, a batch at a time, kept so that a kill loses one batch.

The last bits of a vector depend on the texts beside it in its batch (padding and matrix shapes change the order of
sums). So batches are formed from the whole call in a fixed order, and a batch is kept and found again as a whole: the
vectors depend on the texts asked for, never on where a run was broken or on what was encoded before.
"""

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError, ServiceError, first_line
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers, answer_key
from stscurate.services.engine import Engine
from stscurate.services.models import Model, locate
from stscurate.services.whole import check_whole, told_missing

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Pooling = Literal["cls", "mean", "last"]
_COUNTED_AT_ONCE = 1024  # texts per call of the tokenizer: bounds its memory


class Encoder:
    """A sentence-transformers model (or a plain transformers encoder, mean-pooled) by name; loaded at its first use.

    max_tokens: where texts are cut, special tokens included; None leaves it to the model. precision: of the matrix
    products. prompt: name of one of the model's prompts, instead of its default one. pooling: of a plain transformers
    encoder, the mean by default. With `answers`, each batch is committed when it is done. engine: where batches are
    encoded; in this process by default. InputError for an unknown model or prompt, a cross-encoder, a length that the
    model can't take, or a pooling where it has its own.
    """

    def __init__(
        self,
        name: str,
        *,
        answers: Answers | None = None,
        batch_size: int = 64,
        max_tokens: int | None = None,
        precision: Literal["fp32", "bf16"] = "fp32",
        prompt: str | None = None,
        pooling: Pooling | None = None,
        engine: Engine | None = None,
    ):
        self.model = locate(name)
        self.precision = precision
        if is_cross_encoder(self.model):
            raise InputError(
                f"{self.model.name} is a cross-encoder, which reads two texts at once and has no vector of one: name "
                f"an embedding model, or to evaluate name it reranker:{name}."
            )
        if pooling and not is_bare(self.model):
            raise InputError(f"{self.model.name} pools in its own way: --pooling is for plain transformers encoders.")
        self._pooling = pooling
        self._answers = answers
        self._batch_size = batch_size
        self._max_tokens = max_tokens
        self._prompt = prompt
        self._engine = engine

    def encode(self, texts: Sequence[str], *, progress: Progress = silent) -> NDArray[np.float32]:
        """Vectors of `texts`, (n, d) float32, rows of unit length; each distinct text is encoded once.

        ServiceError names the index of a text whose vector is zero or not finite.
        """
        if not texts:
            return np.zeros((0, self._network.get_embedding_dimension() or 0), np.float32)
        first: dict[str, int] = {}
        for index, text in enumerate(texts):
            first.setdefault(text, index)
        rows: dict[str, NDArray[np.float32]] = {}
        batches = self._batches(first)
        progress("embeddings", 0, len(first))
        for batch, vectors in zip(batches, self._vectors(batches), strict=True):
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            broken = np.flatnonzero(~((norms > 0) & np.isfinite(norms)))
            if broken.size:
                what = "a zero vector" if norms[broken[0]] == 0 else "a vector that isn't finite"
                raise ServiceError(
                    f"{self.model.name} gives {what} for text {first[batch[broken[0]]]}: "
                    "drop that text, or take another model."
                )
            rows.update(zip(batch, vectors / norms, strict=True))
            progress("embeddings", len(rows), len(first))
        return np.stack([rows[text] for text in texts])

    def known(self, texts: Sequence[str]) -> int:
        """Of how many of the different texts `encode` would find the vectors kept; the model is loaded if any are."""
        kept = self._answers.keys("embedding") if self._answers else set()
        return sum(len(batch) for batch in self._batches(texts) if self._key(batch) in kept) if kept else 0

    def token_counts(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Tokens of each text before any cut, the model's prompt and special tokens included; (n,) integers."""
        return token_counts(self._network, texts)

    def cut(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Tokens of each text that the model doesn't see, since it cuts longer texts; (n,) integers."""
        limit = self.reads
        counts = self.token_counts(texts)
        return np.zeros_like(counts) if limit is None else np.maximum(counts - limit, 0)

    def _batches(self, texts: Iterable[str]) -> list[list[str]]:
        """The different texts in batches, from short to long."""
        different = list(dict.fromkeys(texts))
        lengths = dict(zip(different, self.token_counts(different).tolist(), strict=True))
        ordered = sorted(different, key=lambda text: (lengths[text], text))
        return [ordered[start : start + self._batch_size] for start in range(0, len(ordered), self._batch_size)]

    def _vectors(self, batches: list[list[str]]) -> Iterator[NDArray[np.float32]]:
        """The raw vectors of each batch: kept ones, or computed ones, which are then kept."""
        keys = [self._key(batch) for batch in batches]
        known = self._answers.keys("embedding") if self._answers else set()
        missing = [batch for batch, key in zip(batches, keys, strict=True) if key not in known]
        if self._engine:
            make = partial(_encoding, self.model, self._max_tokens, self._prompt, self._pooling, self.precision)
            computed = self._engine.map(make, missing)
        else:
            computed = (_encoded(self._network, self.precision, batch) for batch in missing)
        for batch, key in zip(batches, keys, strict=True):
            if self._answers and key in known:
                yield np.frombuffer(self._answers.get([key])[key], dtype="<f4").reshape(len(batch), -1)
                continue
            vectors = next(computed)
            if self._answers:
                self._answers.put("embedding", {key: vectors.tobytes()})
            yield vectors

    def _key(self, batch: list[str]) -> str:
        kind = {"fp32": "float32", "bf16": "bfloat16"}[self.precision]
        told = {"prompt": self.prompts[self._prompt]} if self._prompt else {}
        told |= {"pooling": self._pooling} if self._pooling else {}
        return answer_key(model=self.model.fingerprint, max_tokens=self.reads, precision=kind, texts=batch, **told)

    @property
    def reads(self) -> int | None:
        """Tokens of a text that the model reads, special tokens included; None where all."""
        limit = self._network.max_seq_length
        return None if limit is None or limit == math.inf else int(limit)

    @property
    def prompts(self) -> dict[str, str]:
        """What the model puts before a text, by name ("query", "passage", ...); prompts without words are left out."""
        return {name: text for name, text in self._network.prompts.items() if text}

    @cached_property
    def _network(self) -> "SentenceTransformer":
        return _loaded(self.model, self._max_tokens, self._prompt, self._pooling)


def _encoding(
    model: Model, max_tokens: int | None, prompt: str | None, pooling: Pooling | None, precision: str
) -> Callable[[list[str]], NDArray[np.float32]]:
    """What a worker does with a batch."""
    return partial(_encoded, _loaded(model, max_tokens, prompt, pooling), precision)


def _encoded(network: "SentenceTransformer", precision: str, batch: list[str]) -> NDArray[np.float32]:
    import torch

    with torch.autocast(network.device.type, torch.bfloat16, enabled=precision == "bf16"):
        found = network.encode(batch, batch_size=len(batch), show_progress_bar=False, convert_to_numpy=False)
    return np.asarray(torch.stack(list(found)).float().cpu().numpy(), dtype="<f4")


def _loaded(
    model: Model, max_tokens: int | None, prompt: str | None, pooling: Pooling | None = None
) -> "SentenceTransformer":
    network = load_network(model)
    if pooling is not None:
        set_pooling(network, pooling)
    if max_tokens is not None:
        if hasattr(network.tokenizer, "encode_batch"):
            raise InputError(f"{model.name} is of static embeddings, which read all of a text: cut none for it.")
        low = 1 + getattr(network.tokenizer, "num_special_tokens_to_add", int)()
        high = getattr(network.config, "max_position_embeddings", math.inf)
        if not low <= max_tokens <= high:
            raise InputError(f"{model.name} can't cut texts at {max_tokens} tokens: give {low} to {high}.")
        network.max_seq_length = max_tokens
    if prompt is not None:
        known = [name for name, text in network.prompts.items() if text]
        if prompt not in known:
            raise InputError(f"{model.name} has no prompt {prompt}: it has {', '.join(known) or 'none'}.")
        network.default_prompt_name = prompt
    return network


def set_pooling(network: "SentenceTransformer", pooling: Pooling) -> None:
    """Pool so in the place of the pooling that the network has, or behind its transformer where it has none."""
    from sentence_transformers.sentence_transformer.modules import Pooling as Layer

    modules = list(network)
    own = next((place for place, module in enumerate(modules) if isinstance(module, Layer)), None)
    layer = Layer(
        modules[0].get_embedding_dimension(),
        pooling_mode={"last": "lasttoken"}.get(pooling, pooling),
        include_prompt=True if own is None else modules[own].include_prompt,
    ).to(network.device)
    if own is not None:
        network[own] = layer
        return
    network._modules.clear()
    for place, module in enumerate([modules[0], layer, *modules[1:]]):
        network.add_module(str(place), module)


def prompt_of(network: "SentenceTransformer") -> str | None:
    """What stands before every text."""
    return network.prompts.get(network.default_prompt_name or "") or None


def is_bare(model: Model) -> bool:
    """Whether it is a plain transformers encoder, which says nothing of how its tokens' vectors are pooled."""
    return not (model.path / "modules.json").exists() and (model.path / "config.json").exists()


def is_cross_encoder(model: Model) -> bool:
    """Whether sentence-transformers' files say so, or where there are none the head of the transformers model."""
    if (model.path / "modules.json").exists():
        return bool(_told(model, "config_sentence_transformers.json").get("model_type") == "CrossEncoder")
    return any("SequenceClassification" in str(head) for head in _told(model, "config.json").get("architectures") or ())


def _told(model: Model, name: str) -> dict[str, Any]:
    """What a file of the folder says; nothing where it isn't there or is damaged, of which loading tells."""
    try:
        found = json.loads((model.path / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def token_counts(network: "SentenceTransformer", texts: Sequence[str]) -> NDArray[np.int64]:
    """Tokens of each text before any cut, the model's prompt and special tokens included; (n,) integers."""
    prompt = prompt_of(network) or ""
    counts: list[int] = []
    for start in range(0, len(texts), _COUNTED_AT_ONCE):
        part = [prompt + text for text in texts[start : start + _COUNTED_AT_ONCE]]
        if hasattr(network.tokenizer, "encode_batch"):  # static embeddings carry a bare tokenizer
            counts += [len(found.ids) for found in network.tokenizer.encode_batch(part)]
        else:
            found = network.tokenizer(part, truncation=False, padding=False, verbose=False)
            counts += [len(ids) for ids in found["input_ids"]]
    return np.array(counts, dtype=np.int64)


def load_network(model: Model, weights: dict[str, Any] | None = None) -> "SentenceTransformer":
    """The model itself, in float32, in evaluation mode. InputError where it isn't an embedding model.

    weights: what transformers is told of how to load them, such as a quantization.
    """
    path, name = model.path, model.name
    if not path.is_dir():
        raise InputError(f"{name} is a file, not a model's folder: name a sentence-transformers model.")
    if not (path / "modules.json").exists() and not (path / "config.json").exists():
        raise InputError(
            f"{name} holds no model (no modules.json, no config.json): name a sentence-transformers model's folder."
        )
    with quiet():
        from sentence_transformers import SentenceTransformer

        try:
            with told_missing() as missing:
                network = SentenceTransformer(str(path), local_files_only=True, model_kwargs=weights)
        except Exception as error:  # the libraries raise many kinds for a damaged folder
            raise InputError(
                f"{name} can't be loaded as a sentence-transformers model ({first_line(error)}): copy or save it again."
            ) from None
    check_whole(name, missing, unused="pooler")  # a BERT's own, of the first token: Pooling takes the tokens' vectors
    special = getattr(network.tokenizer, "all_special_ids", None)
    if special and len(network.tokenizer.get_vocab()) <= len(special):  # made up where the files are missing
        raise InputError(f"{name} has no tokenizer's vocabulary: copy or save the model again, whole.")
    return network.float().eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers and sentence-transformers from drawing bars and logging notes while a model loads."""
    from transformers.utils import logging as library

    level, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    own = logging.getLogger("sentence_transformers")
    own_level = own.level
    library.set_verbosity_error()
    library.disable_progress_bar()
    own.setLevel(logging.ERROR)
    try:
        yield
    finally:
        library.set_verbosity(level)
        own.setLevel(own_level)
        if bars:
            library.enable_progress_bar()
