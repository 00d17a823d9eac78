"""Turns ragged rows into micro-batches and padded tensors."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor


def token_budget_batches(
    lengths: Sequence[int], tokens_per_batch: int, relatives: Sequence[Sequence[int]] | None = None
) -> list[list[int]]:
    """Split rows into batches whose padded size (rows x longest) stays within `tokens_per_batch`.

    Returns row indices, each exactly once, longest rows first. Rows of similar length therefore share a batch, and a
    batch that does not fit into memory fails at once. A row longer than the budget gets a batch of its own. Rows that
    are together in `relatives` stay neighbours, and in the same batch if they fit.
    """
    kin = [sorted(rows, key=lambda i: -lengths[i]) for rows in relatives or [[row] for row in range(len(lengths))]]
    batches: list[list[int]] = []
    longest = 0
    for row in (row for rows in sorted(kin, key=lambda rows: -lengths[rows[0]]) for row in rows):
        if batches and max(longest, lengths[row]) * (len(batches[-1]) + 1) <= tokens_per_batch:
            batches[-1].append(row)
            longest = max(longest, lengths[row])
        else:
            batches.append([row])
            longest = lengths[row]
    return batches


def pad_tokens(
    rows: Sequence[Sequence[int] | Int[np.ndarray, " T"]], pad_id: int, device: torch.device
) -> Int[Tensor, "B T"]:
    """Rows of token ids, padded on the right."""
    padded = np.full((len(rows), max(map(len, rows))), pad_id, np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded).to(device)


def padded_places(tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """The index of each token of a padded batch after the batch is flattened."""
    return torch.arange(tokens.numel(), device=tokens.device).view_as(tokens)


def length_mask(lengths: Int[Tensor, " B"], width: int) -> Bool[Tensor, "B T"]:
    """True at the first `lengths[i]` positions of row i."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]
