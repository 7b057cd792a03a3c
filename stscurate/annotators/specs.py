"""The annotators that a user names: from the text of an --llm to the object that votes."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict
from urllib.parse import urlsplit

from stscurate.annotators.base import Annotator
from stscurate.annotators.examples import Nearest
from stscurate.annotators.prompts import Language, Prompt
from stscurate.errors import InputError
from stscurate.resources import definition
from stscurate.services.engine import Engine
from stscurate.services.purse import Prices

Scoring = Literal["gain", "digits"]
FORMS = (
    "openai:MODEL, http://HOST:PORT/v1#MODEL, local:MODEL, embedding:MODEL, reranker:MODEL or file:VOTES, "
    "with NAME= before it if you like"
)
_SPEC = re.compile(r"(?:(?P<name>[^=:/#\s]+)=)?(?P<form>(?:openai|local|embedding|reranker|file):.+|https?://[^#]+#.+)")


class Options(TypedDict, total=False):
    """What shapes the votes of annotators, each kind taking what concerns it; the defaults are those of `build`.

    prompt: what models are asked; the task similarity, in English, by default. nearest: gold that examples are drawn
    from. max_tokens: of each text, the head is read. both_orders: models that read a pair in its order are asked in
    either. samples: asks a pair, order and chat model. json_schema: chat models answer in JSON. seed: sent to
    endpoints. scoring: of local models whose spec doesn't end in #gain or #digits; gain asks no question. language: in
    which it expects a paraphrase. trust_remote_code: whether code that lies beside a local model may run.
    engine: where texts are encoded.
    """

    prompt: Prompt
    nearest: Nearest | None
    max_tokens: int
    both_orders: bool
    samples: int
    json_schema: bool
    seed: int
    scoring: Scoring
    language: Language
    trust_remote_code: bool
    engine: Engine | None


@dataclass(frozen=True)
class Spec:
    """An annotator as the user names it. kind: "openai", "http", "local", ..., as in FORMS."""

    name: str
    kind: str
    model: str
    url: str | None  # of the endpoint; None where that is OpenAI's own, or there is none
    scoring: str | None  # of a local model, where the spec says it
    service: str  # what stands for the endpoint in the manifest: the user's NAME, else its address


def parse_spec(text: str) -> Spec:
    """Read one --llm. InputError listing the forms where it is none of them."""
    found = _SPEC.fullmatch(text.strip())
    if not found:
        raise InputError(f"--llm {text} names no annotator: give {FORMS}.")
    given, form = found["name"], found["form"]
    if form.startswith("http"):
        url, _, model = form.partition("#")
        kind = "http"
    else:
        kind, _, model = form.partition(":")
        url = os.environ.get("OPENAI_BASE_URL", "") if kind == "openai" else ""
    scoring = None
    if kind == "local" and model.endswith(("#gain", "#digits")):
        model, _, scoring = model.rpartition("#")
    last = model.rstrip("/").rpartition("/")[2]
    if kind == "file":
        last = last.partition("#")[0]
    name = given or last + ("-digits" if scoring == "digits" else "")
    address = _address(url) if url else "openai"
    return Spec(name, kind, model, url or None, scoring, given or address)


def parse_specs(specs: Sequence[str]) -> list[Spec]:
    """Read all --llm. InputError without any, or where two have one name."""
    if not specs:
        raise InputError(f"No annotator is named: add --llm with {FORMS}.")
    parsed: dict[str, Spec] = {}
    for text in specs:
        spec = parse_spec(text)
        if spec.name in parsed:
            raise InputError(f"Two annotators are named {spec.name}: give one another name, --llm NAME={text}.")
        parsed[spec.name] = spec
    return list(parsed.values())


def build(
    spec: Spec,
    *,
    timeout: float = 60.0,
    prices: Prices | None = None,
    batch: bool = False,
    prompt: Prompt | None = None,
    nearest: Nearest | None = None,
    max_tokens: int = 256,
    both_orders: bool = False,
    samples: int = 1,
    json_schema: bool = False,
    seed: int = 0,
    scoring: Scoring = "gain",
    language: Language = "en",
    trust_remote_code: bool = False,
    engine: Engine | None = None,
) -> Annotator:
    """The annotator itself; a model here is looked for now, and loaded when it is first needed.

    timeout: seconds for one request to an endpoint. prices: of its models; those of the package by default. batch: they
    are asked in batches. engine: where texts are encoded.
    """
    if max_tokens < 1 or samples < 1 or timeout <= 0:
        raise InputError("--max-tokens and --samples are 1 at least, and --timeout is above 0.")
    if spec.kind == "local":
        from stscurate.annotators.digits import DigitAnnotator
        from stscurate.annotators.information_gain import InformationGainAnnotator, Paraphrase
        from stscurate.services.languagemodel import LanguageModel

        model = LanguageModel(spec.model, trust_remote_code=trust_remote_code)
        if (spec.scoring or scoring) == "gain":
            words = Paraphrase.load(language)
            return InformationGainAnnotator(spec.name, model, max_tokens=max_tokens, prompt=words)
        return DigitAnnotator(
            spec.name, model, prompt=prompt, nearest=nearest, max_tokens=max_tokens, both_orders=both_orders
        )
    if spec.kind == "file":
        return _people(spec)
    if spec.kind == "reranker":
        from stscurate.annotators.reranker import RerankerAnnotator

        return RerankerAnnotator(spec.name, spec.model, both_orders=both_orders)
    if spec.kind == "embedding":
        from stscurate.annotators.embedding import EmbeddingAnnotator

        return EmbeddingAnnotator(spec.name, spec.model, engine=engine)
    from stscurate.annotators.chat import ChatAnnotator
    from stscurate.services.chat import ChatEndpoint

    # A key of OpenAI's goes to OpenAI, or where OPENAI_BASE_URL says, never to another address.
    key = _key() if spec.kind == "openai" else ""
    endpoint = ChatEndpoint(spec.model, base_url=spec.url, api_key=key or "none", timeout=timeout)
    return ChatAnnotator(
        spec.name,
        endpoint,
        service=spec.service,
        prompt=prompt,
        nearest=nearest,
        max_tokens=max_tokens,
        both_orders=both_orders,
        samples=samples,
        json_schema=json_schema,
        seed=seed,
        price=(prices or Prices.load(definition("prices.toml"))).get(spec.model),
        batch=batch,
    )


def _people(spec: Spec) -> Annotator:
    from stscurate.annotators.people import FileAnnotator

    path, scale = Path(spec.model).expanduser(), None
    if not path.exists() and "#" in spec.model:
        place, _, scale = spec.model.rpartition("#")
        path = Path(place).expanduser()
    return FileAnnotator(spec.name, path, scale=scale)


def _key() -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError("OPENAI_API_KEY holds characters that no key has: export it again.")
    return key


def check_key(specs: Sequence[Spec]) -> None:
    """InputError where OpenAI itself is to be asked, and there is no key for it."""
    for spec in specs:
        if spec.kind == "openai" and not spec.url and not _key():
            raise InputError(
                f"--llm openai:{spec.model} needs the key of an OpenAI account in OPENAI_API_KEY, which isn't set: "
                "export it, or name another server by OPENAI_BASE_URL or http://HOST:PORT/v1#MODEL."
            )


def _address(url: str) -> str:
    """An endpoint's address without user and password. InputError where it is none."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise InputError(
            f"{url.rpartition('@')[2]} is no endpoint's address: it reads http://HOST:PORT/v1 or the like."
        )
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
