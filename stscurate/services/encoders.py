"""Embedding models wherever they are: one on this machine, or one behind an embeddings API."""

import os
import re
from collections.abc import Sequence
from typing import Literal, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from stscurate.errors import InputError
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.embeddings_api import EmbeddingsApi
from stscurate.services.encoder import Encoder, Pooling
from stscurate.services.engine import Engine

FORMS = "a folder, a packaged or Hub name, openai:MODEL, jina:MODEL or http://HOST:PORT/v1#MODEL"
_API = re.compile(r"(?:(?P<name>[^=:/#\s]+)=)?(?P<form>(?:openai|jina):.+|https?://.+)")
_OPENAI, _JINA = "https://api.openai.com/v1", "https://api.jina.ai/v1"


class Identified(Protocol):
    """What a model is called, and the hash that tells it from others."""

    @property
    def name(self) -> str:
        """Its name, never a path of this machine."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its files, or of all that shapes an API's vectors."""


class TextEncoder(Protocol):
    """What all embedding models can do; see `Encoder` and `EmbeddingsApi`."""

    @property
    def model(self) -> Identified:
        """Which model it is."""

    @property
    def reads(self) -> int | None:
        """Tokens of a text that it reads, special ones included; None where all, or where nobody knows."""

    def encode(self, texts: Sequence[str], *, progress: Progress = silent) -> NDArray[np.float32]:
        """Vectors of n texts, (n, d) float32, rows of unit length."""

    def token_counts(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """Tokens of each text before any cut, (n,); None where they are unknown."""

    def cut(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """Tokens of each text that the model doesn't see, (n,); None where that is unknown."""


def open_encoder(
    spec: str,
    *,
    answers: Answers | None = None,
    batch_size: int = 64,
    max_tokens: int | None = None,
    precision: Literal["fp32", "bf16"] = "fp32",
    prompt: str | None = None,
    pooling: Pooling | None = None,
    task: str | None = None,
    late_chunking: bool = False,
    tokenizer: str | None = None,
    timeout: float = 60.0,
    engine: Engine | None = None,
) -> TextEncoder:
    """The embedding model that `spec` names, one of FORMS; `NAME=http://...#MODEL` lets an endpoint move its place.

    max_tokens, precision, prompt, pooling and engine are for models on this machine; task, late_chunking, tokenizer and
    timeout for APIs. The key comes from OPENAI_API_KEY, JINA_API_KEY, or for other addresses EMBEDDINGS_API_KEY.
    InputError for a spec that names nothing, and for an option that the model can't follow.
    """
    found = _API.fullmatch(spec.strip())
    if not found:
        if task or late_chunking:
            raise InputError(f"{spec} is a model on this machine: --api-task and --late-chunking are for APIs.")
        return Encoder(
            spec,
            answers=answers,
            batch_size=batch_size,
            max_tokens=max_tokens,
            precision=precision,
            prompt=prompt,
            pooling=pooling,
            engine=engine,
        )
    url, model = _place(found["form"])
    if pooling:
        raise InputError(f"{spec} is an API, which pools by itself: --pooling is for plain transformers encoders.")
    if prompt:
        raise InputError(f"{spec} is an API, which takes no prompt by name: give it --api-task where it has tasks.")
    host = urlsplit(url).hostname or ""
    key_name = {"openai": "OPENAI_API_KEY", "jina": "JINA_API_KEY"}.get(found["form"].partition(":")[0])
    key_name = key_name or ("OPENAI_API_KEY" if host == "api.openai.com" else None)
    key_name = key_name or ("JINA_API_KEY" if host == "api.jina.ai" else "EMBEDDINGS_API_KEY")
    key = os.environ.get(key_name, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{key_name} holds characters that no key has: export it again.")
    if not key and url in (_OPENAI, _JINA):
        raise InputError(f"{spec} needs a key in {key_name}, which isn't set: export it.")
    return EmbeddingsApi(
        url,
        model,
        service=found["name"],
        key=key,
        key_name=key_name,
        answers=answers,
        batch_size=batch_size,
        task=task,
        late_chunking=late_chunking,
        tokenizer=tokenizer,
        timeout=timeout,
    )


def is_api(spec: str) -> bool:
    """Whether this names a model behind an API."""
    return _API.fullmatch(spec.strip()) is not None


def _place(form: str) -> tuple[str, str]:
    """Address and model. InputError where one is missing, or the address is none."""
    if not form.startswith("http"):
        kind, _, model = form.partition(":")
        return (os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI) if kind == "openai" else _JINA, model
    url, _, model = form.partition("#")
    url = url.rstrip("/").removesuffix("/embeddings")
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not model:
        raise InputError(f"{form.rpartition('@')[2]} names no model of an API: it reads http://HOST:PORT/v1#MODEL.")
    return url, model
