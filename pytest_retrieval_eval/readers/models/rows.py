"""Prompts as the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def padded_rows(prompts: Sequence[Sequence[int]], rows: int, padded: int, pad: int, *, left: bool) -> tuple[Any, Any]:
    """(ids, mask), both rows × padded, as int64 tensors; rows that lack are copies of the last prompt.

    A copy ends when its original does: a row of padding could go on to the largest number of new tokens, and every
    other row with it.
    """
    import torch

    ids = torch.full((rows, padded), pad, dtype=torch.int64)
    mask = torch.zeros((rows, padded), dtype=torch.int64)
    for row in range(rows):
        prompt = prompts[min(row, len(prompts) - 1)]
        place = slice(padded - len(prompt), padded) if left else slice(0, len(prompt))
        ids[row, place] = torch.tensor(prompt, dtype=torch.int64)
        mask[row, place] = 1
    return ids, mask
