"""Stage 2 before stage 1: the policy is paid what the reward model says after it has learned from the step."""

import pytest
import torch

from cooper_lab.arithmetic.arms import arm_settings
from cooper_rl import CooperTrainer, build_config
from cooper_rl.clock import MEASURED
from cooper_rl.observe.record import read_metrics
from in_process import model_of

RATE = "reward_model/false_accept_rate"
CALLS: list[int] = []


def counted(problem, completion):
    CALLS.append(1)
    return 0.0


@pytest.fixture
def step(tmp_path):
    """One step of the embedded world: its metrics, and the weights of reward model and policy after it."""

    def step(limit: float | None, name: str):
        overrides = {"steps": 1, "problems_per_step": 12, "name": name, "evaluation": {"every": 0}}
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
    assert first[f"{RATE}_before"] == plain[RATE]
    assert first["reward/mean"] == first["reward_model/mean"] != plain["reward_model/mean"]
    assert first["rule/accuracy"] == plain["rule/accuracy"]
    assert torch.equal(learned, reward_model)  # it learned from the same step
    assert not torch.equal(paid, policy)


def test_a_users_function_is_called_once_per_completion_although_the_step_is_scored_twice(tmp_path):
    CALLS.clear()
    changes = {
        "steps": 1,
        "problems_per_step": 12,
        "evaluation": {"every": 0},
        "cooptimization": {"before_policy": 0.0},
        "extra_rewards": [{"function": "test_before_policy:counted"}],
    }
    with CooperTrainer.from_config(build_config(arm_settings("cooper", tmp_path, 0, changes))) as trainer:
        trainer.fit()
        rollouts = trainer.config.rollout.n * 12
    assert f"{RATE}_before" in read_metrics(trainer.directory)[-1]  # it was scored twice
    assert len(CALLS) == rollouts
