"""Batches through a function: the same results in the same order, wherever it is done."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder
from stscurate.services.engine import Engine
from stscurate.store import Run
from stscurate.tables import texts_source
from stscurate.triplets import make_triplets
from tests.tiny_models import tiny_sentence_transformer

NUMBERS = list(range(23))
ROOT = Path(__file__).parents[2]


def squares(offset: int) -> Callable[[int], tuple[int, int]]:
    return lambda number: (number * number + offset, os.getpid())


def fails_at(place: int) -> Callable[[int], int]:
    def function(number: int) -> int:
        if number == place:
            raise InputError(f"{number} is no number to be squared.")
        return number

    return function


def dies(_: int) -> int:
    os._exit(1)


def no_model() -> Callable[[int], int]:
    raise InputError("There is no model here.")


def counted(taken: list[int]) -> Iterator[int]:
    for number in NUMBERS:
        taken.append(number)
        yield number


class Unasked(Engine):
    """Gets no batch, since all are kept."""

    def map(self, make: Any, batches: Any) -> Iterator[Any]:
        assert list(batches) == []
        return iter(())


def test_one_worker_works_in_this_process() -> None:
    assert list(Engine().map(partial(squares, 1), NUMBERS)) == [(number**2 + 1, os.getpid()) for number in NUMBERS]


def test_several_processes_give_the_same_in_the_same_order() -> None:
    found = list(Engine(workers=2).map(partial(squares, 1), NUMBERS))
    assert [value for value, _ in found] == [number**2 + 1 for number in NUMBERS]
    assert os.getpid() not in {process for _, process in found}


def test_batches_are_taken_when_there_is_a_worker_for_them() -> None:
    taken: list[int] = []
    results = Engine(workers=2).map(partial(squares, 0), counted(taken))
    next(results)
    assert taken == NUMBERS[:4]  # two for each worker
    assert len(list(results)) == len(NUMBERS) - 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_function_or_of_its_making_is_told_as_it_is(workers: int) -> None:
    with pytest.raises(InputError, match="7 is no number to be squared"):
        list(Engine(workers=workers).map(partial(fails_at, 7), NUMBERS))
    with pytest.raises(InputError, match="There is no model here"):
        list(Engine(workers=workers).map(no_model, NUMBERS))


def test_a_worker_that_dies_is_a_failure_with_its_mend() -> None:
    with pytest.raises(ServiceError, match=r"A worker has died.*fewer --workers"):
        list(Engine(workers=2).map(partial(partial, dies), NUMBERS))


def test_triplets_and_vectors_are_the_same_from_several_processes(tmp_path: Path) -> None:
    words = "the cat sat on a mat and looked at some dogs in long green grass".split()  # noqa: SIM905
    texts = [" ".join(words[(place + step) % len(words)] for step in range(9)) for place in range(30)]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    model = tiny_sentence_transformer(tmp_path / "model")
    source = texts_source(tmp_path / "texts.txt")
    hashes: dict[str, Any] = {}
    for name, engine in (("here", None), ("there", Engine(workers=2))):
        with Run.open(tmp_path / name) as run:
            make_triplets(run, source, tokenizer=str(model), engine=engine)
            hashes[name] = run.fingerprint("triplets")
    assert hashes["here"] == hashes["there"]
    with Answers(tmp_path / "answers.sqlite") as answers:
        there = Encoder(str(model), batch_size=4, engine=Engine(workers=2), answers=answers).encode(texts)
        np.testing.assert_array_equal(there, Encoder(str(model), batch_size=4).encode(texts))
        again = Encoder(str(model), batch_size=4, engine=Unasked(), answers=answers).encode(texts)
    np.testing.assert_array_equal(there, again)


BY_RAY = """
from functools import partial
import ray
from stscurate.errors import InputError
from stscurate.services.engine import Engine
from tests.services.test_engine import NUMBERS, fails_at, no_model, squares

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
engine = Engine("ray")
print([value for value, _ in engine.map(partial(squares, 1), NUMBERS)] == [number**2 + 1 for number in NUMBERS])
for make in (partial(fails_at, 7), no_model):
    try:
        list(engine.map(make, NUMBERS))
    except InputError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray isn't installed")
def test_ray_gives_the_same_and_tells_errors_as_they_are() -> None:
    done = subprocess.run([sys.executable, "-c", BY_RAY], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines() == ["True", "7 is no number to be squared.", "There is no model here."], done.stderr
