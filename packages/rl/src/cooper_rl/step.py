"""The Cooper step: the whole algorithm on one page."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from cooper_base.clock import Clock
from cooper_base.progress import weights_change
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines import EngineConfig
from cooper_rl.engines.base import Metrics, PolicyLearner, Sampler
from cooper_rl.policy.accuracy import HeldOut
from cooper_rl.policy.advantages import token_credit, unverified_advantage
from cooper_rl.policy.rollout_source import RolloutSource, rollout_metrics
from cooper_rl.policy.update import update_policy
from cooper_rl.records import Ragged, Rollouts
from cooper_rl.resampling import resampled
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.monitor import Monitor
from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.scored import Scored, Updated
from cooper_rl.run_config import RunConfig


@dataclass(frozen=True)
class StepResult:
    """The rollouts of one step, their scores and advantages, the pairs made from them, and the metrics.

    `scored` is by the reward model of the previous step. `paid`, what the policy was paid, is the same object unless
    cooptimization came first.
    """

    rollouts: Rollouts
    scored: Scored
    paid: Scored
    advantages: Ragged
    after_kl: Ragged | None
    pairs: list[Pair]
    metrics: Metrics


@dataclass(frozen=True)
class Parts:
    """Everything a run works with. `reference` is None if there is no KL term."""

    engine: EngineConfig
    stream: ProblemStream
    prompt_encoder: PromptEncoder
    sampler: Sampler
    rollouts: RolloutSource
    policy: PolicyLearner
    reference: PolicyLearner | None
    reward: CooperReward
    test_sets: list[HeldOut]
    monitor: Monitor | None
    notes: Mapping[str, int] = field(default_factory=dict)
    """Notes on the data for the run's record: message → number of problems."""

    def close(self) -> None:
        """Stop the verifier's processes, close the assistant's connections, and stop what the engine has started."""
        self.reward.close()
        self.engine.close()


def cooper_step(config: RunConfig, parts: Parts, step: int, seed: int) -> StepResult:
    """Step number `step`: rollouts, the update of the policy (stage 1 of the paper), cooptimization (stage 2).

    `seed` decides which completions are sampled.
    """
    clock = Clock()
    with clock.measure("sample"):
        rollouts = parts.rollouts.take(parts.policy, step, seed, last=step == config.steps)
    # The reward model is still that of the previous step. The assistant writes while the policy is updated.
    scored = parts.reward.score(rollouts.groups(), step=step)
    drawn: Metrics = {}
    if config.rollout.resample or config.curriculum is not None:
        with clock.measure("resample"):
            rollouts, scored, drawn = resampled(
                config.rollout, config.algorithm, parts.rollouts, parts.reward, step, seed, rollouts, scored
            )
    early, paid = None, scored
    if parts.reward.learns_first(scored):  # the rule contradicts the model, so the model learns before it pays
        weights_change()
        early, paid = parts.reward.update_and_rescore(scored, rollouts.groups())
    rewards, summands = paid.scores.rewards, paid.scores.summands
    algorithm, credit = config.algorithm, None
    if algorithm.advantages.credits_tokens:
        with clock.measure("score_steps"):
            decode = parts.prompt_encoder.text_of
            credit = token_credit(algorithm.advantages, parts.reward.model, rollouts, rewards, decode)
    with _cooptimization(parts, scored, early) as update_reward_model:
        with clock.measure("update_policy"):
            updated = update_policy(
                parts.policy, parts.reference, rollouts, rewards, algorithm, config.rollout, credit, summands
            )
        cooptimized = update_reward_model()
    metrics = rollout_metrics(rollouts, step) | scored.metrics | paid.metrics | updated.metrics | cooptimized.metrics
    metrics |= parts.rollouts.metrics | drawn | unverified_advantage(updated.advantages, scored.verdicts)
    metrics |= clock.metrics()
    return StepResult(rollouts, scored, paid, updated.advantages, updated.after_kl, cooptimized.pairs, metrics)


@contextmanager
def _cooptimization(parts: Parts, scored: Scored, early: Updated | None) -> Iterator[Callable[[], Updated]]:
    """A call that returns the reward model's update.

    A model with devices of its own is updated in a thread that starts here, any other when the call is made. An `early`
    update has been made already, and the call returns it.
    """
    if early is not None:
        yield lambda: early
    elif not parts.engine.learns_side_by_side:
        yield lambda: parts.reward.update(scored)
    else:
        weights_change()
        with ThreadPoolExecutor(max_workers=1) as thread:  # left only when the update has ended, after an error too
            yield thread.submit(parts.reward.update, scored).result
