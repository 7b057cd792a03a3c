from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.annotators import annotate, parse_spec, plan
from stscurate.annotators.information_gain import Paraphrase
from stscurate.disk import fingerprint
from stscurate.errors import InputError, SettingsChangedError
from stscurate.store import Run
from tests.annotators.runs import make_pairs, votes_of
from tests.services.chat_server import Answer, Request, answer_digit, chat_server, digit_of
from tests.tiny_models import SENTENCES, tiny_causal_lm, tiny_sentence_transformer


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return tiny_causal_lm(folder / "tiny-lm"), tiny_sentence_transformer(folder / "tiny-encoder")


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_a_chat_endpoint_votes_the_expected_digit_and_is_never_asked_twice(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 30)
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        first = annotate(run, [f"judge={server.url}#m"], concurrency=4)
        assert len(server.requests) == 30
        again = annotate(run, [f"judge={server.url}#m"], concurrency=2)
        assert len(server.requests) == 30
    assert (first.fresh, again.fresh, first.rows) == (True, False, 30)
    asked = {request["messages"][1]["content"]: request for request in server.requests}
    assert len(asked) == 30
    digits = [int(digit_of(request)) for request in asked.values()]
    found = votes_of(tmp_path / "run")
    assert [vote["pair_id"] for vote in found] == [f"p{i}" for i in range(30)]
    assert sorted(v["raw"] for v in found) == pytest.approx(sorted(d * 0.75 + (d + 1) % 6 * 0.25 for d in digits))
    assert {(v["annotator"], v["scale"], v["order"], v["sample"], v["tokens"]) for v in found} == {
        ("judge", "0..5", "ab", 0, 91)
    }
    sent = server.requests[0]
    (asked_by,) = {vote["prompt"] for vote in found}  # the card tells these words by that hash
    assert run.prompts[asked_by]["system"].strip() == sent["messages"][0]["content"]
    assert (sent["max_tokens"], sent["temperature"], sent["top_logprobs"]) == (4, 0, 20)
    # A key of OpenAI's doesn't go to another address.
    assert {headers["authorization"] for headers in server.headers} == {"Bearer none"}


def test_either_order_is_asked_where_both_are_wanted(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 3)
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        annotate(run, [f"{server.url}#org/judge"], both_orders=True)
    assert [(v["pair_id"], v["order"]) for v in votes_of(tmp_path / "run")] == [
        (f"p{i}", order) for i in range(3) for order in ("ab", "ba")
    ]
    contents = {request["messages"][1]["content"] for request in server.requests}
    assert any(f"<text1>\n{SENTENCES[0]} (0)\n" in c for c in contents)
    assert any(f"<text2>\n{SENTENCES[0]} (0)\n" in c for c in contents)
    assert {v["annotator"] for v in votes_of(tmp_path / "run")} == {"judge"}


