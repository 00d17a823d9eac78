"""From ragged lists to micro-batches and padded tensors."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def token_budget_batches(
    lengths: Sequence[int], tokens_per_batch: int, relatives: Sequence[Sequence[int]] | None = None
) -> list[list[int]]:
    """Split rows into batches whose padded size (rows x longest) stays within `tokens_per_batch`.

    Returns row indices, each exactly once, longest rows first: rows of like length share a batch, and a batch
    that does not fit the memory shows at once. A row longer than the budget gets a batch of its own. Rows that stand
    together in `relatives` stay neighbours, and in one batch as far as it holds them.
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


def pad_tokens(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> Int[Tensor, "B T"]:
    """Rows of token ids, padded on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows], device=device)


def padded_places(tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Where each token of a padded batch is once the batch is flattened."""
    return torch.arange(tokens.numel(), device=tokens.device).view_as(tokens)


def pad_numbers(rows: Sequence[Sequence[float]], dtype: torch.dtype, device: torch.device) -> Float[Tensor, "B T"]:
    """Rows of numbers, padded on the right with 0."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows], dtype=dtype, device=device)


def length_mask(lengths: Int[Tensor, " B"], width: int) -> Bool[Tensor, "B T"]:
    """True at the first `lengths[i]` positions of row i."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]
