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


@pytest.mark.parametrize(("rate", "told"), [(0, "learns nothing"), (10, "forgets all that it knows"), (1e-4, None)])
@pytest.mark.parametrize("part", ["policy", "reward_model"])
def test_a_learning_rate_with_which_nothing_is_learned_is_told(settings, caplog, part, rate, told):
    changed = {**settings, "kind": "cooper_model", part: {**settings[part], "learning_rate": rate}}
    read_inputs(build_config(changed))
    assert (f"{part}.learning_rate: with {rate:g} it" in caplog.text) == (told is not None)
    assert told is None or told in caplog.text


@pytest.mark.parametrize(("kind", "told"), [("rule", True), ("static", False)])
def test_a_reward_model_that_is_not_read_is_told(settings, caplog, kind, told):
    read_inputs(build_config({**settings, "kind": kind}))
    assert (f"kind: {kind} reads no reward model, so reward_model is not loaded" in caplog.text) == told


def test_rows_that_ask_the_same_are_counted(settings, caplog, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n' * 3)
    caplog.set_level("INFO")
    read_inputs(build_config({**settings, "kind": "rule", "problems": {"source": str(tmp_path / "rows.jsonl")}}))
    assert "problems: 1 problems from 3 rows (0 bad, 2 duplicates)" in caplog.text
