"""The Cooper step: the whole algorithm on one page."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from cooper_rl.build import Parts
from cooper_rl.clock import Clock
from cooper_rl.engines.base import Metrics
from cooper_rl.observe.step_metrics import rollout_metrics, unverified_advantage
from cooper_rl.policy.update import update_policy
from cooper_rl.rewards.process import score_steps
from cooper_rl.rollouts import Ragged, Rollouts
from cooper_rl.run_config import RunConfig
from cooper_rl.stage2.open_step import Scored, Updated
from cooper_rl.stage2.pairs import Pair


@dataclass(frozen=True)
class StepResult:
    """The rollouts of one step, their scores and advantages, the pairs made from them, and the metrics.

    `scored` is by the reward model of the previous step. `paid`, what the policy was paid, is the same object unless
    stage 2 came first.
    """

    rollouts: Rollouts
    scored: Scored
    paid: Scored
    advantages: Ragged
    after_kl: Ragged | None
    pairs: list[Pair]
    metrics: Metrics


def cooper_step(config: RunConfig, parts: Parts, step: int, seed: int) -> StepResult:
    """Step number `step`: rollouts, stage 1 (update of the policy), stage 2 (update of the reward model).

    `seed` decides which completions are sampled.
    """
    clock = Clock()
    with clock.measure("sample"):
        rollouts = parts.rollouts.take(parts.policy, step, seed, last=step == config.steps)
    # The reward model is still that of the previous step. The assistant writes while the policy is updated.
    scored = parts.reward.score(rollouts.groups(), step=step)
    early, paid = None, scored
    if parts.reward.learns_first(scored):  # the rule contradicts the model: it pays what it says after learning
        early, paid = parts.reward.update_and_rescore(step)
    algorithm, steps = config.algorithm, None
    if algorithm.process is not None:
        with clock.measure("score_steps"):
            model = parts.reward.models[algorithm.process.model]
            steps = score_steps(model, rollouts, parts.prompt_encoder.text_of, algorithm.process)
    with _stage2(parts, step, early) as update_reward_model:
        with clock.measure("update_policy"):
            rewards = paid.scores.rewards
            stage1 = update_policy(parts.policy, parts.reference, rollouts, rewards, algorithm, config.rollout, steps)
        stage2 = update_reward_model()
    metrics = rollout_metrics(rollouts, step) | scored.metrics | paid.metrics | stage1.metrics | stage2.metrics
    metrics |= unverified_advantage(stage1.advantages, scored.verdicts)
    metrics |= clock.metrics()
    return StepResult(rollouts, scored, paid, stage1.advantages, stage1.after_kl, stage2.pairs, metrics)


@contextmanager
def _stage2(parts: Parts, step: int, early: Updated | None) -> Iterator[Callable[[], Updated]]:
    """The reward model's update: under way from now on if the model has devices of its own, else when it is called.

    An `early` update was made before and is returned.
    """
    if early is not None:
        yield lambda: early
    elif not parts.learns_side_by_side:
        yield lambda: parts.reward.update(step)
    else:
        with ThreadPoolExecutor(max_workers=1) as thread:  # left only when the update has ended, after an error too
            yield thread.submit(parts.reward.update, step).result
