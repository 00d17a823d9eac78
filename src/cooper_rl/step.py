"""The Cooper step: the whole algorithm on one page."""

from dataclasses import dataclass

from cooper_rl.build import Parts
from cooper_rl.clock import Clock
from cooper_rl.cooptimization.cooper_reward import Scored
from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.observe.step_metrics import rollout_metrics
from cooper_rl.policy.update import update_policy
from cooper_rl.rollouts.ragged import Ragged
from cooper_rl.rollouts.rollouts import Rollouts
from cooper_rl.run_config import RunConfig


@dataclass(frozen=True)
class StepResult:
    """What one step sampled, found and did."""

    rollouts: Rollouts
    scored: Scored
    advantages: Ragged
    pairs: list[Pair]
    metrics: Metrics


def cooper_step(config: RunConfig, parts: Parts, step: int, seed: int) -> StepResult:
    """Step number `step`: rollouts, stage 1 (the policy's update), stage 2 (the reward model's); `seed` draws."""
    clock = Clock()
    with clock.measure("sample"):
        rollouts = parts.rollouts.take(parts.policy, step, seed, last=step == config.steps)
    # The reward model is as the previous step left it; the assistant writes while the policy is updated.
    scored = parts.reward.score(rollouts.groups(), step=step)
    paid = scored.scores.rewards
    with clock.measure("update_policy"):
        stage1 = update_policy(parts.policy, parts.reference, rollouts, paid, config.algorithm, config.rollout)
    stage2 = parts.reward.update(step)
    metrics = rollout_metrics(rollouts, step) | scored.metrics | stage1.metrics | stage2.metrics
    return StepResult(rollouts, scored, stage1.advantages, stage2.pairs, metrics | clock.metrics())
