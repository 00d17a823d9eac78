"""Who computes which rows: all of them once, groups whole, nobody with much more to do than the others."""

import numpy as np
import pytest

from cooper_rl.engines.scale.fsdp2 import same_prompt, shares
from cooper_rl.records import Column


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_every_row_is_computed_once(ranks):
    random = np.random.default_rng(0)
    for size in range(20):
        costs = random.integers(1, 50, size).tolist()
        groups = [rows.tolist() for rows in np.array_split(random.permutation(size), 4)]
        found = shares(costs, groups, ranks)
        assert len(found) == ranks
        assert sorted(row for rows in found for row in rows) == list(range(size))


def test_groups_stay_whole_and_the_dearest_go_first():
    costs = [10, 10, 4, 4, 4, 9, 9]
    assert shares(costs, [[0, 1], [2, 3, 4], [5, 6]], 2) == [[0, 1, 2, 3, 4], [5, 6]] or shares(
        costs, [[0, 1], [2, 3, 4], [5, 6]], 2
    ) == [[0, 1], [2, 3, 4, 5, 6]]


def test_many_groups_are_balanced_by_tokens():
    random = np.random.default_rng(1)
    costs = random.integers(50, 1000, 64 * 8).tolist()
    groups = [list(range(8 * group, 8 * group + 8)) for group in range(64)]
    loads = [sum(costs[row] for row in rows) for rows in shares(costs, groups, 8)]
    assert max(loads) < 1.05 * sum(costs) / 8


def test_a_group_dearer_than_an_even_share_is_cut():
    found = shares([5] * 8, [list(range(8))], 4)
    assert sorted(map(len, found)) == [2, 2, 2, 2]


def test_rows_with_the_same_prompt_are_one_group():
    rows = Column.of([[1, 2, 3], [1, 2, 4, 4], [1, 3, 3], [1, 2]])
    assert same_prompt(rows, np.array([1, 2, 1, 1])) == [[0, 1], [2], [3]]
