"""Intervals of accuracies: computed by hand, at the extremes, and by how often they contain the truth."""

import math

import numpy as np
import pytest

from cooper_audit.statistics import Estimate, effective_problems, wilson_interval


def test_none_of_six_leaves_room_for_the_truth():
    found = Estimate.of(np.zeros(6))
    assert (found.mean, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.3903, abs=1e-4)  # z^2 / (6 + z^2)
    assert Estimate.of(np.ones(6)).low == pytest.approx(1 - found.high)


@pytest.mark.parametrize(("share", "trials"), [(0.0, 6), (0.1, 20), (0.5, 7.5), (1.0, 1)])
def test_the_bounds_are_where_the_score_test_begins_to_reject(share, trials):
    for bound in wilson_interval(share, trials):
        if 0 < bound < 1:
            assert abs(share - bound) / math.sqrt(bound * (1 - bound) / trials) == pytest.approx(1.959964)


def test_samples_of_one_problem_count_as_far_as_they_tell_more_than_one():
    solved_or_not = np.array([0.0, 1.0] * 10)
    assert effective_problems(solved_or_not, draws=8) == 20  # eight samples that agree count as one
    assert effective_problems(np.full(20, 0.5), draws=8) == 160  # eight coin tosses a problem count as eight
    assert effective_problems(np.zeros(20), draws=8) == 20
    between = np.array([0.25, 0.75] * 10)
    assert effective_problems(between, draws=8) == pytest.approx(20 * 0.25 / (0.0625 * 20 / 19))
    assert effective_problems(np.array([0.5])) == 1


@pytest.mark.parametrize("problems", [6, 30, 200])
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("difficulty", [(0.3, 0.3), (0.1, 0.9), (0.2, 4), (5, 5)])
def test_about_nineteen_of_twenty_intervals_hold_the_truth(problems, k, difficulty):
    """Few and many problems of different spreads of difficulty. A bootstrap contains the truth in 22 % at worst."""
    generator = np.random.default_rng(0)
    truth = difficulty[0] / sum(difficulty)
    held = 0
    for _ in range(2000):
        correct = generator.binomial(k, generator.beta(*difficulty, size=problems)) / k
        found = Estimate.of(correct, draws=k)
        held += found.low <= truth <= found.high
    assert held / 2000 > 0.92
