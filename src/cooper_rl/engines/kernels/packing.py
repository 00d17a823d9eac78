"""Packs rows of tokens into one sequence that holds a prefix shared by several rows only once.

The completions of a group share their prompt. The reward model's inputs for a problem share the question and the
reference answer, and the two sides of a pair often share their first steps. A causal model computes the same for such
a prefix in every row, so computing it once is enough. One sequence of all rows needs no padding either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

Row = Int[np.ndarray, " L"]

_LARGEST_FAMILY = 64
"""Most rows in one family. It bounds the search for the best division."""


@dataclass(frozen=True)
class AttentionLayout:
    """Which tokens attend to which in a packed sequence of T tokens.

    Each of the G prefixes attends to itself. Each of the S suffixes attends to its prefix and to itself. Indices are
    places in the sequence. Padding points to place 0, and no result that is read depends on it.
    """

    prefixes: Int[Tensor, "G P"]
    suffixes: Int[Tensor, "S C"]
    suffix_keys: Int[Tensor, "S P+C"]
    suffix_sees: Bool[Tensor, "S 1 C P+C"]
    """Whether a token of a suffix attends to a key. It attends to its whole prefix, and to its suffix up to itself."""
    origin: Int[Tensor, " T"]
    """The index of each token in the flattened prefixes followed by the flattened suffixes."""


@dataclass(frozen=True)
class PackedRows:
    """B rows, the longest of L tokens, as one sequence of T tokens."""

    token_ids: Int[Tensor, "1 T"]
    position_ids: Int[Tensor, "1 T"]
    places: Int[Tensor, "B L"]
    """The place in the sequence of every token of every row; 0 after the end of a row."""
    layout: AttentionLayout


@dataclass(frozen=True)
class Family:
    """Rows (their indices) that share their first `prefix` tokens."""

    prefix: int
    rows: list[int]


def families(rows: Sequence[Row]) -> list[Family]:
    """Divide rows into families so that as many tokens as possible are shared. A family may be a single row.

    The rows are sorted, which makes relatives neighbours, and divided by dynamic programming.
    """
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


def _common_prefix(one: Row, other: Row) -> int:
    shorter = min(len(one), len(other))
    differing = np.flatnonzero(one[:shorter] != other[:shorter])
    return int(differing[0]) if len(differing) else shorter


def pack_rows(rows: Sequence[Row], device: torch.device) -> PackedRows:
    """Pack rows. No row may be empty."""
    token_ids: list[Row] = []
    position_ids: list[Row] = []
    places = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
    prefixes: list[range] = []
    suffixes: list[range] = []
    prefix_of_suffix: list[int] = []
    end = 0

    def append(tokens: Row, position: int) -> range:
        nonlocal end
        start, end = end, end + len(tokens)
        token_ids.append(tokens)
        position_ids.append(np.arange(position, position + len(tokens)))
        return range(start, end)

    for number, family in enumerate(families(rows)):
        prefixes.append(append(rows[family.rows[0]][: family.prefix], 0))
        for row in family.rows:
            suffix = append(rows[row][family.prefix :], family.prefix)
            places[row, : family.prefix] = np.arange(prefixes[-1].start, prefixes[-1].stop)
            places[row, family.prefix : len(rows[row])] = np.arange(suffix.start, suffix.stop)
            if suffix:
                suffixes.append(suffix)
                prefix_of_suffix.append(number)

    layout = _attention_layout(prefixes, suffixes, prefix_of_suffix)
    return PackedRows(
        token_ids=torch.from_numpy(np.concatenate(token_ids).astype(np.int64))[None].to(device),
        position_ids=torch.from_numpy(np.concatenate(position_ids))[None].to(device),
        places=torch.from_numpy(places).to(device),
        layout=AttentionLayout(**{name: tensor.to(device) for name, tensor in vars(layout).items()}),
    )


def _attention_layout(prefixes: list[range], suffixes: list[range], prefix_of_suffix: list[int]) -> AttentionLayout:
    prefixes_GP, suffixes_SC = _padded(prefixes), _padded(suffixes)
    width, length = prefixes_GP.shape[1], suffixes_SC.shape[1]
    of_suffix = torch.tensor(prefix_of_suffix, dtype=torch.long)
    prefix_lengths = torch.tensor([len(prefix) for prefix in prefixes])[of_suffix]
    # Padding after a suffix attends to everything before it, so that no query is left without a key.
    sees_prefix = (torch.arange(width) < prefix_lengths[:, None])[:, None].expand(-1, length, -1)
    sees_itself = torch.ones(length, length, dtype=torch.bool).tril().expand(len(suffixes), -1, -1)
    tokens = sum(map(len, prefixes)) + sum(map(len, suffixes))
    origin = torch.zeros(tokens, dtype=torch.long)
    for block, start, ranges in ((prefixes_GP, 0, prefixes), (suffixes_SC, prefixes_GP.numel(), suffixes)):
        for number, places in enumerate(ranges):
            first = start + number * block.shape[1]
            origin[places.start : places.stop] = torch.arange(first, first + len(places))
    return AttentionLayout(
        prefixes=prefixes_GP,
        suffixes=suffixes_SC,
        suffix_keys=torch.cat((prefixes_GP[of_suffix], suffixes_SC), dim=1),
        suffix_sees=torch.cat((sees_prefix, sees_itself), dim=-1)[:, None],
        origin=origin,
    )


def _padded(places: Sequence[range]) -> Int[Tensor, "rows longest"]:
    """Each range as a row, padded with 0."""
    padded = np.zeros((len(places), max(map(len, places), default=0)), np.int64)
    for row, span in zip(padded, places, strict=True):
        row[: len(span)] = np.arange(span.start, span.stop)
    return torch.from_numpy(padded)
