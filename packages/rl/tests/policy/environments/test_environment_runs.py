"""Whole runs in an environment: recorded, evaluated, judged from outside, and resumed bit for bit."""

import json
import math

import pytest
import torch
from pydantic import ValidationError

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, InputError, build_config
from in_process import model_of
from slow_members import first_fast

ENDS = list(range(11, 60))  # a random policy hardly ever ends a turn by itself


@pytest.fixture
def rolling(settings):
    """A random policy that rolls a die whose faces depend on the seed and on all rolls before."""
    rollout = {"n": 4, "max_tokens": 60, "max_turns": 3, "stop_token_ids": ENDS}
    world = {
        "environment": "policy.environments.worlds:Drawing",
        "tool_syntax": "policy.environments.worlds:CallsAlways",
    }
    return {**settings, "kind": "cooper", "rollout": rollout | world}


def fit(settings, resume=False, on_step=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit(on_step)
    return trainer


def timeless(directory):
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(directory)]


def rollouts_of(directory):
    rows = [json.loads(line) for file in sorted((directory / "rollouts").iterdir()) for line in file.open()]
    return [{k: v for k, v in one.items() if k != "verify_s"} for row in rows for one in row["completions"]]


@pytest.mark.slow
def test_a_run_that_dies_in_an_environment_with_state_goes_on_bit_for_bit(rolling):
    rolling = {**rolling, "evaluation": {"every": 0}, "steps": 3}
    whole = fit({**rolling, "name": "whole"})

    def die(step, metrics):
        if step == 3:
            raise KeyboardInterrupt("power cut")

    with pytest.raises(KeyboardInterrupt):
        fit(rolling, on_step=die)
    resumed = fit(rolling, resume=True)
    assert timeless(resumed.directory) == timeless(whole.directory)
    assert rollouts_of(resumed.directory) == rollouts_of(whole.directory)
    parameters = [model_of(one.parts.policy).parameters() for one in (resumed, whole)]
    assert all(map(torch.equal, *parameters))
    metrics = read_metrics(whole.directory)[-1]
    assert metrics["environment/calls"] > 4
    assert 1 < metrics["environment/turns"] <= 3
    recorded = rollouts_of(whole.directory)
    assert any("<tool>" in one.get("transcript", "") for one in recorded)


def test_verdicts_of_the_environment_teach_the_reward_model_where_no_rule_judges(rolling):
    settings = {**rolling, "rule": {"kind": "outside"}, "steps": 2}
    settings["rollout"] = {**settings["rollout"], "solved_at": 1.0}
    directory = fit(settings).directory
    verdicts = {one["verdict"] for one in rollouts_of(directory)}
    assert verdicts == {"correct", "wrong"}  # `get_reward` counts the calls
    metrics = read_metrics(directory)
    assert all("rule/accuracy" in row and row["pairs/count"] > 0 for row in metrics[1:] if "pairs/count" in row)
    assert 0 < metrics[0]["test/rule_avg"] < 1


@pytest.mark.parametrize("mixed", first_fast([False, True]))
def test_what_an_environment_returns_pays_as_it_is_and_judges_nothing_without_a_threshold(rolling, mixed):
    mix = [{"kind": "reward_model"}, {"kind": "rule", "weight": 0.5}] if mixed else []
    settings = {
        **rolling,
        "kind": "static" if mixed else "function",
        "rewards": [{"kind": "environment", "weight": 2.0}, *mix],
        "rule": {"kind": "outside"},
        "steps": 1,
        "evaluation": {"every": 0},
    }
    recorded = rollouts_of(fit(settings).directory)
    graded = [one["environment"] for one in recorded]
    assert len(set(graded)) > 2  # the number of calls
    assert {one["verdict"] for one in recorded} == {"silent"}
    model = [one["reward_model"] if mixed else 0.0 for one in recorded]
    assert [one["reward"] for one in recorded] == pytest.approx([2 * a + b for a, b in zip(graded, model, strict=True)])


def test_a_rollout_that_lost_its_environment_is_left_out(rolling):
    rollout = rolling["rollout"] | {"environment": "policy.environments.worlds:SometimesNoNumber"}
    rewards = [{"kind": "environment"}]
    quick = {"steps": 1, "evaluation": {"every": 0}, "rule": {"kind": "outside"}}
    directory = fit({**rolling, **quick, "kind": "function", "rollout": rollout, "rewards": rewards}).directory
    (row,), recorded = read_metrics(directory), rollouts_of(directory)
    missing = [one for one in recorded if math.isnan(one["reward"])]
    assert 0 < len(missing) < len(recorded)
    assert {one["advantage"] for one in missing} == {0.0}
    assert row["reward/no_opinion"] == pytest.approx(len(missing) / len(recorded))


def test_the_log_shows_what_reset_shows_and_blames_the_environment_where_every_call_throws(rolling, caplog):
    caplog.set_level("INFO", "cooper_rl")
    rollout = rolling["rollout"] | {"environment": "policy.environments.worlds:Broken", "solved_at": 1.0}
    settings = {**rolling, "rollout": rollout, "rule": {"kind": "outside"}, "steps": 1, "evaluation": {"every": 0}}
    fit(settings)
    said = [record.getMessage() for record in caplog.records]
    prompt = next(text for text in said if "The policy reads:" in text)
    assert prompt.replace(" ", "").endswith("board4")  # the tiny tokenizer has no spaces
    assert any("the policy does not read of its tools (add)" in text for text in said)
    assert any(
        "Broken: add() failed: KeyError: 'board' (policy.environments.worlds:Broken.add, worlds.py:" in t for t in said
    )
    watched = [text for text in said if text.startswith("watch (warn)")]
    assert [text.split()[5] for text in watched] == ["environment/fault_rate"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rollout": {"lag": 1}}, "cannot be drawn ahead"),
        ({"rollout": {"environment": "no_colon"}}, "environment"),
        ({"rollout": {"environment": "policy.environments.worlds:Missing"}}, "Missing does not exist"),
        ({"rollout": {"tool_syntax": "policy.environments.worlds:Adder"}}, "lacks the method `message`"),
        (
            {"rule": {"kind": "outside"}, "rollout": {"environment": "policy.environments.worlds:NoReward"}},
            "get_reward",
        ),
        ({"rule": {"kind": "outside"}, "rollout": {}}, "rollout.solved_at does not say"),
        ({"rewards": [{"kind": "environment"}], "rollout": {"environment": None}}, "and there is none"),
        (
            {"rewards": [{"kind": "environment"}], "rollout": {"environment": "policy.environments.worlds:NoReward"}},
            "has no such method",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_the_remedy(rolling, changes, message):
    algorithm = {"loss": {"kind": "ppo_clip", "truncated_importance_sampling": 2.0}, "recompute_old_logprobs": True}
    changes = {**changes, "rollout": rolling["rollout"] | changes["rollout"]}
    with pytest.raises((InputError, ValidationError), match=message):
        CooperTrainer.from_config(build_config({**rolling, **changes, "algorithm": algorithm}))
