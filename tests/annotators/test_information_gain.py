from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from stscurate.annotators.base import Pair, Plan
from stscurate.annotators.information_gain import InformationGainAnnotator, Paraphrase
from stscurate.progress import silent
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import LanguageModel
from tests.tiny_models import SENTENCES, tiny_causal_lm

# Short: the tiny model's window is 512 tokens, and its tokens are nearly letters.
PROMPT = Paraphrase(
    "Sentence: {text}\nSame:", "Sentence:", [["A man sings.", "A man is singing."], ["It rains.", "Rain."]]
)
PAIRS = [Pair(f"p{i}", a, b) for i, (a, b) in enumerate(zip(SENTENCES, (*SENTENCES[3:], *SENTENCES[:3]), strict=True))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_causal_lm(tmp_path_factory.mktemp("models") / "tiny-lm")


@torch.inference_mode()
def slow_gains(folder: Path, pairs: list[Pair]) -> list[float]:
    """Information gain word for word, one sequence at a time."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    def log_p(context: list[int], target: list[int]) -> float:
        logits = network(input_ids=torch.tensor([context + target])).logits[0].double().log_softmax(1)
        return sum(float(logits[len(context) + i - 1][token]) for i, token in enumerate(target))

    prefix = ids("Sentence: A man sings.\nSame: A man is singing.\n\nSentence: It rains.\nSame: Rain.\n\n")
    gains = []
    for pair in pairs:
        both = []
        for a, b in ((pair.text1, pair.text2), (pair.text2, pair.text1)):
            given = log_p(prefix + ids(f"Sentence: {a}\nSame:"), ids(f" {b}"))
            alone = log_p(prefix + ids("Sentence:"), ids(f" {b}"))
            both.append((given - alone) / -alone)
        gains.append(sum(both) / 2)
    return gains


def voted(model: LanguageModel, pairs: list[Pair], path: Path, **options: Any) -> list[dict[str, Any]]:
    path.mkdir(exist_ok=True)
    with Answers(path / "answers.sqlite") as answers:
        annotator = InformationGainAnnotator("tiny", model, prompt=PROMPT, **options)
        return [row for rows in annotator.vote(pairs, answers, silent) for row in rows]


def test_the_gain_equals_a_plain_slow_loop_whatever_the_batch(folder: Path, tmp_path: Path) -> None:
    oracle = slow_gains(folder, PAIRS)
    for rows in (1, 5, 32):
        votes = voted(LanguageModel(str(folder), precision="fp32", rows=rows), PAIRS, tmp_path / str(rows))
        assert [vote["raw"] for vote in votes] == pytest.approx(oracle, abs=1e-4)
    assert {(v["order"], v["scale"], v["cut"], v["error"]) for v in votes} == {("both", "relative", 0, None)}
    assert [vote["pair_id"] for vote in votes] == [pair.pair_id for pair in PAIRS]


def test_both_directions_and_their_parts_are_told(folder: Path, tmp_path: Path) -> None:
    model = LanguageModel(str(folder), precision="fp32")
    votes = voted(model, PAIRS, tmp_path)
    with Answers(tmp_path / "answers.sqlite") as answers:
        annotator = InformationGainAnnotator("tiny", model, prompt=PROMPT)
        gains = annotator.gains(PAIRS, answers, silent)
        back = annotator.gains([Pair(p.pair_id, p.text2, p.text1) for p in PAIRS], answers, silent)
        given, alone, tokens = annotator.parts(PAIRS, answers, silent)
    assert [vote["raw"] for vote in votes] == pytest.approx(gains.mean(axis=1))
    assert back == pytest.approx(gains[:, ::-1])
    assert gains == pytest.approx(1 - given / alone)
    assert tokens[0].tolist() == [len(ids) for ids in model.ids([f" {PAIRS[0].text2}", f" {PAIRS[0].text1}"])]


def test_the_gain_is_symmetric(folder: Path, tmp_path: Path) -> None:
    model = LanguageModel(str(folder), precision="fp32")
    there = voted(model, PAIRS, tmp_path)
    back = voted(model, [Pair(pair.pair_id, pair.text2, pair.text1) for pair in PAIRS], tmp_path)
    assert [v["raw"] for v in there] == pytest.approx([v["raw"] for v in back], abs=1e-4)


def test_a_long_text_is_read_up_to_its_limit_and_the_rest_counted(folder: Path, tmp_path: Path) -> None:
    model = LanguageModel(str(folder), precision="fp32")
    long = " ".join(SENTENCES)
    count = len(model.ids([long])[0])
    (whole,) = model.heads([long], 40)[0]
    cut, short = voted(
        model, [Pair("cut", long, SENTENCES[4]), Pair("short", whole, SENTENCES[4])], tmp_path, max_tokens=40
    )
    assert (cut["cut"], short["cut"]) == (count - 40, 0)
    assert cut["raw"] == short["raw"]


def test_the_plan_counts_what_is_to_be_computed(folder: Path, tmp_path: Path) -> None:
    annotator = InformationGainAnnotator("tiny", LanguageModel(str(folder), precision="fp32"), prompt=PROMPT)
    with Answers(tmp_path / "answers.sqlite") as answers:
        # Twelve texts, each once alone, and each of twelve pairs in both directions.
        assert annotator.plan(PAIRS, answers) == Plan("tiny", "likelihoods", 36, 0)
        list(annotator.vote(PAIRS, answers, silent))
        assert annotator.plan(PAIRS, answers) == Plan("tiny", "likelihoods", 0, 36)


def test_the_packaged_prompt_is_the_one_that_was_measured() -> None:
    prompt = Paraphrase.load()
    assert prompt.after("{b} \\1") == "Sentence: {b} \\1\nSame meaning in other words:"
    assert prompt.prefix.startswith(
        "Sentence: The committee will meet again next week.\nSame meaning in other words: The panel's next meeting "
    )
    assert prompt.prefix.endswith("Same meaning in other words: An empty file makes the program crash.\n\n")
