from __future__ import annotations

from pathlib import Path

import pytest
import torch

from stscurate.annotators.base import Pair, Plan
from stscurate.annotators.reranker import RerankerAnnotator
from stscurate.errors import InputError
from stscurate.progress import silent
from stscurate.services.answers import Answers
from stscurate.services.reranker import Reranker
from tests.conftest import Command
from tests.tiny_models import SENTENCES, tiny_causal_lm, tiny_cross_encoder, tiny_sentence_transformer

PAIRS = [Pair(f"p{i}", a, b) for i, (a, b) in enumerate(zip(SENTENCES, (*SENTENCES[3:], *SENTENCES[:3]), strict=True))]


@pytest.fixture(scope="module")
def sigmoid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("models") / "judge")


@torch.inference_mode()
def logits(folder: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """By the model's own forward pass, one pair at a time."""
    from transformers import AutoTokenizer, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = BertForSequenceClassification.from_pretrained(folder).eval()
    return [float(network(**tokenizer(one, two, return_tensors="pt")).logits) for one, two in pairs]


def test_votes_are_the_models_own_numbers_in_either_order(sigmoid: Path, tmp_path: Path) -> None:
    annotator = RerankerAnnotator("judge", str(sigmoid), both_orders=True)
    with Answers(tmp_path / "answers.sqlite") as answers:
        assert annotator.plan(PAIRS, answers) == Plan("judge", "pairs in an order", 24, 0)
        votes = [row for rows in annotator.vote(PAIRS, answers, silent) for row in rows]
        assert annotator.plan(PAIRS, answers) == Plan("judge", "pairs in an order", 0, 24)
        assert [row for rows in annotator.vote(PAIRS, answers, silent) for row in rows] == votes
    assert [(v["pair_id"], v["order"]) for v in votes[:4]] == [("p0", "ab"), ("p0", "ba"), ("p1", "ab"), ("p1", "ba")]
    asked = [texts for p in PAIRS for texts in ((p.text1, p.text2), (p.text2, p.text1))]
    oracle = torch.tensor(logits(sigmoid, asked)).sigmoid().tolist()
    assert [v["raw"] for v in votes] == pytest.approx(oracle, abs=1e-5)
    assert {(v["scale"], v["scoring"], v["cut"]) for v in votes} == {("0..1", "cross-encoder", 0)}


def test_logits_are_votes_of_which_only_the_order_counts(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "logits", activation="torch.nn.modules.linear.Identity")
    with Answers(tmp_path / "answers.sqlite") as answers:
        votes = [row for rows in RerankerAnnotator("j", str(folder)).vote(PAIRS, answers, silent) for row in rows]
    assert {v["scale"] for v in votes} == {"relative"}
    assert [v["raw"] for v in votes] == pytest.approx(logits(folder, [(p.text1, p.text2) for p in PAIRS]), abs=1e-5)


def test_what_the_model_does_not_see_of_a_pair_is_counted(sigmoid: Path) -> None:
    from transformers import AutoTokenizer

    long = " ".join(SENTENCES)
    tokens = len(AutoTokenizer.from_pretrained(sigmoid)(long, long, truncation=False, verbose=False)["input_ids"])
    _, cut = Reranker(str(sigmoid)).score([(long, long), ("a", "b")])
    assert cut.tolist() == [tokens - 64, 0]


def test_a_kill_loses_one_batch_and_changes_no_number(sigmoid: Path, tmp_path: Path) -> None:
    pairs = [(p.text1, p.text2) for p in PAIRS]
    whole, _ = Reranker(str(sigmoid), batch_size=5).score(pairs)

    class Killed(Exception):
        pass

    def kill(label: str, done: int, total: int | None) -> None:
        if done >= 5:
            raise Killed

    with Answers(tmp_path / "answers.sqlite") as answers:
        reranker = Reranker(str(sigmoid), answers=answers, batch_size=5)
        with pytest.raises(Killed):
            reranker.score(pairs, progress=kill)
        assert reranker.known(pairs, answers) == 5
        resumed, _ = reranker.score(pairs)
    assert resumed.tolist() == whole.tolist()


def test_what_is_no_cross_encoder_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tiny-lm can't be loaded as a cross-encoder"):
        Reranker(str(tiny_causal_lm(tmp_path / "tiny-lm"))).score([("a", "b")])
    encoder = tiny_sentence_transformer(tmp_path / "encoder")
    with pytest.raises(InputError, match="no head that was trained to compare"):
        Reranker(str(encoder)).score([("a", "b")])
    (encoder / "modules.json").unlink()
    with pytest.raises(InputError, match="no head that was trained to compare"):
        Reranker(str(encoder)).score([("a", "b")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty holds no model \(no config.json\)"):
        Reranker(str(tmp_path / "empty")).score([("a", "b")])


def test_a_reranker_is_named_like_any_annotator(tmp_path: Path, sigmoid: Path, command: Command) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("text1,text2\nA cat.,A dog.\nRain.,Sun.\n")
    result = command("annotate", pairs, "--llm", f"reranker:{sigmoid}", "--both-orders", "--out", tmp_path / "run")
    assert (result.exit_code, "judge" in result.stdout) == (0, True)
