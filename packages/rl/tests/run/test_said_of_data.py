"""What is said of problems and rewards before a run starts, because nothing in it would show it."""

import pytest

from cooper_rl import build_config
from cooper_rl.run.inputs import read_inputs


@pytest.mark.parametrize("share", ["all", "some", "none"])
def test_test_problems_that_are_training_problems_are_named(settings, caplog, share):
    test = {
        "all": settings["problems"],
        "some": {**settings["problems"], "limit": 3},
        "none": settings["test_problems"],
    }[share]
    inputs = read_inputs(build_config({**settings, "kind": "rule", "test_problems": {**test}}))
    count = len(inputs.test_problems[""])
    said = f"test_problems: {count} of {count} questions are training problems too, and measure memory"
    assert (said in caplog.text) == (share != "none")
    assert inputs.notes.get(said) == (None if share == "none" else count)


LENGTH = {"kind": "function", "function": "crash.slow_reward:slow"}


@pytest.mark.parametrize(
    ("rewards", "told"),
    [
        ([LENGTH], True),
        ([LENGTH, {"kind": "rule"}], False),
        ([LENGTH, {"kind": "earned"}], False),
    ],
)
def test_a_reward_model_that_decides_nothing_is_told(settings, caplog, rewards, told):
    read_inputs(build_config({**settings, "kind": "cooper", "rewards": rewards}))
    assert ("rewards pays neither it nor the rule, so it decides nothing" in caplog.text) == told
