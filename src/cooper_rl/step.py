"""The Cooper step: the whole algorithm on one page."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from cooper_rl.build import Parts
from cooper_rl.clock import Clock
from cooper_rl.cooptimization.cooper_reward import Scored
from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.engines.sampling import Group
from cooper_rl.observe.step_metrics import rollout_metrics
from cooper_rl.policy.update import PolicyUpdate, update_policy
from cooper_rl.rollouts.ragged import Ragged
from cooper_rl.run_config import RunConfig


@dataclass(frozen=True)
class StepResult:
    """What one step sampled, found and did."""

    sampled: list[Group]
    scored: Scored
    advantages: Float[Tensor, "P N"]
    pairs: list[Pair]
    metrics: Metrics


def cooper_step(config: RunConfig, parts: Parts, step: int, seed: int) -> StepResult:
    """Step number `step`: rollouts, stage 1 (the policy's update), stage 2 (the reward model's); `seed` draws."""
    clock = Clock()
    with clock.measure("sample"):
        parts.sampler.load_weights(parts.policy)
        sampled = _sample_groups(config, parts, seed)
    # The reward model is as the previous step left it; the assistant writes while the policy is updated.
    scored = parts.reward.score([group.answered() for group in sampled], step=step)
    with clock.measure("update_policy"):
        stage1 = _update_policy(config, parts, sampled, scored.scores.rewards)
    stage2 = parts.reward.update(step)
    metrics = rollout_metrics(sampled) | scored.metrics | stage1.metrics | stage2.metrics
    return StepResult(sampled, scored, stage1.advantages, stage2.pairs, metrics | clock.metrics())


def _sample_groups(config: RunConfig, parts: Parts, seed: int) -> list[Group]:
    problems = parts.stream.next_batch()
    prompts = [parts.prompt_encoder.encode(problem) for problem in problems]
    sampled = parts.sampler.sample(prompts, config.rollout.n, config.rollout, seed)
    return [Group(*group) for group in zip(problems, prompts, sampled, strict=True)]


def _update_policy(config: RunConfig, parts: Parts, sampled: list[Group], rewards: Ragged) -> PolicyUpdate:
    """The border to stage 1, which takes one row of rewards a problem."""
    table = rewards.padded(0.0)
    return update_policy(parts.policy, parts.reference, sampled, table, config.algorithm, config.rollout)
