"""Texts that are found by the others of their group, held to a slow loop."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from stscurate.errors import InputError
from stscurate.evaluation import Wanted, evaluate_all
from stscurate.evaluation.metrics.retrieval import numbers_of, relevant_ranks, retrieval_numbers
from stscurate.evaluation.tasks import Retrieval, read_groups
from stscurate.manifest import read_manifest
from stscurate.services.encoder import Encoder
from tests.conftest import Command
from tests.tiny_models import SENTENCES

GROUPS = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 1, 0])


def slow(vectors: np.ndarray, groups: np.ndarray) -> dict[str, list[float]]:
    """Each query ranks all others, irrelevant ones first where they are as similar; metrics by their definitions."""
    found: dict[str, list[float]] = {}
    for query in range(len(vectors)):
        relevant = {place for place in range(len(vectors)) if groups[place] == groups[query]} - {query}
        if not relevant:
            continue
        similarity = {
            place: round(float(vectors[query] @ vectors[place]), 5) for place in range(len(vectors)) if place != query
        }
        ranked = sorted(similarity, key=lambda place: (-similarity[place], place in relevant))
        hits = [place in relevant for place in ranked]
        m = len(relevant)
        ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(m, 10) + 1))
        numbers = {
            "strict accuracy": float(all(hits[:m])),
            "strict accuracy@5": float(sum(hits[:5]) == m),
            "strict accuracy@10": float(sum(hits[:10]) == m),
            **{f"recall@{k}": sum(hits[:k]) / m for k in (1, 5, 10)},
            "MRR": 1 / (hits.index(True) + 1),
            "nDCG@10": sum(hit / math.log2(rank + 1) for rank, hit in enumerate(hits[:10], 1)) / ideal,
        }
        for name, number in numbers.items():
            found.setdefault(name, []).append(number)
    return found


def test_metrics_are_those_of_a_slow_loop_with_ties_against_the_model() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.integers(-1, 2, size=(60, 3)).astype(np.float32)  # many are the same, and many equally similar
    vectors[vectors.any(axis=1)] /= np.linalg.norm(vectors[vectors.any(axis=1)], axis=1, keepdims=True)
    groups = generator.integers(0, 18, size=60)
    queries, found = retrieval_numbers(vectors, groups)
    expected = slow(vectors, groups)
    assert len(queries) == len(expected["MRR"]) > 40
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-12, err_msg=name)


def test_ranks_and_what_they_are_worth_by_hand() -> None:
    ranks = relevant_ranks(np.array([0.9, 0.5, 0.5], np.float32), np.array([0.95, 0.5, 0.1], np.float32))
    assert ranks.tolist() == [2, 4, 5]  # behind .95; then .5 three times, the irrelevant one first
    found = numbers_of([1, 2, 4])
    assert [found[name] for name in ("strict accuracy", "strict accuracy@5", "recall@1")] == pytest.approx(
        [0, 1, 1 / 3]
    )
    assert found["nDCG@10"] == pytest.approx((1 + 1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 0.5))
    seven = numbers_of(range(1, 8))
    assert [seven[name] for name in ("strict accuracy", "strict accuracy@5", "nDCG@10")] == pytest.approx([1, 0, 1])


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    rows = [{"text": text, "group": int(group)} for text, group in zip(SENTENCES, GROUPS, strict=True)]
    rows += [{"text": SENTENCES[0].upper(), "group": 0}, {"text": " ", "group": 1}, {"text": "no group"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_of_groups_is_read_and_what_is_left_out_is_counted(captions: Path, tmp_path: Path) -> None:
    found = read_groups(captions)
    assert found.texts == list(SENTENCES)
    assert found.groups.tolist() == GROUPS.tolist()
    assert found.dropped == {"empty_text": 1, "no_group": 1, "repeated_in_group": 1}
    assert found.alone == 1
    (tmp_path / "alone.csv").write_text("text,group\na,1\nb,2\nA,1\n")
    with pytest.raises(InputError, match="no group holds two different texts"):
        read_groups(tmp_path / "alone.csv")
    (tmp_path / "none.csv").write_text("text,image\na,1\nb,1\n")
    with pytest.raises(InputError, match="needs columns text and group; it has text, image"):
        read_groups(tmp_path / "none.csv")
    assert len(read_groups(tmp_path / "none.csv", columns="group=image").texts) == 2


def test_groups_are_drawn_anew_and_leak_clean_ones_are_told_apart(captions: Path, tiny_model: Path) -> None:
    task = Retrieval(read_groups(captions))
    wanted = Wanted(resamples=300, seed=3, tasks=[task], train_texts=[SENTENCES[0]])
    numbers = {one.metric: one for one in evaluate_all([str(tiny_model)], [], wanted).tasks}
    vectors = Encoder(str(tiny_model)).encode(SENTENCES)
    expected = np.array(slow(vectors, GROUPS)["MRR"])
    of = np.array([group for group in GROUPS if group != 2])
    found = numbers["MRR"]
    assert found.rows == 11
    assert found.value == pytest.approx(expected.mean())
    clean = expected[of != 0]
    assert found.rows_clean == 7
    assert found.value_clean == pytest.approx(clean.mean())
    draws = np.random.default_rng(3).integers(3, size=(300, 3))
    members = [expected[of == group] for group in (0, 1, 3)]
    means = [np.concatenate([members[unit] for unit in draw]).mean() for draw in draws]
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])))


def test_the_command_compares_models_on_groups_and_keeps_the_numbers(
    captions: Path, tiny_model: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    call = ("evaluate", tiny_model, "--retrieve", captions, "--dimensions", "4", "--paired")
    done = command(*call, "--out", out, "--quiet")
    assert done.exit_code == 0, done.stderr
    kept = json.loads((out / "results.json").read_text())
    assert {row["model"] for row in kept["tasks"]} == {tiny_model.name, f"{tiny_model.name}, 4 dimensions"}
    assert [row["kind"] for row in kept["comparisons"]] == ["retrieval"] * 8
    values = {(row["model"], row["metric"]): row["value"] for row in kept["tasks"]}
    for row in kept["comparisons"]:
        both = [values[name, row["metric"]] for name in (row["first"], row["second"])]
        assert row["difference"] == pytest.approx(both[1] - both[0])
    shown = (out / "results.md").read_text()
    assert "## Retrieval within groups" in shown
    compared = shown.partition("## Differences on the same rows\n\n")[2].splitlines()
    assert compared[0].startswith("| set | part | over | rows | metric |")
    assert compared[2].startswith("| captions.jsonl | retrieval | all rows | 11 | strict accuracy |")
    assert "Left out: empty_text 1, no_group 1, repeated_in_group 1." in shown
    assert f"- {tiny_model.name}: what was trained on isn't known" in shown
    assert {row["tokens_cut_share"] for row in kept["tasks"]} == {0}
    assert "each text is a query among all 12, and the others of its group are relevant; 1 alone in theirs" in shown
    assert (out / "tasks.parquet").exists()
    assert read_manifest(out)["evaluate"].tally.dropped["repeated_in_group"] == 1
    refused = command("evaluate", "reranker:x", "--retrieve", captions)
    assert (refused.exit_code, "leave --calibration and rerankers out" in refused.stderr) == (2, True)
    assert "Nothing to evaluate on" in command("evaluate", tiny_model).stderr


def test_words_without_a_vector_are_told_of_a_task_too(captions: Path, tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("cat 1 0\nthe 0 1\n")
    found = evaluate_all([f"static:{tmp_path / 'glove.txt'}"], [], Wanted(tasks=[Retrieval(read_groups(captions))]))
    lacking = [text for text in SENTENCES if not {"cat", "the"} & set(text.lower().strip(".").split())]
    assert found.tasks[0].texts_unknown == len(lacking) > 0
    assert f"and {len(lacking)} texts none with one" in " ".join(found.notes)
