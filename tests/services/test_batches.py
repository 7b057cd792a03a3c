from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
import torch

from stscurate.errors import InputError
from stscurate.services.answers import Answers
from stscurate.services.batches import Batches, Item, is_out_of_memory, together
from stscurate.services.languagemodel import LanguageModel
from tests.tiny_models import SENTENCES, tiny_causal_lm


def some(count: int, length: int = 4) -> list[Item]:
    return [((number,) * length, (number,)) for number in range(count)]


def test_batches_stay_within_rows_and_tokens_and_go_from_short_to_long() -> None:
    items = [((1,) * length, (2,)) for length in (30, 3, 20, 2, 9, 1)]
    batches = Batches("m", items, rows=3, tokens=30, answers=None, key="k")
    found = []
    for batch in batches:
        with batches.shrinking():
            found.append([len(context) for context, _ in batch])
    assert found == [[1, 2, 3], [9], [20], [30]]


def test_where_memory_runs_out_the_batch_is_halved_until_it_fits_and_the_size_is_kept(tmp_path: Path) -> None:
    def sizes(items: list[Item], fits: int, rows: int = 16) -> list[int]:
        done = []
        batches = Batches("m", items, rows=rows, tokens=1000, answers=answers, key="k")
        for batch in batches:
            with batches.shrinking():
                if len(batch) > fits:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
                done.append(len(batch))
        return done

    with Answers(tmp_path / "answers.sqlite") as answers:
        assert sizes(some(40), fits=5) == [4] * 10
        assert json.loads(answers.get(["k"])["k"])[0] == 4
        # A later run begins with that size, though more would fit now; never with more than it is told to take.
        assert sizes(some(12), fits=100) == [4, 4, 4]
        assert sizes(some(4), fits=100, rows=2) == [2, 2]
        with pytest.raises(InputError, match="m has no memory for a pair of 5 tokens at once: lower --max-tokens"):
            sizes(some(3), fits=0)


def test_a_pass_reads_each_item_that_it_begins_with_and_none_is_gone_through_for_nothing() -> None:
    """Held to a comparison of all pairs, over all items of at most three tokens out of two."""
    parts = [part for size in range(3) for part in product((1, 2), repeat=size)]
    items = [(context, target) for context in parts for target in parts if len(context + target) <= 3]
    for seed in range(200):
        drawn = random.Random(seed).sample(items, seed % len(items) + 1)
        found = together(drawn)
        assert sorted(item for read in found.values() for item in read) == sorted(drawn)
        assert all(read[0] == gone for gone, read in found.items())
        assert all(begins(item, gone) for gone, read in found.items() for item in read)
        assert not any(begins(one, other) for one, other in permutations(found, 2))
        assert list(found.items()) == list(together(drawn[::-1]).items())


def begins(item: Item, other: Item) -> bool:
    (context, target), (before, behind) = item, other
    return (before + behind)[: len(context + target)] == context + target


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    batches = Batches("m", some(3), rows=4, tokens=100, answers=None, key="k")
    next(iter(batches))
    with pytest.raises(RuntimeError, match="shapes"), batches.shrinking():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"))
    assert not is_out_of_memory(ValueError("can't allocate memory"))


@contextmanager
def capped(megabytes: int) -> Iterator[None]:
    """The machine gives this process so much memory more, and nothing beyond."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + megabytes * 2**20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(sys.platform != "linux", reason="the cap on a process's memory is Linux's")
def test_a_model_goes_on_in_smaller_batches_where_the_machine_gives_no_more_memory(tmp_path: Path) -> None:
    """torch's allocator itself fails, as it does on a machine that is too small; the numbers are the same."""
    model = LanguageModel(str(tiny_causal_lm(tmp_path / "model")), precision="fp32", rows=2000, tokens=10**6)
    texts = model.ids([f"{number} dogs run across the wet grass of the park number {number}" for number in range(1200)])
    items = list(zip(texts, texts[::-1], strict=True))
    model.log_likelihoods((), items[:4])  # loads it
    seen: list[int] = []

    def progress(label: str, done: int, total: int | None) -> None:
        seen.append(done)

    with Answers(tmp_path / "answers.sqlite") as answers:
        with capped(megabytes=16):
            found = model.log_likelihoods((), items, answers=answers, progress=progress)
        assert 1 < max(np.diff(seen)) < 1000
    assert found[:100] == pytest.approx(model.log_likelihoods((), items[:100]), abs=1e-3)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "glm4"])
def test_numbers_do_not_change_with_the_batch_size_in_fp32(tmp_path: Path, kind: str) -> None:
    folder = tiny_causal_lm(tmp_path / kind, kind=kind)
    likelihoods, chances = [], []
    for rows in (1, 7, 32):
        model = LanguageModel(str(folder), precision="fp32", rows=rows)
        texts = model.ids([*SENTENCES, " ".join(SENTENCES[:3])])
        prefix = model.ids(["Compare: "])[0]
        likelihoods.append(model.log_likelihoods(prefix, list(zip(texts, texts[::-1], strict=True))))
        chances.append(model.probabilities(prefix, texts, [(5,), (9,), (5, 3)]))
    for found in (likelihoods, chances):
        assert found[0] == pytest.approx(found[1], abs=1e-4)
        assert found[0] == pytest.approx(found[2], abs=1e-4)
