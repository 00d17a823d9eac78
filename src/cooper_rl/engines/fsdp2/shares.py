"""Which process computes which rows of a batch."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from cooper_rl.rollouts import Column


def shares(costs: Sequence[int], groups: Sequence[Sequence[int]], ranks: int) -> list[list[int]]:
    """The rows of each of `ranks` processes, in ascending order; row i costs `costs[i]` (tokens).

    Groups stay whole, because their rows share a prefix that is computed once, but for one that costs more than an
    even share: it is cut. The dearest goes first, each to the process with the least to do so far.
    """
    even = sum(costs) / ranks
    pieces = [piece for group in groups for piece in _cut(group, costs, even)]
    loads, taken = [0] * ranks, [[] for _ in range(ranks)]
    for piece in sorted(pieces, key=lambda piece: (-sum(costs[row] for row in piece), piece[0])):
        rank = loads.index(min(loads))
        loads[rank] += sum(costs[row] for row in piece)
        taken[rank].extend(piece)
    return [sorted(rows) for rows in taken]


def _cut(group: Sequence[int], costs: Sequence[int], most: float) -> list[list[int]]:
    """The group's rows in pieces that cost at most `most`, or are one row."""
    pieces: list[list[int]] = []
    cost = 0
    for row in group:
        if pieces and cost + costs[row] <= most:
            pieces[-1].append(row)
            cost += costs[row]
        else:
            pieces.append([row])
            cost = costs[row]
    return pieces


def same_prompt(token_ids: Column, lengths: Int[np.ndarray, " B"]) -> list[list[int]]:
    """Rows with the same tokens before their last `lengths[i]`."""
    groups: dict[bytes, list[int]] = {}
    for i, row in enumerate(token_ids):
        groups.setdefault(row[: len(row) - lengths[i]].tobytes(), []).append(i)
    return list(groups.values())
