"""Texts -> unit vectors by an embeddings API (OpenAI's, Jina's, or a server that speaks like them).

Vectors are kept text by text as each request comes back, so that whatever ends a run, no text is paid for twice.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import requests
from numpy.typing import NDArray

from stscurate.errors import InputError, ServiceError, first_line
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers, answer_key
from stscurate.services.pacing import retry_after
from stscurate.services.tokenizer import Tokenizer
from stscurate.wording import counted

_TRIES = 6  # of one request, with pauses of 1, 2, 4, ... seconds between, or as long as the server asks
_LONGEST_PAUSE = 120.0  # seconds
_AGAIN = "Run the same command again later"
_NOBODY = re.compile("NewConnectionError|NameResolutionError")

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class ApiModel:
    """A model behind an API: its name, and a hash of all that shapes its vectors. What its weights are is unknown."""

    name: str
    fingerprint: str


class EmbeddingsApi:
    """A model behind `POST {url}/embeddings`, with `encode`, `token_counts`, `reads` and `cut` as `Encoder` has them.

    service: what names the server in the keys of kept vectors (its address by default). key: sent as a bearer token.
    task, late_chunking: Jina's parameters; late chunking holds for `encode_chunks` alone. batch_size: texts a request.
    tokenizer: name of a model whose tokenizer counts the texts' tokens; without one their lengths and what the server
    cuts off are unknown. timeout: seconds for one request. sleep, clock: as in `time`.
    """

    reads: int | None = None

    def __init__(
        self,
        url: str,
        model: str,
        *,
        service: str | None = None,
        key: str = "",
        key_name: str = "EMBEDDINGS_API_KEY",
        answers: Answers | None = None,
        batch_size: int = 64,
        task: str | None = None,
        late_chunking: bool = False,
        tokenizer: str | None = None,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ):
        self.late_chunking = late_chunking
        self._url = f"{url.rstrip('/')}/embeddings"
        self._place = re.sub(r"//[^/@]*@", "//", url)
        self._body: dict[str, Any] = {"model": model} | ({"task": task} if task else {})
        self._shape = {"service": service or self._place.rstrip("/"), **self._body}
        self.model = ApiModel(model, answer_key(**self._shape, late_chunking=late_chunking))
        self._key, self._key_name = key, key_name
        self._answers = answers
        self._batch_size = batch_size
        self._tokenizer = tokenizer
        self._timeout, self._sleep, self._clock = timeout, sleep, clock
        self._session = requests.Session()
        self._reached = False
        self._dimension: int | None = None

    def encode(self, texts: Sequence[str], *, progress: Progress = silent) -> Vectors:
        """Vectors of `texts`, (n, d) float32, rows of unit length; each distinct text is asked for once, ever.

        ServiceError where the server gives up, or answers what are no vectors; InputError where it refuses the key,
        the model or the texts.
        """
        distinct = list(dict.fromkeys(texts))
        keys = {text: answer_key(**self._shape, text=text) for text in distinct}
        found = self._kept(list(keys.values()))
        missing = [text for text in distinct if keys[text] not in found]
        for start in range(0, len(missing), self._batch_size):
            progress("embeddings", len(distinct) - len(missing) + start, len(distinct))
            batch = missing[start : start + self._batch_size]
            vectors = self._asked(batch, self._body, texts.index(batch[0]))
            self._keep({keys[text]: vector for text, vector in zip(batch, vectors, strict=True)})
            found.update({keys[text]: vector for text, vector in zip(batch, vectors, strict=True)})
        progress("embeddings", len(distinct), len(distinct))
        rows = [found[keys[text]] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self._dimension or 0), np.float32)

    def encode_chunks(self, documents: Sequence[Sequence[str]], *, progress: Progress = silent) -> list[Vectors]:
        """The vectors of each document's chunks, (chunks, d) each.

        With late chunking a document's chunks go in one request, where each is embedded in sight of the others.
        """
        if not self.late_chunking:
            flat = self.encode([chunk for document in documents for chunk in document], progress=progress)
            return np.split(flat, np.cumsum([len(document) for document in documents])[:-1])
        parts = []
        for done, document in enumerate(documents):
            progress("documents", done, len(documents))
            keys = [answer_key(**self._shape, chunks=list(document), chunk=place) for place in range(len(document))]
            found = self._kept(keys)
            if len(found) < len(keys):
                vectors = self._asked(document, self._body | {"late_chunking": True}, done)
                found = dict(zip(keys, vectors, strict=True))
                self._keep(found)
            parts.append(np.stack([found[key] for key in keys]))
        return parts

    def token_counts(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """Tokens of each text by the tokenizer that was named; None, unknown, without one."""
        if self._tokenizer is None:
            return None
        return np.array(Tokenizer(self._tokenizer).count(texts), dtype=np.int64)

    def cut(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """None: servers don't say what they cut off."""
        return None

    def _kept(self, keys: list[str]) -> dict[str, Vectors]:
        kept = self._answers.get(keys) if self._answers else {}
        found = {key: np.frombuffer(value, dtype="<f4") for key, value in kept.items()}
        for vector in found.values():
            self._same_dimension(len(vector))
        return found

    def _keep(self, vectors: Mapping[str, Vectors]) -> None:
        if self._answers:
            self._answers.put("embedding", {key: vector.astype("<f4").tobytes() for key, vector in vectors.items()})

    def _same_dimension(self, dimension: int) -> None:
        if self._dimension not in (None, dimension):
            raise ServiceError(
                f"{self.model.name} at {self._place} gives vectors of {dimension} numbers where it gave "
                f"{self._dimension} before: the server's model has changed. Begin anew with another --out."
            )
        self._dimension = dimension

    def _asked(self, texts: Sequence[str], body: Mapping[str, Any], first: int) -> Vectors:
        """Unit vectors of one request. first: the number of its first text, for messages."""
        answer = self._send({**body, "input": list(texts)}, first)
        try:
            rows = sorted(answer["data"], key=lambda row: row.get("index", 0))
            vectors = [np.array(row["embedding"], dtype=np.float64) for row in rows]
            if any(vector.ndim != 1 or not vector.size for vector in vectors):
                raise ValueError
        except (TypeError, LookupError, AttributeError, ValueError):
            raise ServiceError(
                f"{self._place} answered with something that holds no embeddings ({json.dumps(answer)[:80]}): check "
                "that the address ends where /embeddings follows."
            ) from None
        numbers = [row.get("index", place) for place, row in enumerate(rows)]
        if numbers != list(range(len(texts))):
            raise ServiceError(
                f"{self._place} gave {counted(len(vectors), 'vector')} for {counted(len(texts), 'text')}, or numbered "
                "them otherwise: nothing of this answer is kept. Take another server, or one that takes so many a "
                "request."
            )
        for place, vector in enumerate(vectors):
            self._same_dimension(len(vector))
            norm = float(np.linalg.norm(vector))
            if not (norm > 0 and np.isfinite(norm)):
                what = "a zero vector" if norm == 0 else "a vector that isn't finite"
                raise ServiceError(
                    f"{self.model.name} at {self._place} gives {what} for text {first + place} "
                    f"({texts[place][:40]!r}): drop that text, or take another model."
                )
        return np.stack([vector / np.linalg.norm(vector) for vector in vectors]).astype(np.float32)

    def _send(self, body: Mapping[str, Any], first: int) -> Any:
        told, pause = "", 0.0
        for tried in range(_TRIES):
            if tried:
                self._sleep(pause)
            pause = 2.0**tried
            try:
                response = self._session.post(
                    self._url, json=body, auth=self._sign, timeout=self._timeout, allow_redirects=False
                )
            except requests.exceptions.InvalidURL:
                raise InputError(f"{self._place} is no address: it reads http://HOST:PORT/v1 or the like.") from None
            except requests.RequestException as error:
                if not self._reached and _NOBODY.search(repr(error)):
                    raise ServiceError(
                        f"Nobody answers at {self._place}: start the server, or mend its address."
                    ) from None
                told = "no answer in time" if isinstance(error, requests.Timeout) else "the connection was lost"
                continue
            self._reached = True
            if response.status_code == 200:
                try:
                    return response.json()
                except ValueError:
                    told = "an answer that isn't whole JSON"
                    continue
            told = self._refusal(response, first, len(body["input"]))
            asked = retry_after(response.headers, self._clock())
            if asked is not None:
                pause = min(asked, _LONGEST_PAUSE)
        raise ServiceError(f"{self._place} fails after {_TRIES} tries ({told}). {self._again}")

    def _refusal(self, response: requests.Response, first: int, texts: int) -> str:
        """What a status says that may pass by itself; raises what won't. texts: of the request."""
        status, told = response.status_code, self._told(response)
        if status == 402 or "insufficient_quota" in response.text:
            raise ServiceError(
                f"{self._place} says that the account's credit is used up ({told}): top it up. {self._again}"
            )
        if status == 429 or status >= 500 or status == 408:
            return f"HTTP {status}: {told}"
        if status in (401, 403):
            raise InputError(f"{self._place} refuses the key ({told}): set {self._key_name} to a valid one.")
        if status in (404, 405):
            raise InputError(
                f"{self._place} has no embeddings of {self.model.name} ({told}): mend the model's name, or the address."
            )
        raise InputError(
            f"{self._place} refuses the texts from number {first} on (HTTP {status}: {told}): shorten or drop what it "
            f"names, or set the server to take {counted(texts, 'text')} a request."
        )

    def _told(self, response: requests.Response) -> str:
        """What the server said, on one line and without the key."""
        try:
            body = response.json()
            said = body.get("error", body.get("detail", body))
            said = said.get("message", said) if isinstance(said, dict) else said
        except (ValueError, AttributeError):
            said = response.text
        line = first_line(ValueError(" ".join(str(said or response.reason or "no message").split())))
        return line.replace(self._key, "***") if len(self._key) > 8 else line

    @property
    def _again(self) -> str:
        return (
            f"{_AGAIN}: what came back is kept." if self._answers else f"{_AGAIN}; it keeps nothing, and asks for all."
        )

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """As `auth` rather than a header: so the library never puts a password from .netrc in its place."""
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request
