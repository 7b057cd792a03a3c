import random
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from stscurate.audit.calibrate import calibrate
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, lengths_of
from stscurate.services.encoder import Encoder
from stscurate.tables import texts_source
from tests.conftest import Command
from tests.tiny_models import SENTENCES

WORDS = [word.strip(".,?") for sentence in SENTENCES for word in sentence.split()]


def test_evaluation_takes_a_calibration_of_its_model_and_texts(
    tmp_path: Path, tiny_model: Path, command: Command
) -> None:
    rng = random.Random(0)
    lines = [f"{' '.join(rng.choices(WORDS, k=rng.randint(2, 40)))} {number}" for number in range(400)]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    gold = [rng.randint(0, 5) / 5 for _ in range(60)]
    rows = [f"{one},{two},{score}" for one, two, score in zip(lines[:60], lines[60:120], gold, strict=True)]
    (tmp_path / "gold.csv").write_text("text1,text2,score\n" + "\n".join(rows) + "\n")
    (tmp_path / "other.csv").write_text("text1,text2,score\na,b,0\nc,d,.5\ne,f,1\n")
    calibrate(tmp_path / "fitted", texts_source(tmp_path / "texts.txt"), model=str(tiny_model))

    call = ("evaluate", tiny_model, "--calibration", tmp_path / "fitted", "--set")
    assert command(*call, tmp_path / "gold.csv", "--out", tmp_path / "out", "--quiet").exit_code == 0
    encoder = Encoder(str(tiny_model))
    vectors, lengths = encoder.encode(lines), lengths_of(encoder, lines)
    method = METHODS["length-centering"].fit(vectors, lengths)
    found = method.transform(vectors[:120], lengths[:120])
    expected = spearmanr(np.einsum("ij,ij->i", found[:60], found[60:]), gold).statistic
    shown = (tmp_path / "out" / "results.md").read_text()
    assert f"| {tiny_model.name}, length-centering | gold.csv |" in shown
    assert f"| {expected:.4f} |" in shown

    refused = command(*call, tmp_path / "other.csv")
    assert (refused.exit_code, "--accept corpus" in refused.stderr) == (2, True)
    assert command(*call, tmp_path / "other.csv", "--accept", "corpus", "--quiet").exit_code == 0
    two = command("evaluate", tiny_model, *call[1:], tmp_path / "gold.csv")
    assert (two.exit_code, "--calibration belongs to one model" in two.stderr) == (2, True)
    assert Calibration.load(tmp_path / "fitted").method.name == "length-centering"
    bare = spearmanr(np.einsum("ij,ij->i", vectors[:60], vectors[60:120]), gold).statistic
    assert expected != pytest.approx(bare, abs=1e-3)
