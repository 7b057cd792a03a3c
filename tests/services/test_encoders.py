"""Which model a name opens, here or behind an API."""

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from stscurate.errors import InputError
from stscurate.services.embeddings_api import EmbeddingsApi
from stscurate.services.encoder import Encoder
from stscurate.services.encoders import is_api, open_encoder
from tests.services.embeddings_server import embeddings_server, unit


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "JINA_API_KEY", "EMBEDDINGS_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("form", ["{}#tiny", "{}/embeddings#tiny", "{}/#tiny", "mine={}#tiny"])
def test_an_address_opens_an_api(form: str) -> None:
    with embeddings_server() as server:
        found = open_encoder(form.format(server.url))
        np.testing.assert_allclose(found.encode(["a"])[0], unit("a"), atol=1e-6)
    assert found.model.name == "tiny"
    assert is_api(form.format(server.url))


def test_a_named_endpoint_may_move_its_place() -> None:
    one, two, other = (
        open_encoder(spec).model.fingerprint
        for spec in ("mine=http://localhost:1/v1#m", "mine=http://localhost:2/v1#m", "http://localhost:2/v1#m")
    )
    assert one == two != other


def test_a_folder_opens_a_model_here(tiny_model: Path) -> None:
    found = open_encoder(str(tiny_model))
    assert isinstance(found, Encoder)
    assert not is_api(str(tiny_model))
    with pytest.raises(InputError, match="are for APIs"):
        open_encoder(str(tiny_model), task="retrieval.query")


def test_keys_go_only_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    with embeddings_server() as server:
        open_encoder(f"{server.url}#m").encode(["a"])
        monkeypatch.setenv("EMBEDDINGS_API_KEY", "own-key")
        open_encoder(f"{server.url}#m").encode(["a"])
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        open_encoder("openai:m").encode(["a"])
    keys = [headers.get("authorization") for headers in server.headers]
    assert keys == [None, "Bearer own-key", "Bearer openai-key"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("openai:m", "needs a key in OPENAI_API_KEY"),
        ("jina:m", "needs a key in JINA_API_KEY"),
        ("http://localhost:1/v1", "names no model of an API"),
        ("http://#m", "names no model of an API"),
        ("http://localhost:99999/v1#m", "names no model of an API"),
    ],
)
def test_a_name_that_opens_nothing_is_told(spec: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        open_encoder(spec)


def test_jinas_key_opens_jina(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JINA_API_KEY", "k")
    assert isinstance(open_encoder("jina:jina-embeddings-v3"), EmbeddingsApi)
    monkeypatch.setenv("JINA_API_KEY", "k\u00e9")
    with pytest.raises(InputError, match="JINA_API_KEY holds characters"):
        open_encoder("jina:jina-embeddings-v3")


def test_a_prompt_of_the_model_is_put_before_each_text(tiny_model: Path, tmp_path: Path) -> None:
    plain = SentenceTransformer(str(tiny_model), device="cpu")
    plain.prompts = {"query": "a cat: ", "passage": ""}
    plain.save(str(tmp_path / "prompted"), create_model_card=False)
    asked = open_encoder(str(tmp_path / "prompted"), prompt="query")
    assert isinstance(asked, Encoder)
    assert asked.prompts == {"query": "a cat: "}
    expected = open_encoder(str(tiny_model)).encode(["a cat: the dogs run"])
    np.testing.assert_allclose(asked.encode(["the dogs run"]), expected, atol=1e-6)
    with pytest.raises(InputError, match="has no prompt passage: it has query"):
        open_encoder(str(tmp_path / "prompted"), prompt="passage").encode(["x"])
