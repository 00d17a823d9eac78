"""Numbers in groups of different sizes: each group has its own mean, spread and position."""

import pytest
import torch

from cooper_rl.records import Ragged

ROWS = [[1.0, 2.0, 6.0, 7.0], [5.0, -1.0], [2.0, 2.0, 5.0], [3.0, 3.0]]


@pytest.mark.parametrize("name", ["mean", "std", "amin", "amax"])
def test_a_group_is_reduced_by_itself(name):
    ragged = Ragged.of(ROWS, torch.float64)
    expected = [getattr(torch.tensor(row, dtype=torch.float64), name)().item() for row in ROWS]
    assert getattr(ragged, name)().tolist() == pytest.approx(expected, abs=0)


@pytest.mark.parametrize("name", ["mean", "std", "amin", "amax"])
def test_groups_of_one_size_are_reduced_as_the_rows_of_a_matrix(name):
    """They are equal to the last bit: another order of summation would change the numbers of every run."""
    numbers = torch.randn(64, 17, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(getattr(Ragged.of(list(numbers)), name)(), getattr(numbers, name)(dim=1))


def test_an_empty_group_has_no_mean_and_a_single_answer_no_spread():
    ragged = Ragged.of([[], [2.0]])
    assert ragged.mean().isnan().tolist() == [True, False]
    assert ragged.amax().tolist()[1] == 2.0
    assert ragged.std().isnan().all()


def test_each_groups_number_is_repeated_for_its_answers():
    ragged = Ragged.of([[0.0, 0.0, 0.0], [], [0.0]])
    assert ragged.expand(torch.tensor([1, 2, 3])).tolist() == [1, 1, 1, 3]


def test_groups_are_selected_whole():
    chosen = Ragged.of(ROWS).select(torch.tensor([False, True, False, True]))
    assert chosen.rows() == [ROWS[1], ROWS[3]]
