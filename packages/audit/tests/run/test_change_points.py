"""What an unchanged run is called, and what a changed one, with the search for the windows inside the test."""

import numpy as np
import pytest
from benchmarks.runs.run_verdicts import HACKED, HONEST, simulated_run, verdicts_on

from cooper_audit.run.change_points import Series, course_of, fall_probability, shortest_of, t_quantile
from cooper_audit.statistics import T_975


def series(values) -> Series:
    steps = np.arange(1, len(values) + 1)
    return Series(steps, np.asarray(values, dtype=float), np.ones(len(values)), steps)


def course(check, reward):
    shortest = shortest_of(len(check)) if len(check) >= 12 else None
    return course_of(series(check), series(reward), shortest)


def test_the_search_for_the_largest_fall_has_the_error_that_it_states():
    generator = np.random.default_rng(0)
    seen = [fall_probability(series(generator.normal(0, 1, 24)), 5) <= 0.05 for _ in range(100)]
    assert sum(seen) <= 10  # of 100 unchanged runs about 5


@pytest.mark.parametrize("steps", [6, 20, 40, 200])
def test_a_course_is_told(steps):
    generator, place = np.random.default_rng(1), np.linspace(0, 1, steps)

    def state(check, reward):
        noise = generator.normal(0, 0.02, (2, steps))
        return course(check(place) + noise[0], reward(place) + noise[1]).state

    assert state(lambda x: 0.6 + 0 * x, lambda x: 0.5 + 0.4 * x) == "nothing learned"
    assert state(lambda x: 0.3 + 0.5 * x, lambda x: 0.3 + 0.5 * x) in ("healthy", "nothing learned")
    assert state(lambda x: 0.6 - 0.5 * (x > 0.5), lambda x: 0.6 + 0.3 * (x > 0.5)) == "hacked"
    assert state(lambda x: 0.6 - 0.5 * (x > 0.5), lambda x: 0.6 - 0.5 * (x > 0.5)) == "broken"
    if steps >= 40:
        middle = lambda x: (x > 0.35) & (x < 0.65)  # noqa: E731
        assert state(lambda x: 0.6 - 0.4 * middle(x), lambda x: 0.6 + 0.3 * middle(x)) == "recovered"


def test_the_quantiles_of_student_are_those_of_the_table():
    for degrees in (4, 10, 30):
        assert t_quantile(0.975, degrees) == pytest.approx(T_975[degrees - 1], rel=0.02)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_run_is_not_accused(name):
    generator = np.random.default_rng(sum(map(ord, name)))
    for _ in range(2):
        said = verdicts_on(simulated_run(HONEST[name], 20, 8, 4, generator))
        assert said["audit"] not in ("hacked", "recovered")
        assert said["report"] not in ("hacked", "recovered")
        assert name == "collapse without reward" or "broken" not in (said["audit"], said["report"])


@pytest.mark.parametrize("name", ["fast", "slow", "nonsense behind a right answer", "judge's prefix"])
def test_a_hack_is_found(name):
    said = verdicts_on(simulated_run(HACKED[name], 40, 16, 8, np.random.default_rng(0)))
    assert said["audit"] == said["report"] == "hacked"
    assert said["alarm"] is not None
    if name == "fast":  # which begins at step 17
        assert said["alarm"] <= 24


def test_a_reward_that_pays_what_the_check_rejects_since_the_first_step_pays_for_wrong_answers():
    said = verdicts_on(simulated_run(HACKED["from the first step"], 40, 16, 8, np.random.default_rng(0)))
    assert said["audit"] == "wrong paid"


@pytest.mark.slow
def test_honest_runs_are_accused_in_less_than_one_of_a_hundred():
    generator, states = np.random.default_rng(7), []
    for number in range(600):
        shape = HONEST[list(HONEST)[number % len(HONEST)]]
        run = simulated_run(shape, (12, 20, 40)[number % 3], (4, 8, 32)[number // 3 % 3], 4, generator)
        said = verdicts_on(run)
        states += [said["audit"] in ("hacked", "recovered"), said["report"] in ("hacked", "recovered")]
    assert sum(states) <= 12
