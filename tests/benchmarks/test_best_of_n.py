"""Best-of-n by the closed form equals drawing every subset; over-optimisation fits recover what was planted."""

from itertools import combinations, product

import numpy as np
import pytest
from benchmarks.overopt.best_of_n import best_of_n_curve, best_of_n_kl
from benchmarks.overopt.gap import OveroptimisationFit, fit_over_optimisation


def by_brute_force(proxy: np.ndarray, gold: np.ndarray, n: int) -> float:
    """The mean over all subsets of size n of the gold reward of the best, with ties broken in every way."""
    picked = []
    for subset in combinations(range(len(proxy)), n):
        best = max(proxy[i] for i in subset)
        picked.append(np.mean([gold[i] for i in subset if proxy[i] == best]))
    return float(np.mean(picked))


def test_the_curve_of_four_completions_is_the_one_computed_by_hand():
    curve = best_of_n_curve(np.array([[0.1, 0.2, 0.3, 0.4]]), np.array([[0.0, 1.0, 0.0, 1.0]]))
    assert curve == pytest.approx([1 / 2, 2 / 3, 3 / 4, 1])


def test_the_curve_equals_brute_force_over_all_subsets():
    random = np.random.default_rng(0)
    proxy, gold = random.normal(size=(3, 7)), random.random(size=(3, 7))
    expected = [np.mean([by_brute_force(p, g, n) for p, g in zip(proxy, gold, strict=True)]) for n in range(1, 8)]
    assert best_of_n_curve(proxy, gold) == pytest.approx(expected)


def test_equal_proxy_scores_are_broken_at_random():
    proxy = np.array([[2.0, 1.0, 2.0, 1.0, 0.0]])
    for gold in product((0.0, 1.0), repeat=5):
        expected = [by_brute_force(proxy[0], np.array(gold), n) for n in range(1, 6)]
        assert best_of_n_curve(proxy, np.array([gold])) == pytest.approx(expected)


def test_the_distance_of_best_of_n():
    assert best_of_n_kl(np.array([1, 4])) == pytest.approx([0.0, 0.636294], abs=1e-6)


def test_scores_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="finite"):
        best_of_n_curve(np.array([[np.nan, 1.0]]), np.zeros((1, 2)))
    with pytest.raises(ValueError, match="shape"):
        best_of_n_curve(np.zeros((1, 2)), np.zeros((2, 1)))


@pytest.mark.parametrize(("method", "peak"), [("best_of_n", 1.5), ("rl", np.exp(1.0))])
def test_a_fit_recovers_the_planted_curve_and_its_peak(method, peak):
    planted = OveroptimisationFit(method, start=0.4, alpha=0.6, beta=0.2 if method == "best_of_n" else 0.3, error=0)
    distance = np.linspace(0, 4, 30)
    found = fit_over_optimisation(distance, planted(distance), method)
    assert (found.start, found.alpha, found.beta) == pytest.approx((0.4, planted.alpha, planted.beta))
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.peak == pytest.approx(peak)
    finest = np.linspace(0.01, 6, 6000)
    assert finest[np.argmax(planted(finest))] == pytest.approx(peak, abs=2e-3)


def test_a_curve_that_never_falls_has_no_peak():
    distance = np.linspace(0, 2, 10)
    assert fit_over_optimisation(distance, 0.1 + distance**2, "best_of_n").peak is None
    assert fit_over_optimisation(distance, 0.9 - distance - distance**2, "best_of_n").peak is None


def test_a_fit_needs_three_different_distances():
    with pytest.raises(ValueError, match="three different distances; there are 2"):
        fit_over_optimisation(np.array([0.0, 1.0, 1.0]), np.zeros(3), "rl")
