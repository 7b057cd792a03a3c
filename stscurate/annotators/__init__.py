"""Pairs -> votes: chat models behind an endpoint, language models and embedding models on this machine."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.annotators.base import Annotator, Pair, Plan, Row
from stscurate.errors import InputError, StscurateError
from stscurate.manifest import Entry
from stscurate.progress import Progress, silent
from stscurate.records import Tally, from_rows
from stscurate.services.answers import Answers
from stscurate.store import Run

FORMS = "openai:MODEL, http://HOST:PORT/v1#MODEL, local:MODEL or embedding:MODEL, with NAME= before it if you like"
_SHARD = 10_000  # pairs
_SPEC = re.compile(r"(?:(?P<name>[^=:/#\s]+)=)?(?P<form>(?:openai|local|embedding):.+|https?://[^#]+#.+)")


@dataclass(frozen=True)
class Spec:
    """An annotator as the user names it. kind: "openai", "http", "local" or "embedding"."""

    name: str
    kind: str
    model: str
    url: str | None  # of the endpoint; None where that is OpenAI's own, or there is none
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
    name = given or model.rstrip("/").rpartition("/")[2]
    address = _address(url) if url else "openai"
    return Spec(name, kind, model, url or None, given or address)


def annotate(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    both_orders: bool = False,
    max_tokens: int = 256,
    concurrency: int = 8,
    seed: int = 0,
    progress: Progress = silent,
) -> Entry:
    """Have each annotator of `specs` (see FORMS) vote on every pair of the run: stage and table "votes".

    split: only pairs of that split. both_orders: chat models are asked with the texts in either order. max_tokens:
    of each text, the head is read. concurrency: requests in flight at most, to each endpoint. seed: sent to chat
    endpoints.

    Every answer is kept in the run's answers.sqlite when it arrives, and never asked for again, also where it can't
    be read as a vote (a refusal, no number): asking again at temperature 0 would bring the same for the same price.
    Such votes stand in the table with their `error` and without `raw`, as do those whose ask the server won't take
    (HTTP 400) while it answers others; they are counted under "failed". Asks that bring no answer (timeouts, server
    errors, lost connections) are no votes: the stage isn't finished while there are any. Then ServiceError tells
    what is kept, and the same run again asks only for the rest.

    InputError for an unknown form, two annotators of one name, a missing key or an unknown model.
    """
    if concurrency < 1 or max_tokens < 1:
        raise InputError("--concurrency and --max-tokens are 1 at least.")
    parsed = _parse(specs)
    annotators = [_annotator(spec, both_orders, max_tokens, concurrency, seed) for spec in parsed]
    inputs = {"pairs": run.fingerprint("pairs")}
    for annotator in annotators:
        inputs |= annotator.inputs
    settings = {"annotators": [annotator.settings for annotator in annotators], "split": split}
    stage = run.stage("votes", tables=["votes"], inputs=inputs, settings=settings, seed=seed)
    if stage.entry:
        return stage.entry
    _check_key(parsed)
    pairs, left_out = _pairs(run, split)
    with Answers(run.folder / "answers.sqlite") as answers:
        voted = zip(*(_votes(annotator, pairs, answers, progress) for annotator in annotators), strict=True)
        for index, start in enumerate(range(0, len(pairs), _SHARD)):
            rows = [row for of_pair in islice(voted, _SHARD) for of_annotator in of_pair for row in of_annotator]
            if not stage.has(index):
                tally = _tally(len(pairs[start : start + _SHARD]), rows)
                if index == 0:
                    tally.rows_in += left_out
                    tally.drop("other_split", left_out)
                stage.write(index, {"votes": from_rows(rows, "votes")}, tally)
    return stage.commit()


def plan(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    both_orders: bool = False,
    max_tokens: int = 256,
    seed: int = 0,
) -> list[Plan]:
    """What `annotate` with the same arguments would ask each annotator, and what is answered; nothing is sent."""
    pairs, _ = _pairs(run, split)
    annotators = [_annotator(spec, both_orders, max_tokens, 1, seed) for spec in _parse(specs)]
    with Answers(run.folder / "answers.sqlite") as answers:
        return [annotator.plan(pairs, answers) for annotator in annotators]


def _parse(specs: Sequence[str]) -> list[Spec]:
    if not specs:
        raise InputError(f"No annotator is named: add --llm with {FORMS}.")
    parsed: dict[str, Spec] = {}
    for text in specs:
        spec = parse_spec(text)
        if spec.name in parsed:
            raise InputError(f"Two annotators are named {spec.name}: give one another name, --llm NAME={text}.")
        parsed[spec.name] = spec
    return list(parsed.values())


def _annotator(spec: Spec, both_orders: bool, max_tokens: int, concurrency: int, seed: int) -> Annotator:
    if spec.kind == "local":
        from stscurate.annotators.local import LocalAnnotator
        from stscurate.services.languagemodel import LanguageModel

        return LocalAnnotator(spec.name, LanguageModel(spec.model), max_tokens=max_tokens)
    if spec.kind == "embedding":
        from stscurate.annotators.embedding import EmbeddingAnnotator

        return EmbeddingAnnotator(spec.name, spec.model)
    from stscurate.annotators.chat import ChatAnnotator
    from stscurate.services.chat import ChatEndpoint

    # A key of OpenAI's goes to OpenAI, or where OPENAI_BASE_URL says, never to another address.
    key = _key() if spec.kind == "openai" else ""
    endpoint = ChatEndpoint(spec.model, base_url=spec.url, api_key=key or "none", concurrency=concurrency)
    return ChatAnnotator(
        spec.name, endpoint, service=spec.service, max_tokens=max_tokens, both_orders=both_orders, seed=seed
    )


def _key() -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError("OPENAI_API_KEY holds characters that no key has: export it again.")
    return key


def _check_key(specs: Sequence[Spec]) -> None:
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


def _pairs(run: Run, split: str | None) -> tuple[list[Pair], int]:
    """The pairs to vote on, and how many are left out as of another split."""
    table: pa.Table = run.table("pairs")
    kept = table if split is None else table.filter(pc.fill_null(pc.equal(table["split"], split), False))
    if not kept.num_rows:
        splits = ", ".join(sorted(str(value) for value in pc.unique(table["split"]).to_pylist() if value)) or "none"
        raise InputError(f"{run.folder} has no pairs" + (f" of split {split}: it has {splits}." if split else "."))
    columns = (kept[name].to_pylist() for name in Pair._fields)
    return [Pair(*values) for values in zip(*columns, strict=True)], table.num_rows - kept.num_rows


def _votes(annotator: Annotator, pairs: Sequence[Pair], answers: Answers, progress: Progress) -> Iterator[list[Row]]:
    def named(label: str, done: int, total: int | None) -> None:
        progress(f"{label} of {annotator.name}", done, total)

    try:
        yield from annotator.vote(pairs, answers, named)
    except StscurateError as error:
        known = annotator.plan(pairs, answers).known
        kept = f" {known} answers of {annotator.name} are kept: the same command goes on from there." if known else ""
        raise type(error)(f"{error}{kept}") from None


def _tally(pairs: int, rows: Sequence[Row]) -> Tally:
    tally = Tally(rows_in=pairs)
    for row in rows:
        tally.count("votes", row["annotator"])
        if row["error"]:
            tally.count("failed", f"{row['annotator']}: {row['error']}")
        if row["cut"]:
            tally.count("cut", row["annotator"])
    return tally
