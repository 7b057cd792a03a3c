"""The audit of gold: which pairs are named, in what order, and what is said of bad input."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.audit import find_suspects
from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, digests_of
from stscurate.methods.pair_similarity import pair_similarity
from stscurate.services.encoder import Encoder
from stscurate.tables import pairs_source
from tests.conftest import Command


def pairs_of(folder: Path, rows: Sequence[tuple[str, str, float]], column: str = "score") -> pa.Table:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps({"text1": a, "text2": b, column: gold}) + "\n" for a, b, gold in rows))
    return pairs_source(path).table


def graded(number: int) -> list[tuple[str, str, float]]:
    return [(f"text {row}", f"other {row}", row / (number - 1)) for row in range(number)]


def test_swapped_gold_is_found_by_the_evidence_and_comes_first(tmp_path: Path) -> None:
    rows = graded(200)
    rows[10] = (*rows[10][:2], 0.95)
    rows[180] = (*rows[180][:2], 0.02)
    generator = np.random.default_rng(0)
    evidence = np.linspace(-3, 8, 200) + generator.normal(0, 0.3, 200)
    found = find_suspects(pairs_of(tmp_path, rows), {"model": evidence}, threshold=6.0)
    assert set(found.rows["text1"].to_pylist()) == {"text 10", "text 180"}
    high, low = sorted(found.rows.to_pylist(), key=lambda row: -row["residual"])
    assert (high["text1"], high["gold"], high["reasons"]) == ("text 10", 0.95, ["evidence"])
    assert high["residual"] > 6 > -6 > low["residual"]
    assert abs(high["expected"] - 10 / 199) < 0.15
    assert found.counts == {"evidence": 2}


def test_a_weak_witness_does_not_clear_what_a_good_one_finds(tmp_path: Path) -> None:
    rows = graded(200)
    rows[10] = (*rows[10][:2], 0.95)
    generator = np.random.default_rng(0)
    good, weak = np.arange(200.0) + generator.normal(0, 5, 200), generator.normal(size=200)
    weak[10] = 5.0  # the highest of all: it takes the pair for a very similar one
    found = find_suspects(pairs_of(tmp_path, rows), {"good": good, "weak": weak}, threshold=6.0)
    assert found.rows["text1"].to_pylist() == ["text 10"]


def test_conflicts_and_chains_are_told_without_any_model(tmp_path: Path) -> None:
    rows = [("a", "b", 1), ("b ", "C", 1), ("A", "c", 0), ("c", "a", 1), ("x", "y", 0)]
    found = find_suspects(pairs_of(tmp_path, rows, "label"), {})
    told = [(row["text1"], row["text2"], row["reasons"]) for row in found.rows.to_pylist()]
    assert told == [("A", "c", ["conflict", "chain"]), ("c", "a", ["conflict"])]
    ids = {row["text1"]: row["pair_id"] for row in found.rows.to_pylist()}
    assert [row["other"] for row in found.rows.to_pylist()] == [ids["c"], ids["A"]]
    assert (found.counts, found.pairs) == ({"chain": 1, "conflict": 2}, 5)


def test_graded_gold_may_differ_by_the_gap_and_has_no_chains(tmp_path: Path) -> None:
    rows = [("a", "b", 0.8), ("b", "a", 0.7), ("b", "c", 1.0), ("a", "c", 0.0), ("c", "a", 0.3)]
    found = find_suspects(pairs_of(tmp_path, rows), {})
    assert found.rows["gold"].to_pylist() == [0.0, 0.3]
    assert found.counts == {"conflict": 2}


def test_pairs_without_gold_or_evidence_are_counted_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [{"text1": f"a {n}", "text2": f"b {n}", "score": n / 59 if n < 60 else None} for n in range(70)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    evidence = np.where(np.arange(70) == 5, np.nan, np.arange(70.0))
    found = find_suspects(pairs_source(path).table, {"model": evidence}, threshold=0.0)
    assert (found.pairs, found.without_gold) == (60, 10)
    assert "a 5" not in found.rows["text1"].to_pylist()


def test_too_little_to_go_by_is_said(tmp_path: Path) -> None:
    few = pairs_of(tmp_path, graded(20))
    with pytest.raises(InputError, match="20 pairs have both gold and evidence: 50 at least are needed"):
        find_suspects(few, {"model": np.arange(20.0)})
    same = pairs_of(tmp_path, [(a, b, 1.0) for a, b, _ in graded(60)])
    with pytest.raises(InputError, match="The gold of all pairs is 1"):
        find_suspects(same, {"model": np.arange(60.0)})
    path = tmp_path / "bare.jsonl"
    path.write_text('{"text1": "a", "text2": "b"}\n')
    with pytest.raises(InputError, match="No pair has gold"):
        find_suspects(pairs_source(path).table, {})


def test_the_command_tells_and_writes_what_it_found(command: Command, tmp_path: Path, tiny_model: Path) -> None:
    rows = [*graded(60), ("text 3", "other 3", 0.9)]
    pairs_of(tmp_path, rows)
    call = ("audit", "labels", tmp_path / "pairs.jsonl", "--model", tiny_model)
    done = command(*call, "--out", tmp_path / "found.parquet", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {row["reason"]: row["pairs"] for row in told["suspect_labels"]}["conflict"] == 2
    assert told["suspects"] == pq.read_table(tmp_path / "found.parquet").num_rows
    again = command(*call, "--out", tmp_path / "found.parquet")
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)
    assert "found.parquet is there already" in again.stderr


def test_a_calibrations_similarity_is_the_evidence_where_it_is_of_these_texts(
    command: Command, tmp_path: Path, tiny_model: Path
) -> None:
    rows = graded(60)
    pairs_of(tmp_path, rows)
    texts = [text for row in rows for text in row[:2]]
    encoder = Encoder(str(tiny_model))
    method = METHODS["length-centering"].fit(encoder.encode(texts), encoder.token_counts(texts))
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads)
    for name, own in (("own", texts), ("other", ["another text"])):
        (tmp_path / name).mkdir()
        Calibration(method, *about, f"{name}.txt", np.sort(digests_of(own))).save(tmp_path / name)
    evidence = pair_similarity(encoder, [row[:2] for row in rows], Calibration.load(tmp_path / "own"))
    table = pairs_source(tmp_path / "pairs.jsonl").table
    expected = find_suspects(table, {"calibrated": evidence}, threshold=1.0)
    assert 0 < expected.rows.num_rows < 60
    call = ("audit", "labels", tmp_path / "pairs.jsonl", "--threshold", 1, "--calibration")
    found = command(*call, tmp_path / "own", "--model", tiny_model, "--out", tmp_path / "found.parquet", "--quiet")
    assert found.exit_code == 0
    written = pq.read_table(tmp_path / "found.parquet")
    assert written["pair_id"].to_pylist() == expected.rows["pair_id"].to_pylist()
    assert written["residual"].to_pylist() == pytest.approx(expected.rows["residual"].to_pylist(), abs=1e-3)
    refused = command(*call, tmp_path / "other", "--model", tiny_model)
    assert (refused.exit_code, "was fitted to other.txt, which holds 0% of these texts" in refused.stderr) == (2, True)
    alone = command(*call, tmp_path / "own")
    assert (alone.exit_code, "--calibration belongs to one model" in alone.stderr) == (2, True)