def test_one_split_is_annotated_alone_and_the_rest_counted(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        entry = annotate(run, [f"{server.url}#m"], split="test")
        with pytest.raises(InputError, match="no pairs of split dev: it has test, train"):
            plan(run, [f"{server.url}#m"], split="dev")
    assert [vote["pair_id"] for vote in votes_of(tmp_path / "run")] == ["p4", "p9"]
    assert (entry.tally.rows_in, dict(entry.tally.dropped)) == (10, {"other_split": 8})


def test_a_text_that_is_too_long_is_cut_and_counted(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 1, lambda i: ("a" * 405, "short"))
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        entry = annotate(run, [f"{server.url}#m"], max_tokens=100)
    assert f"\n{'a' * 400} [...]\n" in server.requests[0]["messages"][1]["content"]
    assert votes_of(tmp_path / "run")[0]["cut"] == 2
    assert entry.tally.counts["cut"] == {"m": 1}


_ANNOTATE = """
import sys; from pathlib import Path
from stscurate.annotators import annotate; from stscurate.store import Run
with Run.open(Path(sys.argv[1])) as run: annotate(run, sys.argv[2:], concurrency=4)
"""


def test_after_a_kill_only_what_was_in_flight_is_asked_again_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    def slow(request: Request, count: int) -> Answer:
        time.sleep(0.05)
        return answer_digit(request, count)

    for name in ("killed", "whole"):
        make_pairs(tmp_path / name, 60)
    with chat_server(slow) as server:
        spec = f"judge={server.url}#m"
        process = subprocess.Popen([sys.executable, "-c", _ANNOTATE, str(tmp_path / "killed"), spec])
        while len(server.requests) < 20:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
        with Run.open(tmp_path / "killed") as run:
            annotate(run, [spec], concurrency=4)
        assert 60 <= len(server.requests) <= 64
    # Elsewhere, by another server: the name stands for the endpoint.
    with chat_server() as server, Run.open(tmp_path / "whole") as run:
        annotate(run, [f"judge={server.url}#m"], concurrency=1)
    assert fingerprint(tmp_path / "killed" / "votes") == fingerprint(tmp_path / "whole" / "votes")
    entries = [Run(tmp_path / name).entries["votes"].as_dict() for name in ("killed", "whole")]
    assert entries[0] == entries[1]


def test_models_here_vote_beside_each_other_and_a_kill_changes_no_byte(
    tmp_path: Path, models: tuple[Path, Path]
) -> None:
    specs = [f"gain=local:{models[0]}", f"embedding:{models[1]}"]
    options: dict[str, Any] = {"max_tokens": 40}
    # The tiny model's window is short; its tokens are nearly letters.
    texts = [" ".join(text.split()[:4]) for text in SENTENCES]
    for name in ("killed", "whole"):
        make_pairs(tmp_path / name, 12, lambda i: (texts[i], texts[(i + 5) % 12]))

    class Killed(Exception):
        pass

    def kill(label: str, done: int, total: int | None) -> None:
        if label == "likelihoods of gain" and done > 0:
            raise Killed

    with Run.open(tmp_path / "killed") as run:
        with pytest.raises(Killed):
            annotate(run, specs, **options, progress=kill)
        annotate(run, specs, **options)
        with pytest.raises(SettingsChangedError, match="max_tokens"):
            annotate(run, specs, max_tokens=30)
    with Run.open(tmp_path / "whole") as run:
        entry = annotate(run, specs, **options)
    assert fingerprint(tmp_path / "killed" / "votes") == fingerprint(tmp_path / "whole" / "votes")
    assert entry.tally.counts["votes"] == {"gain": 12, "tiny-encoder": 12}
    gain = {vote["prompt"] for vote in votes_of(tmp_path / "whole") if vote["annotator"] == "gain"}
    assert {name: words["given"] for name, words in run.prompts.items()} == dict.fromkeys(gain, Paraphrase.load().given)
    assert entry.key["inputs"]["model:gain"] == fingerprint(models[0])
    assert str(models[0].parent) not in str(entry.key)

    from sentence_transformers import SentenceTransformer

    vectors = SentenceTransformer(str(models[1]), device="cpu").encode(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = [vote for vote in votes_of(tmp_path / "whole") if vote["annotator"] == "tiny-encoder"]
    oracle = [float(vectors[i] @ vectors[(i + 5) % 12]) for i in range(12)]
    assert [vote["raw"] for vote in found] == pytest.approx(oracle, abs=1e-5)


def test_specs_are_read_in_all_their_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_spec("http://me:hidden@127.0.0.1:8000/v1#org/llama-3")
    assert (found.name, found.kind, found.model) == ("llama-3", "http", "org/llama-3")
    assert (found.url, found.service) == ("http://me:hidden@127.0.0.1:8000/v1", "127.0.0.1:8000/v1")
    found = parse_spec("big=openai:gpt-5")
    assert (found.name, found.model, found.url, found.service) == ("big", "gpt-5", None, "big")
    assert parse_spec("openai:gpt-5").service == "openai"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1/")
    assert parse_spec("openai:gpt-5").url == "http://localhost:1/v1/"
    assert parse_spec("openai:gpt-5").service == "localhost:1/v1"
    found = parse_spec("local:/models/smol.gguf")
    assert (found.name, found.kind, found.model) == ("smol.gguf", "local", "/models/smol.gguf")
    assert parse_spec("embedding:all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"


@pytest.mark.parametrize("spec", ["", "gpt-5", "openai:", "http://host/v1", "ollama:x", "local", "a=b=local:x"])
def test_an_unknown_form_is_told_with_those_there_are(spec: str) -> None:
    with pytest.raises(
        InputError,
        match=r"openai:MODEL, http://HOST:PORT/v1#MODEL, local:MODEL, embedding:MODEL, reranker:MODEL or file:VOTES",
    ):
        parse_spec(spec)


@pytest.mark.parametrize("address", ["http://host:port/v1", "http:///v1", "http://me:hidden@[::1/v1"])
def test_an_address_that_is_none_is_told(address: str) -> None:
    with pytest.raises(InputError, match="is no endpoint's address") as raised:
        parse_spec(f"{address}#m")
    assert "hidden" not in str(raised.value)


def test_mistakes_in_naming_are_told_before_anything_is_asked(tmp_path: Path, models: tuple[Path, Path]) -> None:
    make_pairs(tmp_path / "run", 2)
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        with pytest.raises(InputError, match=r"Two annotators are named m: .*NAME=https://other/v1#m"):
            annotate(run, [f"{server.url}#m", "https://other/v1#m"])
        with pytest.raises(InputError, match="No annotator is named"):
            annotate(run, [])
        with pytest.raises(InputError, match="OPENAI_API_KEY, which isn't set"):
            annotate(run, [f"{server.url}#m", "openai:gpt-5"])
        with pytest.raises(InputError, match="no model at"):
            annotate(run, [f"{server.url}#m", "local:./nowhere"])
    assert server.requests == []


def test_an_openai_server_is_asked_with_the_key_and_the_address_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pairs(tmp_path / "run", 2)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        annotate(run, ["openai:gpt-x"])
    assert [headers["authorization"] for headers in server.headers] == ["Bearer sk-mine"] * 2
    assert {request["model"] for request in server.requests} == {"gpt-x"}
    assert "sk-mine" not in (tmp_path / "run" / "manifest.json").read_text()
