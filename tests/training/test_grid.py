"""A grid of weights and temperatures, searched on the validation set."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.training import Cell, Schedule, grid_cells, train_angle, train_grid
from stscurate.training.trainer import Common
from tests.conftest import ROOT, Command
from tests.tiny_models import SENTENCES
from tests.training.test_trainer import pairs, validation

QUICK = Schedule(batch_size=32, learning_rate=1e-2)


def test_cells_are_all_combinations() -> None:
    assert grid_cells(["1,0|1,1/0.05,0.05,0.05|0.1"]) == [
        Cell((1, 0, 1), (0.05, 0.05, 0.05)),
        Cell((1, 0, 1), (0.05, 0.05, 0.1)),
        Cell((1, 1, 1), (0.05, 0.05, 0.05)),
        Cell((1, 1, 1), (0.05, 0.05, 0.1)),
    ]
    assert grid_cells(["1,1,1", "1,1|0,1"]) == [Cell((1, 1, 1), (0.2, 0.05, 0.2)), Cell((1, 0, 1), (0.2, 0.05, 0.2))]
    for wrong in ("1,1", "1,1,x", "1,1,1/2", "1,1,1/"):
        with pytest.raises(InputError, match="give it as weights, or weights/temperatures"):
            grid_cells([wrong])


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.training.test_grid import QUICK, grid_cells, pairs, train_grid, validation

def progress(label, done, total):
    if label.startswith("cell 2 of 2, training"):
        os.kill(os.getpid(), signal.SIGKILL)

given = {"model": sys.argv[2], "schedule": QUICK, "validation": validation(), "progress": progress}
train_grid(pairs(), Path(sys.argv[3]), grid_cells(["1,0,0|1"]), **given)
"""


def test_the_best_cell_becomes_the_model_and_finished_cells_are_found(tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    call = [sys.executable, "-c", KILLED, str(ROOT), str(tiny_model), str(out)]
    assert subprocess.run(call, env=environment, check=False, capture_output=True).returncode == -signal.SIGKILL
    cells = grid_cells(["1,0,0|1"])
    steps: list[str] = []
    given: Common = {"model": str(tiny_model), "schedule": QUICK, "validation": validation()}
    watched: Common = {**given, "progress": lambda label, done, total: steps.append(label)}
    entry = train_grid(pairs(), out, cells, **watched)
    assert not any(step.startswith("cell 1 of 2") for step in steps)
    table = json.loads((out / "grid.json").read_text())["cells"]
    reached = {}
    for place, cell in enumerate(cells):
        alone = train_angle(pairs(), tmp_path / str(place), weights=cell.weights, taus=cell.taus, **given)
        reached[place] = alone.outputs["trained"]["best"]["spearman"]
    assert [row["spearman"] for row in table] == list(reached.values())
    best = max(reached, key=lambda place: reached[place])
    assert [row["chosen"] for row in table] == [place == best for place in reached]
    assert fingerprint(out / "model.safetensors") == fingerprint(tmp_path / str(best) / "model.safetensors")
    assert entry.outputs["trained"]["cell"]["weights"] == cells[best].weights
    assert not train_grid(pairs(), out, cells, **given).fresh


def test_a_grid_asks_for_a_validation_set(command: Command, tiny_model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text1,text2,score\n" + "".join(f"{SENTENCES[i][:-1]},b{i},{i / 5}\n" for i in (0, 1, 2, 3)))
    given = ("train", "angle", "--data", data, "--model", tiny_model, "--grid", "1,0,0|1", "--out", tmp_path / "model")
    refused = command(*given)
    assert (refused.exit_code, "--grid chooses by a validation set" in refused.stderr) == (2, True)
    done = command(*given, "--validate", data)
    assert done.exit_code == 0
    assert "chosen" in done.stdout
