"""How chat models are asked, by the options of the command: tasks, languages, examples, samples, JSON, orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stscurate.store import Run
from tests.conftest import Command
from tests.services.chat_server import Answer, Request, answer_digit, chat_server, completion, error

PAIRS = "text1,text2\nThe file is empty.,An empty file.\nIt crashes.,It rains.\n"
GOLD = "sentence1,sentence2,score\nThe file is empty.,Nothing in the file.,5\nAn empty disk.,A file.,3\nRain.,Sun.,0\n"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def votes(folder: Path) -> list[dict[str, Any]]:
    return list(Run(folder).table("votes").to_pylist())


def says(text: str, **top: float) -> Any:
    def answer(request: Request, count: int) -> Answer:
        return Answer(completion(text, top=top or None))

    return answer


def test_a_duplicate_is_asked_in_chinese_and_voted_as_a_probability(
    tmp_path: Path, pairs: Path, command: Command
) -> None:
    with chat_server(says("是", 是=0.6, 否=0.2, 可能=0.2)) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run")
        assert command(*call, "--task", "duplicate", "--language", "zh").exit_code == 0
    assert "重复" in server.requests[0]["messages"][0]["content"]
    found = votes(tmp_path / "run")
    assert [(v["scale"], round(v["raw"], 6), round(v["missing_mass"], 6)) for v in found] == [("0..1", 0.75, 0.2)] * 2


def test_relevance_is_voted_from_one_to_ten(tmp_path: Path, pairs: Path, command: Command) -> None:
    with chat_server(says("10")) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--task", "relevance")
        assert command(*call).exit_code == 0
    assert [(v["scale"], v["raw"]) for v in votes(tmp_path / "run")] == [("1..10", 10.0)] * 2


def test_words_of_ones_own_are_asked_with_their_examples(tmp_path: Path, pairs: Path, command: Command) -> None:
    own = tmp_path / "own.toml"
    own.write_text('system = "Rate."\nuser = "{text1}|{text2}"\nscale = "1..4"\nexamples = [["a", "b", "4"]]\n')
    with chat_server(says("3")) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--prompt", own)
        assert command(*call, "--shots", 1).exit_code == 0
    contents = sorted([message["content"] for message in request["messages"]] for request in server.requests)
    assert contents == [
        ["Rate.", "a|b", "4", asked] for asked in ("It crashes.|It rains.", "The file is empty.|An empty file.")
    ]
    assert {v["scale"] for v in votes(tmp_path / "run")} == {"1..4"}


def test_examples_nearest_to_a_pair_are_shown_with_their_gold(tmp_path: Path, pairs: Path, command: Command) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text(GOLD)
    examples = ("--examples", gold, "--examples-scale", "0-5", "--shots", 1)
    with chat_server() as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", *examples)
        assert command(*call).exit_code == 0
    (asked,) = [r["messages"] for r in server.requests if "An empty file." in r["messages"][-1]["content"]]
    # The first gold pair shares a text with it; the second is the nearest of the others.
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "user"]
    assert "An empty disk." in asked[1]["content"]
    assert asked[2]["content"] == "3"


def test_several_samples_are_drawn_at_temperature_one_and_stand_each_in_a_row(
    tmp_path: Path, pairs: Path, command: Command
) -> None:
    def answer(request: Request, count: int) -> Answer:
        return Answer(completion(str(request["seed"] % 6)))

    with chat_server(answer) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--seed", 7)
        assert command(*call, "--samples", 3).exit_code == 0
    assert {request["temperature"] for request in server.requests} == {1}
    found = votes(tmp_path / "run")
    assert [(v["sample"], v["raw"]) for v in found] == [(0, 1.0), (1, 2.0), (2, 3.0)] * 2
    scores = Run(tmp_path / "run").table("scores").to_pylist()
    assert [score["score"] for score in scores] == pytest.approx([2 / 5] * 2)


def test_json_is_asked_for_by_its_schema_and_nothing_else_is_a_vote(
    tmp_path: Path, pairs: Path, command: Command
) -> None:
    def answer(request: Request, count: int) -> Answer:
        rains = "It rains." in request["messages"][-1]["content"]
        return Answer(completion("5" if rains else '{"answer": 2}'))

    with chat_server(answer) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--json-schema")
        assert command(*call).exit_code == 0
    sent = server.requests[0]
    assert sent["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"] == [0, 1, 2, 3, 4, 5]
    assert sent["messages"][-1]["content"].endswith('one key "answer" and nothing else.')
    assert [(v["raw"], v["error"]) for v in votes(tmp_path / "run")] == [(2.0, None), (None, "parse")]


def test_an_endpoint_without_schemas_is_asked_without_and_its_json_read(
    tmp_path: Path, pairs: Path, command: Command
) -> None:
    def answer(request: Request, count: int) -> Answer:
        if "response_format" in request:
            return Answer(error("response_format isn't supported"), 400)
        return Answer(completion('{"answer": 2}'))

    with chat_server(answer) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--json-schema")
        assert command(*call).exit_code == 0
    assert [v["raw"] for v in votes(tmp_path / "run")] == [2.0, 2.0]


def test_both_orders_are_averaged_and_their_gap_is_told(tmp_path: Path, pairs: Path, command: Command) -> None:
    def answer(request: Request, count: int) -> Answer:
        content = request["messages"][-1]["content"]
        return (
            Answer(completion("4" if content.index("file is") < content.index("An empty") else "1"))
            if ("empty" in content)
            else Answer(completion("3"))
        )

    with chat_server(answer) as server:
        call = ("annotate", pairs, "--llm", f"{server.url}#m", "--out", tmp_path / "run", "--both-orders")
        assert command(*call).exit_code == 0
    run = Run(tmp_path / "run")
    assert [score["score"] for score in run.table("scores").to_pylist()] == pytest.approx([2.5 / 5, 3 / 5])
    assert run.entries["votes"].tally.counts["order_gap"] == {"m: none": 1, "m: above 0.3": 1}


def test_another_question_is_asked_anew_and_the_same_one_is_not(tmp_path: Path, pairs: Path, command: Command) -> None:
    with chat_server(answer_digit) as server:
        call = ("annotate", pairs, "--llm", f"m={server.url}#m", "--out", tmp_path / "run", "--yes")
        for options in ((), ("--shots", 2), (), ("--shots", 2)):
            assert command(*call, *options).exit_code == 0
        assert len(server.requests) == 4
