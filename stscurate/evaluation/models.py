"""Models of any kind that can be held to gold, by name: encoders here or behind an API, word vectors, rerankers."""

from collections.abc import Sequence
from dataclasses import dataclass

from stscurate.errors import InputError
from stscurate.methods.leaks import training_digests
from stscurate.methods.static_vectors import StaticVectors
from stscurate.services.answers import Answers
from stscurate.services.encoder import Pooling, is_bare
from stscurate.services.encoders import Identified, TextEncoder, is_api, open_encoder
from stscurate.services.models import Model, locate
from stscurate.services.reranker import Reranker

_STATIC, _RERANKER = "static:", "reranker:"


@dataclass(frozen=True)
class Opening:
    """What some kinds of models are opened with; it goes to those alone.

    pooling: of plain transformers encoders, the mean without it. task, late_chunking, tokenizer: of embeddings APIs.
    max_tokens: where embedding models on this machine cut a text, special tokens included; as they say without it.
    """

    pooling: Pooling | None = None
    task: str | None = None
    late_chunking: bool = False
    tokenizer: str | None = None
    max_tokens: int | None = None

    def check(self, specs: Sequence[str]) -> None:
        """InputError for what is of none of these models."""
        given = {"--api-task": self.task, "--late-chunking": self.late_chunking, "--tokenizer": self.tokenizer}
        for option, value in given.items():
            if value and not any(map(is_api, specs)):
                raise InputError(f"{option} is for embeddings APIs (openai:, jina:, http://...#MODEL): none is named.")
        if self.max_tokens and not any(map(_is_here, specs)):
            raise InputError("--max-tokens is for embedding models on this machine: none is named.")
        if self.pooling and not any(map(_is_bare, specs)):
            raise InputError(
                f"--pooling {self.pooling} is for plain transformers encoders, and each of these models has its own."
            )

    def encoder(self, spec: str, answers: Answers | None = None) -> TextEncoder:
        """The embedding model that `spec` names, as services.encoders, or static:FILE."""
        if spec.startswith(_STATIC):
            return StaticVectors(spec.removeprefix(_STATIC))
        if is_api(spec):
            return open_encoder(
                spec, answers=answers, task=self.task, late_chunking=self.late_chunking, tokenizer=self.tokenizer
            )
        pooling = self.pooling if self.pooling and _is_bare(spec) else None
        return open_encoder(spec, answers=answers, pooling=pooling, max_tokens=self.max_tokens)

    def identify(self, spec: str) -> tuple[str, Identified]:
        """Its name as it stands in results, with what shapes it; and name and fingerprint. It isn't loaded for that.

        InputError for what isn't there, and where the folder's list of training texts is damaged.
        """
        found: Identified = locate(_named(spec)) if is_reranker(spec) else self.encoder(spec).model
        if isinstance(found, Model):
            training_digests(found.path)  # a fault is told before any model has worked
        name = found.name
        if is_reranker(spec):
            return name, found
        if is_api(spec):
            return f"{name}, late chunking" if self.late_chunking else name, found
        if isinstance(found, Model) and is_bare(found):
            name += f", {self.pooling or 'mean'} pooling"
        if self.max_tokens and _is_here(spec):
            name += f", {self.max_tokens} tokens"
        return name, found


def is_reranker(spec: str) -> bool:
    """Whether this names a cross-encoder, which gives numbers of pairs and no vectors."""
    return spec.startswith(_RERANKER)


def open_reranker(spec: str, answers: Answers | None = None) -> Reranker:
    """The cross-encoder of reranker:NAME."""
    return Reranker(_named(spec), answers=answers)


def _named(spec: str) -> str:
    return spec.removeprefix(_RERANKER)


def _is_here(spec: str) -> bool:
    return not (is_api(spec) or is_reranker(spec) or spec.startswith(_STATIC))


def _is_bare(spec: str) -> bool:
    return _is_here(spec) and is_bare(locate(spec))
