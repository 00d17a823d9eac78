"""Turns rows of tokens of different lengths into tensors: padded micro-batches, or one packed sequence, which holds a
prefix that several rows share only once (a causal model computes the same for it in every row).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor


def token_budget_batches(
    lengths: Sequence[int], tokens_per_batch: int, relatives: Sequence[Sequence[int]] | None = None
) -> list[list[int]]:
    """Split rows into batches whose padded size (rows x longest) stays within `tokens_per_batch`.

    Returns row indices, longest rows first, so that a batch that does not fit into memory fails at once. A row longer
    than the budget gets a batch of its own. Rows that are together in `relatives` stay neighbours.
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
    rows: Sequence[Sequence[int] | Int[np.ndarray, " T"]], pad_id: int, device: torch.device | None = None
) -> Int[Tensor, "B T"]:
    """Rows of token ids, padded on the right."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), pad_id, np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded).to(device)


def length_mask(lengths: Int[Tensor, " B"], width: int) -> Bool[Tensor, "B T"]:
    """True at the first `lengths[i]` positions of row i."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


TokenIds = Int[np.ndarray, " L"]

_LARGEST_FAMILY = 64  # rows, which bounds the search for the best division


@dataclass(frozen=True)
class PackedRows:
    """B rows (the longest has L tokens) packed into one sequence of T tokens. The numbers in the other fields are
    positions in this sequence.

    Each of the G prefixes attends to itself, and each of the S suffixes to its prefix and to itself. A prefix stands
    right before its suffixes.
    """

    token_ids: Int[Tensor, "1 T"]
    position_ids: Int[Tensor, "1 T"]
    places: Int[Tensor, "B L"]  # of every token of every row; 0 after the end of a row
    prefixes: list[TokenIds]
    suffixes: list[TokenIds]
    prefix_of_suffix: list[int]  # as an index of `prefixes`


@dataclass(frozen=True)
class Family:
    """Rows (their indices) that share their first `prefix` tokens."""

    prefix: int
    rows: list[int]


def families(rows: Sequence[TokenIds]) -> list[Family]:
    """Divide rows into families so that most tokens are shared, by dynamic programming on sorted rows."""
    # Token ids are not negative, so their big-endian bytes sort in the same order.
    keys = [row.astype(">u4").tobytes() for row in rows]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    ordered = [rows[i] for i in order]
    common = [0, *(_common_prefix(*pair) for pair in pairwise(ordered))]
    saved, start = [0] * (len(rows) + 1), [0] * (len(rows) + 1)  # of the best division of the first `end` rows
    for end in range(1, len(rows) + 1):
        saved[end], start[end] = saved[end - 1], end - 1
        prefix = common[end - 1]
        for first in range(end - 2, max(-1, end - 1 - _LARGEST_FAMILY), -1):
            if prefix == 0:
                break
            if (gain := saved[first] + prefix * (end - 1 - first)) > saved[end]:
                saved[end], start[end] = gain, first
            prefix = min(prefix, common[first])
    found: list[Family] = []
    end = len(rows)
    while end:
        members = order[start[end] : end]
        prefix = min(common[start[end] + 1 : end], default=len(rows[members[0]]))
        found.append(Family(prefix, members))
        end = start[end]
    return found[::-1]


def _common_prefix(one: TokenIds, other: TokenIds) -> int:
    shorter = min(len(one), len(other))
    differing = np.flatnonzero(one[:shorter] != other[:shorter])
    return int(differing[0]) if len(differing) else shorter


def pack_rows(rows: Sequence[TokenIds], device: torch.device) -> PackedRows:
    """Pack rows. No row may be empty."""
    places_BL = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
    prefixes: list[TokenIds] = []
    suffixes: list[TokenIds] = []
    prefix_of_suffix: list[int] = []
    end = 0
    for number, family in enumerate(families(rows)):
        prefixes.append(np.arange(end, end := end + family.prefix))
        for row in family.rows:
            suffix = np.arange(end, end := end + len(rows[row]) - family.prefix)
            places_BL[row, : len(rows[row])] = np.concatenate((prefixes[-1], suffix))
            if len(suffix):
                suffixes.append(suffix)
                prefix_of_suffix.append(number)
    real_BL = length_mask(torch.tensor([len(row) for row in rows]), places_BL.shape[1]).numpy()
    token_ids, position_ids = np.zeros((2, 1, end), np.int64)
    token_ids[0, places_BL[real_BL]] = np.concatenate(rows)
    position_ids[0, places_BL[real_BL]] = np.nonzero(real_BL)[1]
    token_ids, position_ids, places_BL = (torch.from_numpy(x).to(device) for x in (token_ids, position_ids, places_BL))
    return PackedRows(token_ids, position_ids, places_BL, prefixes, suffixes, prefix_of_suffix)
