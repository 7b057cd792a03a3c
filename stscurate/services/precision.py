"""The arithmetic that a model runs in: bfloat16 where the hardware multiplies it, float32 elsewhere."""

import platform
from pathlib import Path
from typing import Literal

import torch

Precision = Literal["fp32", "bf16"]


def default_device() -> str:
    """cuda where there is such a GPU, else cpu."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_precision() -> Precision:
    """bf16 on a GPU or a processor with AMX, where it is two to three times as fast; fp32 elsewhere.

    For training and reading alike. For reading alone, see `reading_precision`.
    """
    return "bf16" if default_device() == "cuda" or torch.cpu._is_amx_tile_supported() else "fp32"


def reading_precision() -> Precision:
    """As `default_precision`, and bf16 too on AMD's processors with AVX512-BF16, where reading is twice as fast.

    Intel's multiply bf16 by AVX512 at half the speed of fp32: they gain by AMX alone, which a virtual
    machine may hide.
    """
    return "bf16" if torch.cpu._is_avx512_bf16_supported() and _made_by_amd() else default_precision()


def _made_by_amd() -> bool:
    told = Path("/proc/cpuinfo")
    return "AuthenticAMD" in (told.read_text("utf-8", "replace") if told.exists() else platform.processor())
