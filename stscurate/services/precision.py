"""The arithmetic that a model runs in: bfloat16 where the hardware multiplies it, float32 elsewhere."""

from typing import Literal

import torch

Precision = Literal["fp32", "bf16"]


def default_device() -> str:
    """cuda where there is such a GPU, else cpu."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_precision() -> Precision:
    """bf16 on a GPU or a processor with AMX, where it is two to three times as fast; fp32 elsewhere."""
    return "bf16" if default_device() == "cuda" or torch.cpu._is_amx_tile_supported() else "fp32"
