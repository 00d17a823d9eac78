"""Cooptimization before the policy's update: the policy is paid by the reward model that has learned from the step."""

import json
from math import exp
from statistics import mean, pstdev

import pytest
import torch

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_lab.arithmetic.arms import ASSETS, arm_settings
from cooper_rl import CooperTrainer, build_config
from cooper_rl.reward.kinds.earned import earned_weight, newer
from in_process import model_of

RATE = "reward_model/false_accept_rate"
HEALTH = [f"reward_model/{name}" for name in ("mean", "std", "rule_agreement", "true_accept_rate", "false_accept_rate")]
CALLS: list[int] = []


def counted(problem, completion):
    CALLS.append(1)
    return 0.0


@pytest.fixture
def step(tmp_path):
    """One step of the embedded world: its metrics, and the weights of reward model and policy after it."""

    def step(limit: float | None, name: str):
        overrides = {"steps": 1, "problems_per_step": 12, "name": name, "evaluation": {"every": 0}}
        overrides |= {"kind": "cooper_model", "problems": {"limit": 64}, "test_problems": {"limit": 8}}
        config = build_config(
            arm_settings("cooper", tmp_path, 0, {**overrides, "cooptimization": {"before_policy": limit}})
        )
        with CooperTrainer.from_config(config) as trainer:
            trainer.fit()
            learning = trainer.parts.reward.learning
            assert learning is not None
            weights = [
                torch.cat([value.flatten() for value in model_of(learner).state_dict().values()])
                for learner in (learning.learner, trainer.parts.policy)
            ]
        return read_metrics(trainer.directory)[-1], *weights

    return step


@pytest.mark.slow
def test_a_contradicted_step_pays_the_scores_of_the_model_that_has_learned_from_it(step):
    plain, reward_model, policy = step(None, "plain")
    limited, *same = step(1.0, "limited")
    first, learned, paid = step(0.0, "first")
    assert plain[RATE] > 0  # else no step would be contradicted
    assert {k: v for k, v in limited.items() if not k.startswith(MEASURED)} == {
        k: v for k, v in plain.items() if not k.startswith(MEASURED)
    }
    assert torch.equal(same[0], reward_model)
    assert torch.equal(same[1], policy)
    measured = [name for name in plain if name.startswith(("reward/", "rule/", "gold/")) or name in HEALTH]
    assert {name: first[name] for name in measured} == {name: plain[name] for name in measured}
    assert first["reward/mean_after"] == first["reward_model/mean_after"] != plain["reward_model/mean"]
    assert first["policy/grad_norm"] != plain["policy/grad_norm"]
    assert torch.equal(learned, reward_model)  # it learned from the same step
    assert not torch.equal(paid, policy)


def test_a_users_function_is_called_once_per_completion_although_the_step_is_scored_twice(settings):
    CALLS.clear()
    changes = {
        "steps": 1,
        "evaluation": {"every": 0},
        "cooptimization": {**settings["cooptimization"], "before_policy": 0.0},
        "rewards": [{"kind": "earned"}, {"kind": "function", "function": "test_before_policy:counted"}],
    }
    with CooperTrainer.from_config(build_config({**settings, **changes})) as trainer:
        trainer.fit()
        rollouts = trainer.config.rollout.n * trainer.config.problems_per_step
    assert f"{RATE}_after" in read_metrics(trainer.directory)[-1]  # it was scored twice
    assert len(CALLS) == rollouts


def test_state_across_steps_moves_once_a_step_by_the_scores_that_paid(tmp_path):
    """The weights of `earned`, `hybrid` and `constraints`, from the recorded scores of both steps."""
    changes = {
        "steps": 2,
        "problems": {"limit": 64},
        "test_problems": {"limit": 8},
        "problems_per_step": 12,
        "evaluation": {"every": 0},
        "rewards": [{"kind": "earned"}, {"kind": "hybrid"}],
        "shaping": [{"kind": "shelf.constraints:Constraints", "constraints": [{"reward": "rule", "at": 0.9}]}],
        "reward_model": {"model": str(ASSETS / "reward_model"), "learning_rate": 3e-3},
        "cooptimization": {"before_policy": 0.0},
    }
    with CooperTrainer.from_config(build_config(arm_settings("cooper", tmp_path, 0, changes))) as trainer:
        trainer.fit()
    counts, sigma, lagrange = [0.0] * 4, None, 0.0
    for step, row in enumerate(read_metrics(trainer.directory), 1):
        lines = (trainer.directory / "rollouts" / f"{step:06d}.jsonl").read_text().splitlines()
        groups = [json.loads(line)["completions"] for line in lines]
        paid = [(one["verdict"], one["reward_model_after"] > 0.5) for group in groups for one in group]
        seen = [[yes for verdict, yes in paid if verdict == wanted] for wanted in ("correct", "wrong")]
        now = [len(seen[0]), sum(seen[0]), len(seen[1]), sum(seen[1])]
        counts = [*newer(counts[:2], now[:2]), *newer(counts[2:], now[2:])]
        spread = mean(pstdev(one["reward_model_after"] for one in group) for group in groups)
        sigma = spread if sigma is None else 0.9 * sigma + 0.1 * spread
        assert row["earned/weight_after"] == pytest.approx(earned_weight(counts))
        assert row["hybrid/sigma_mean_after"] == pytest.approx(sigma, abs=1e-5)
        assert (
            row["constraints/1_weight_after"] == row["constraints/1_weight"] == pytest.approx(1 / (1 + exp(-lagrange)))
        )
        weight = row["constraints/1_weight"]
        lagrange -= 0.1 * weight * (1 - weight) * (row["rule/accuracy"] - 0.9)
