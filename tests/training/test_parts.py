"""Several sources in one training: whose turn it is, which loss, what is told of each; and positives alone."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.records import from_rows
from stscurate.training import (
    Part,
    Schedule,
    TrainingRows,
    angle_parts,
    arccse_objective,
    cosent_objective,
    pair_rows,
    train_angle,
    trainer,
)
from stscurate.training.batches import Batches, Turns
from stscurate.training.parts import Mix
from stscurate.training.row_losses import ROW_LOSSES
from stscurate.training.trainer import Common
from tests.tiny_models import SENTENCES
from tests.training.test_trainer import LOOKING, pair, pairs, triplets, validation


def turns(shares: tuple[float, ...] | None = None, processes: int = 1) -> Turns:
    """Sources of 40, 16 and 9 rows: 5, 2 and 2 batches of 8."""
    sources = [Batches([1] * rows, 8, seed=(3, place), processes=processes) for place, rows in enumerate((40, 16, 9))]
    return Turns(sources, seed=3, shares=shares, processes=processes)


def source_of(batch: list[int]) -> int:
    places = {0 if row < 40 else 1 if row < 56 else 2 for row in batch}
    assert len(places) == 1, "a batch mixes sources"
    return places.pop()


def test_a_pass_holds_every_row_once_and_no_batch_two_sources() -> None:
    mixed = turns()
    first = list(mixed)
    assert len(first) == len(mixed) == 9
    assert sorted(row for batch in first for row in batch) == list(range(65))
    assert Counter(map(source_of, first)) == {0: 5, 1: 2, 2: 2}
    assert list(turns()) == first
    mixed.set_epoch(1)
    second = list(mixed)
    assert second != first
    assert [source_of(batch) for batch in second] != [source_of(batch) for batch in first]
    mixed.set_epoch(0)
    assert list(mixed) == first


def test_shares_decide_how_often_a_source_comes_and_its_rows_go_on_over_the_passes() -> None:
    mixed = turns(shares=(1, 1, 1))
    of_large: list[int] = []
    for epoch in range(5):
        mixed.set_epoch(epoch)
        found = list(mixed)
        assert Counter(map(source_of, found)) == {0: 3, 1: 3, 2: 3}
        of_large += [row for batch in found if source_of(batch) == 0 for row in batch]
    # fifteen batches of five: three passes of its own, each with every row once
    assert [sorted(of_large[start : start + 40]) for start in (0, 40, 80)] == [list(range(40))] * 3


def test_processes_have_one_source_at_a_time() -> None:
    found = [source_of(batch) for batch in turns(processes=2)]
    assert found[::2] == found[1::2]
    assert Counter(found) == {0: 6, 1: 2, 2: 2}


def positives() -> TrainingRows:
    rows = [pair(f"p{i}", SENTENCES[i], SENTENCES[i + 1], label=1) for i in range(0, 12, 2)]
    return pair_rows(from_rows(rows, "pairs"), inputs={"c.jsonl": "1"}, positives=True)


def few() -> TrainingRows:
    """Scores on which the other pairs' don't agree."""
    rows = [pair(f"f{i}", SENTENCES[i], SENTENCES[i + 4], score=i / 8) for i in range(8)]
    return pair_rows(from_rows([*rows, pair("none", "a", "b")], "pairs"), inputs={"few.csv": "2"})


def mixed_training(model: Path) -> Common:
    also = [Part(few(), cosent_objective()), Part(triplets(), arccse_objective())]
    return {"model": str(model), "schedule": LOOKING, "validation": validation(), "also": also}


def test_each_source_is_trained_by_its_own_loss_and_told_of_by_name(tiny_model: Path, tmp_path: Path) -> None:
    entry = train_angle([pairs(), positives()], tmp_path / "model", **mixed_training(tiny_model))
    losses = {"pairs": "angle", "c.jsonl": "in-batch", "few.csv": "cosent", "triplets": "arccse"}
    assert {each["source"]: each["loss"] for each in entry.key["settings"]["sources"]} == losses
    assert entry.outputs["trained"]["rows"] == 66 + 6 + 8 + 12
    assert entry.tally.counts["rows of few.csv"] == {"used": 8, "no_score": 1}
    assert (entry.tally.rows_in, entry.tally.dropped) == (66 + 6 + 9 + 12, {"no_score": 1})
    points = json.loads((tmp_path / "model" / "training_curve.json").read_text())["points"]
    told = {name for point in points for name in point}
    assert told == {
        *("step", "loss", "spearman", "few.csv: loss", "c.jsonl: loss", "c.jsonl: in_batch", "triplets: loss"),
        *("triplets: arc", "triplets: triplet", "pairs: loss", "pairs: cosine", "pairs: in_batch", "pairs: angle"),
    }
    table = pq.read_table(tmp_path / "model" / ROW_LOSSES)
    assert Counter(table["source"].to_pylist()) == {"pairs": 66, "c.jsonl": 6, "few.csv": 8, "triplets": 12}
    for row in table.to_pylist():
        assert (row["arc_loss"] is None) == (row["source"] != "triplets")
        assert (row["in_batch_loss"] is None) == (row["source"] != "c.jsonl")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "| few.csv | cosent | no_score 1, used 8 | labels auto, tau 0.2 |" in card


def test_several_sources_end_at_the_same_bytes_after_a_stop(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Common = {**mixed_training(tiny_model), "turns": (3, 1, 1, 2)}
    rows = [pairs(), positives()]
    train_angle(rows, tmp_path / "unbroken" / "model", **given)
    for step in (5, 14):

        def progress(label: str, done: int, total: int | None, step: int = step) -> None:
            if done == step:
                raise KeyboardInterrupt

        broken: Common = {**given, "progress": progress}
        with pytest.raises(KeyboardInterrupt):
            train_angle(rows, tmp_path / "broken" / "model", **broken)
    train_angle(rows, tmp_path / "broken" / "model", **given)
    assert fingerprint(tmp_path / "broken" / "model") == fingerprint(tmp_path / "unbroken" / "model")


def test_rows_that_no_turn_reaches_are_counted(tiny_model: Path, tmp_path: Path) -> None:
    also, schedule = [Part(few(), cosent_objective())], Schedule(batch_size=8)
    given: Common = {"model": str(tiny_model), "schedule": schedule, "also": also, "turns": (1, 9)}
    entry = train_angle(pairs(), tmp_path / "model", **given)
    # ten steps, one of them with eight of the first source's 66 rows
    assert entry.tally.counts["rows of pairs"] == {"used": 8, "not_reached": 58}
    assert entry.tally.dropped == {"no_score": 1, "not_reached": 58}
    assert entry.outputs["trained"]["rows"] == 16


def test_turns_are_one_for_each_source() -> None:
    with pytest.raises(InputError, match=r"--turns 1,2,3: give 2 numbers above 0"):
        Mix(angle_parts([pairs(), few()]), (1, 2, 3))
    with pytest.raises(InputError, match=r"--turns 1,0: give 2 numbers above 0"):
        Mix(angle_parts([pairs(), few()]), (1, 0))


def test_sources_of_one_name_are_told_apart() -> None:
    mix = Mix(angle_parts([pairs(), replace(few(), given_name="pairs")]))
    assert mix.names == ["pairs", "pairs-2"]
    assert mix.rows.inputs == {"pairs": "0", "pairs-2: few.csv": "2"}
    assert (mix.rows.ids[0], mix.rows.ids[-1]) == ("pairs 1-0", "pairs-2 f7")


def test_positives_alone_are_learnt_by_the_in_batch_term(tiny_model: Path, tmp_path: Path) -> None:
    schedule = Schedule(epochs=4, batch_size=6, learning_rate=3e-3)
    entry = train_angle(positives(), tmp_path / "model", model=str(tiny_model), schedule=schedule)
    assert entry.key["settings"]["method"] == "in-batch"
    points = json.loads((tmp_path / "model" / "training_curve.json").read_text())["points"]
    assert [set(point) for point in points] == [{"step", "loss", "in_batch"}] * 4
    assert points[-1]["loss"] < points[0]["loss"]
    with pytest.raises(InputError, match="Positives alone teach the in-batch objective alone"):
        train_angle(positives(), tmp_path / "none", model=str(tiny_model), weights=(1, 0, 1))
    # The loss of a row, by a plain loop over the texts of the one batch.
    from sentence_transformers import SentenceTransformer

    rows = positives().columns
    texts = [*rows["sentence1"], *rows["sentence2"]]
    vectors = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts, normalize_embeddings=True)
    cosine = (vectors @ vectors.T).astype(float)
    wanted = {}
    for place, key in enumerate(positives().ids):
        own = []
        for text, partner in ((place, place + 6), (place + 6, place)):
            others = [cosine[text, other] for other in range(12) if other not in (text, partner)]
            own.append(math.log1p(sum(math.exp((other - cosine[text, partner]) / 0.05) for other in others)))
        wanted[key] = sum(own) / 2
    found = pq.read_table(tmp_path / "model" / ROW_LOSSES).to_pylist()
    assert {row["row"]: row["loss"] for row in found} == pytest.approx(wanted, rel=2e-2 if bf16() else 1e-4)


def bf16() -> bool:
    return Schedule().arithmetic == "bf16"


def test_work_that_was_begun_otherwise_is_named_before_it_is_thrown_away(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def stop(*_: object) -> str:
        raise KeyboardInterrupt

    given: Common = {"model": str(tiny_model), "schedule": LOOKING, "tell": told.append}
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "model_card", stop)
        for _ in range(2):  # the second goes on
            with pytest.raises(KeyboardInterrupt):
                train_angle(pairs(), tmp_path / "model", **given)
    assert told == []
    other: Common = {**given, "schedule": replace(LOOKING, epochs=1)}
    train_angle(pairs(), tmp_path / "model", **other)
    (line,) = told
    assert "model.partial holds 18 steps of a training that was begun otherwise (epochs was 2, now 1)" in line
