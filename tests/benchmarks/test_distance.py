"""STARC distances by hand, and what they do not depend on."""

import json

import numpy as np
import pytest
from benchmarks.overopt.distance import distances, starc_distance

from cooper_base.errors import InputError

ONE = np.zeros(4)


def test_the_distance_is_half_the_gap_of_the_standardised_rewards():
    found = starc_distance(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4]), ONE)
    assert found == pytest.approx(np.sqrt(0.1))  # Pearson correlation 0.8


def test_scale_and_a_shift_per_problem_change_nothing():
    random = np.random.default_rng(1)
    reward, groups = random.normal(size=12), np.repeat(["a", "b", "c"], 4)
    same = 3 * reward + np.repeat([5.0, -7.0, 0.25], 4)
    assert starc_distance(reward, same, groups) == pytest.approx(0, abs=1e-12)
    assert starc_distance(reward, -reward, groups) == pytest.approx(1)


def test_norm_2_is_the_epic_distance_of_the_centred_rewards():
    random = np.random.default_rng(2)
    a, b, groups = random.normal(size=20), random.normal(size=20), np.repeat(np.arange(5), 4)
    centred = [(r.reshape(5, 4) - r.reshape(5, 4).mean(axis=1, keepdims=True)).ravel() for r in (a, b)]
    rho = np.corrcoef(*centred)[0, 1]
    assert starc_distance(a, b, groups) == pytest.approx(np.sqrt((1 - rho) / 2))


def test_a_reward_that_tells_no_two_completions_apart_is_half_way_from_any_other():
    reward = np.array([0.0, 1, 0, 1])
    assert starc_distance(np.full(4, 0.1), reward, ONE) == pytest.approx(0.5)
    assert starc_distance(np.full(4, 0.1), np.full(4, 9.0), ONE) == 0
    assert starc_distance(np.array([1e6, 2.0]), np.array([3.0, 4.0]), np.array(["a", "b"])) == 0


def test_infinite_rewards_are_refused():
    with pytest.raises(ValueError, match="finite"):
        starc_distance(np.array([np.inf, 0]), np.zeros(2), np.zeros(2))


def test_the_distance_between_a_model_and_itself_is_0(tiny_models, tmp_path):
    row = {"question": "1+1=", "reference_answer": "2"}
    rows = [row | {"completion": text, "label": label} for text, label in (("2", 1), ("3", 0), ("4", 0))]
    data, model = tmp_path / "labelled.jsonl", str(tiny_models / "reward_model")
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = distances([str(data)], {"rm": model, "b": model})
    assert found["rm"]["b"] == 0
    assert 0 < found["rm"]["label"] < 1
    data.write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(InputError, match="no question has two completions"):
        distances([str(data)], {"rm": model})
