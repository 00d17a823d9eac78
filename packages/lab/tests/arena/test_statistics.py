"""Intervals and paired tests against values computed by hand or by counting."""

from itertools import product
from math import gamma, isnan, pi, sqrt

import pytest

from cooper_audit.statistics import T_975, mean_interval
from cooper_lab.arena.statistics import holm, sign_flip_p


def _t_cdf(t: float, freedom: int, steps: int = 4000) -> float:
    """Student's t by Simpson's rule from 0."""
    scale = gamma((freedom + 1) / 2) / (sqrt(freedom * pi) * gamma(freedom / 2))

    def density(x: float) -> float:
        return scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)

    width = t / steps
    weights = [1, *([4, 2] * (steps // 2))[:-1], 1]
    return 0.5 + width / 3 * sum(w * density(i * width) for i, w in enumerate(weights))


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 11, 20, 30])
def test_the_table_holds_quantiles_of_students_t(freedom):
    assert _t_cdf(T_975[freedom - 1], freedom) == pytest.approx(0.975, abs=1e-4)


def test_interval_of_three_seeds():
    mean, low, high = mean_interval([0.8, 0.9, 1.0])
    assert mean == pytest.approx(0.9)
    assert high - mean == pytest.approx(4.303 * 0.1 / sqrt(3))
    assert mean - low == pytest.approx(high - mean)


def test_one_value_has_no_interval():
    mean, low, high = mean_interval([0.5])
    assert mean == 0.5
    assert isnan(low)
    assert isnan(high)


def test_sign_flips_are_counted_exactly():
    differences = [0.3, 0.1, -0.2, 0.4]
    total = sum(differences)
    flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=4)]
    assert sign_flip_p(differences) == pytest.approx(sum(flip >= total - 1e-12 for flip in flips) / 16)
    assert sign_flip_p([0.1] * 10) == pytest.approx(2 / 2**10)
    assert sign_flip_p([0.0] * 5) == 1.0


def test_many_differences_are_sampled_and_agree_with_counting():
    assert sign_flip_p([0.1] * 20) < 1e-4
    assert sign_flip_p([0.1, -0.1] * 10) == 1.0


def test_holm_on_a_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
