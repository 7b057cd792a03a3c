"""Embeddings APIs, against a real server on this machine."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.services.answers import Answers
from stscurate.services.embeddings_api import EmbeddingsApi
from tests.services.embeddings_server import DIMENSION, Answer, Body, embeddings, embeddings_server, unit

TEXTS = [f"text number {number}" for number in range(10)]


def api(url: str, **options: Any) -> EmbeddingsApi:
    return EmbeddingsApi(url, "tiny", **({"sleep": lambda seconds: None} | options))


def test_vectors_are_the_servers_own_at_unit_length_in_the_order_asked() -> None:
    with embeddings_server() as server:
        found = api(server.url, batch_size=4).encode([*TEXTS, TEXTS[3]])
    assert found.dtype == np.float32
    assert found.shape == (11, DIMENSION)
    np.testing.assert_allclose(found, [unit(text) for text in [*TEXTS, TEXTS[3]]], atol=1e-6)
    assert [len(body["input"]) for body in server.bodies] == [4, 4, 2]  # the repeated text isn't asked for again
    assert server.bodies[0]["model"] == "tiny"
    assert server.headers[0]["path"] == "/v1/embeddings"
    assert api(server.url).encode([]).shape == (0, 0)


def test_rows_that_come_in_another_order_are_put_in_their_places() -> None:
    def backwards(body: Body, number: int) -> Answer:
        return 200, {"data": embeddings(body)["data"][::-1]}, {}

    with embeddings_server(backwards) as server:
        np.testing.assert_allclose(api(server.url).encode(TEXTS), [unit(text) for text in TEXTS], atol=1e-6)


def test_a_server_that_stops_half_way_is_gone_on_with_where_it_was(tmp_path: Path) -> None:
    broken = True

    def stops(body: Body, number: int) -> Answer | None:
        return (503, {"error": {"message": "overloaded"}}, {}) if broken and number >= 2 else None

    with embeddings_server(stops) as server, Answers(tmp_path / "kept.sqlite") as answers:
        with pytest.raises(ServiceError, match=r"fails after 6 tries \(HTTP 503: overloaded\).* is kept"):
            api(server.url, batch_size=3, answers=answers).encode(TEXTS)
        assert len(server.bodies) == 2 + 6
        with pytest.raises(ServiceError, match="it keeps nothing, and asks for all"):
            api(server.url, batch_size=3).encode(TEXTS)
        broken = False
        server.bodies.clear()
        again = api(server.url, batch_size=3, answers=answers).encode(TEXTS)
        assert server.texts == TEXTS[6:]
        np.testing.assert_allclose(again, [unit(text) for text in TEXTS], atol=1e-6)
        assert api(server.url, answers=answers).encode(TEXTS[::-1]).tobytes() == again[::-1].tobytes()
        assert server.texts == TEXTS[6:]


def test_limits_are_waited_out_as_long_as_the_server_asks() -> None:
    def limited(body: Body, number: int) -> Answer | None:
        return [(429, {"detail": "slow down"}, {"Retry-After": "7"}), (500, b"", {})][number] if number < 2 else None

    waited: list[float] = []
    with embeddings_server(limited) as server:
        found = api(server.url, sleep=waited.append).encode(TEXTS)
    assert waited == [7.0, 2.0]
    assert len(found) == len(TEXTS)


def test_tasks_and_late_chunking_are_asked_for_as_jina_has_them(tmp_path: Path) -> None:
    documents = [TEXTS[:3], TEXTS[3:4]]
    with embeddings_server() as server, Answers(tmp_path / "kept.sqlite") as answers:
        late = api(server.url, task="retrieval.passage", late_chunking=True, answers=answers)
        chunks = late.encode_chunks(documents)
        assert [body["input"] for body in server.bodies] == documents
        assert all(body["late_chunking"] and body["task"] == "retrieval.passage" for body in server.bodies)
        assert [len(part) for part in chunks] == [3, 1]
        assert chunks[0][0] @ unit(TEXTS[0]) < 0.999  # it has seen its neighbours
        late.encode_chunks(documents)
        assert len(server.bodies) == 2
        alone = late.encode(TEXTS[:1])  # asked for alone, it isn't the kept chunk
        np.testing.assert_allclose(alone[0], unit(TEXTS[0]), atol=1e-6)
        assert "late_chunking" not in server.bodies[-1]
        plain = api(server.url, answers=answers).encode_chunks(documents)
        np.testing.assert_allclose(np.concatenate(plain), [unit(text) for text in TEXTS[:4]], atol=1e-6)


def test_other_tasks_and_models_are_kept_apart(tmp_path: Path) -> None:
    with embeddings_server() as server, Answers(tmp_path / "kept.sqlite") as answers:
        api(server.url, answers=answers).encode(TEXTS[:1])
        api(server.url, answers=answers, task="text-matching").encode(TEXTS[:1])
        EmbeddingsApi(server.url, "other", answers=answers).encode(TEXTS[:1])
        assert len(server.bodies) == 3
        assert api(server.url).model.fingerprint != api(server.url, task="x").model.fingerprint


def test_the_key_goes_along_and_is_never_told() -> None:
    def refused(body: Body, number: int) -> Answer:
        return 401, {"error": {"message": "bad key secret-key-1"}}, {}

    told = r"refuses the key \(bad key \*\*\*\): set MY_KEY"
    with embeddings_server(refused) as server, pytest.raises(InputError, match=told) as caught:
        api(server.url, key="secret-key-1", key_name="MY_KEY").encode(TEXTS)
    assert server.headers[0]["authorization"] == "Bearer secret-key-1"
    assert "secret-key-1" not in str(caught.value)
    with embeddings_server() as server:
        api(server.url).encode(TEXTS)
    assert "authorization" not in server.headers[0]


def without(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Body, int], Answer]:
    """The due answer, changed."""

    def answer(body: Body, number: int) -> Answer:
        found = embeddings(body)
        change(found["data"])
        return 200, found, {}

    return answer


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.pop(), "gave 9 vectors for 10 texts.* Take another server"),
        (lambda rows: rows[3].update(index=8), "10 vectors for 10 texts, or numbered them otherwise"),
        (lambda rows: rows[3].update(embedding=[float("nan")] * 8), "isn't finite for text 3 .'text number 3'"),
        (lambda rows: rows[3].update(embedding=[None] * 8), "isn't finite for text 3"),
        (lambda rows: rows[3].update(embedding=[0] * 8), "a zero vector for text 3"),
        (lambda rows: rows[3].update(embedding=[1.0] * 7), "vectors of 7 numbers where it gave 8"),
        (lambda rows: rows[3].update(embedding="AAAA"), "holds no embeddings"),
        (lambda rows: rows[3].pop("embedding"), "holds no embeddings"),
    ],
)
def test_an_answer_that_is_wrong_is_told_and_not_kept(change: Any, told: str, tmp_path: Path) -> None:
    with embeddings_server(without(change)) as server, Answers(tmp_path / "kept.sqlite") as answers:
        with pytest.raises(ServiceError, match=told):
            api(server.url, answers=answers).encode(TEXTS)
        assert answers.keys("embedding") == set()


def test_another_dimension_in_the_middle_is_noticed_also_after_a_stop(tmp_path: Path) -> None:
    def shrinks(body: Body, number: int) -> Answer | None:
        rows = [{"index": place, "embedding": [1.0, 2.0]} for place, _ in enumerate(body["input"])]
        return (200, {"data": rows}, {}) if number >= 2 else None

    with embeddings_server(shrinks) as server, Answers(tmp_path / "kept.sqlite") as answers:
        for _ in range(2):
            with pytest.raises(ServiceError, match=r"2 numbers where it gave 8 before.* another --out"):
                api(server.url, answers=answers, batch_size=4).encode(TEXTS)
        assert len(server.bodies) == 4


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (404, InputError, r"has no embeddings of tiny \(too long\): mend the model's name, or the address"),
        (422, InputError, r"refuses the texts from number 0 on \(HTTP 422: too long\): .* to take 10 texts a request"),
        (402, ServiceError, "credit is used up"),
    ],
)
def test_what_no_repetition_mends_is_asked_once(status: int, error: type[Exception], told: str) -> None:
    refusal: Answer = (status, {"detail": "too long"}, {})
    with embeddings_server(lambda body, number: refusal) as server, pytest.raises(error, match=told):
        api(server.url).encode(TEXTS)
    assert len(server.bodies) == 1


def test_an_answer_that_is_no_json_is_asked_for_again_and_then_told() -> None:
    page: Answer = (200, b"<html>", {})
    with embeddings_server(lambda body, number: page) as server, pytest.raises(ServiceError, match="isn't whole JSON"):
        api(server.url).encode(TEXTS)
    assert len(server.bodies) == 6
    chat: Answer = (200, {"choices": []}, {})
    told = r"holds no embeddings \(\{\"choices\""
    with embeddings_server(lambda body, number: chat) as server, pytest.raises(ServiceError, match=told):
        api(server.url).encode(TEXTS)


def test_nobody_at_the_address_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(ServiceError, match=f"Nobody answers at http://127.0.0.1:{port}/v1: .* mend its address"):
        api(f"http://user:password@127.0.0.1:{port}/v1").encode(TEXTS)


def test_lengths_are_unknown_without_a_tokenizer(tiny_model: Path) -> None:
    unknown = api("http://127.0.0.1:1/v1")
    assert (unknown.token_counts(["a cat"]), unknown.cut(["a cat"]), unknown.reads) == (None, None, None)
    counts = api("http://127.0.0.1:1/v1", tokenizer=str(tiny_model)).token_counts(["cat", "cat cat"])
    assert counts is not None
    assert counts.tolist() == [3, 4]  # [CLS] and [SEP] count
