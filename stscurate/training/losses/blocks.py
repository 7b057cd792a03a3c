"""Row losses of an n x n comparison in blocks of rows, so that memory doesn't grow with n squared."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Rows of a block. 1,024 rows against 8,192 texts are 33 MB in float32; smaller batches are one block, kept whole.
ROWS = 1024


def by_blocks(row_loss: Callable[[int, int], Tensor], n: int) -> Tensor:
    """Give row_loss(start, stop) for all n rows, shape (n, ...); a block's matrix is made again for its gradient."""
    if n <= ROWS:
        return row_loss(0, n)
    return torch.cat(
        [
            checkpoint(row_loss, start, min(start + ROWS, n), use_reentrant=False, preserve_rng_state=False)
            for start in range(0, n, ROWS)
        ]
    )


def cosines(rows: Tensor, columns: Tensor) -> Tensor:
    """All cosines of unit vectors, (m, d) and (n, d) to (m, n), in their own precision also under autocast.

    In 16 bits a cosine is off by up to .004, which 1 / tau makes .08 of the loss.
    """
    with torch.autocast(rows.device.type, enabled=False):
        return rows @ columns.T
