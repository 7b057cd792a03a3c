from __future__ import annotations

import pytest
import torch

from stscurate.services.precision import default_precision, reading_precision


@pytest.mark.parametrize(
    ("amx", "avx512", "training", "reading"),
    [(False, False, "fp32", "fp32"), (True, True, "bf16", "bf16"), (False, True, "fp32", "bf16")],
)
def test_bf16_is_taken_where_the_processor_multiplies_it(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, training: str, reading: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    assert (default_precision(), reading_precision()) == (training, reading)
