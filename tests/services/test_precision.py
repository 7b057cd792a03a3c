from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from stscurate.services import precision
from stscurate.services.precision import default_precision, reading_precision


@pytest.mark.parametrize(
    ("amx", "avx512", "amd", "training", "reading"),
    [
        (False, False, True, "fp32", "fp32"),
        (True, True, False, "bf16", "bf16"),
        (False, True, True, "fp32", "bf16"),
        (False, True, False, "fp32", "fp32"),
    ],
)
def test_bf16_is_taken_where_the_processor_multiplies_it_faster(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, amd: bool, training: str, reading: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(precision, "_made_by_amd", lambda: amd)
    assert (default_precision(), reading_precision()) == (training, reading)


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="this system doesn't tell its processor's maker there")
def test_the_maker_is_the_one_that_the_system_tells() -> None:
    told = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    assert precision._made_by_amd() == ("AuthenticAMD" in told)
