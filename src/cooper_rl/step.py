"""The Cooper step: the whole algorithm on one page."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from cooper_rl.build import Parts
from cooper_rl.cooptimization.health import ProbeSet, agreement
from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.evaluation.gold import gold_labels
from cooper_rl.observe.clock import Clock
from cooper_rl.observe.step_metrics import metrics_by_rule, rollout_metrics, verdict_metrics
from cooper_rl.policy.update import update_policy
from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts.answers import AnswerGroup
from cooper_rl.rollouts.ragged import Ragged
from cooper_rl.rollouts.rollouts import Rollouts
from cooper_rl.run_config import RunConfig


@dataclass(frozen=True)
class StepResult:
    """What one step sampled, found and did: P problems, N completions each."""

    sampled: Rollouts
    groups: list[AnswerGroup]
    verdicts: list[list[Verdict]]
    scores: Scores
    advantages: Float[Tensor, "P N"]
    gold: Bool[Tensor, "P N"] | None
    pairs: list[Pair]
    metrics: Metrics


def cooper_step(config: RunConfig, parts: Parts, probes: ProbeSet, step: int, seed: int) -> StepResult:
    """Step number `step`: rollouts, stage 1 (the policy's update), stage 2 (the reward model's); `seed` draws."""
    clock = Clock()
    with clock.measure("sample"):
        parts.sampler.load_weights(parts.policy)
        sampled = _sample(config, parts, seed, version=step - 1)
        groups = sampled.groups()
    with clock.measure("verify"):
        verdicts = parts.verifier.verify_groups(groups)
    with clock.measure("reward"):  # the reward model as of the previous step
        scores = parts.reward.score(groups)
        rewards = Ragged(scores.rewards.reshape(-1), tuple(sampled.group_sizes.tolist()))

    stage2 = None
    if parts.judge is not None:  # the assistant writes while the policy is updated
        stage2 = parts.judge.cooptimizer.start(groups, verdicts, scores.parts["logit"], step)

    with clock.measure("update_policy"):
        stage1 = update_policy(parts.policy, parts.reference, sampled, rewards, config.algorithm, config.rollout)

    metrics = rollout_metrics(sampled, rewards) | scores.metrics | stage1.metrics
    pairs: list[Pair] = []
    if parts.judge is not None and stage2 is not None:
        judge = parts.judge
        with clock.measure("wait_for_assistant"):
            pairs = judge.cooptimizer.finish(stage2)
        with clock.measure("update_reward_model"):
            pairs, stage2_metrics = judge.cooptimizer.update(pairs, judge.learner, judge.encoder)
            metrics |= stage2_metrics

    with clock.measure("monitor"):
        gold = gold_labels(groups, config.problems.gold) if config.problems.gold else None
        metrics |= _health(parts, probes, groups, verdicts, scores.parts, gold)
    return StepResult(
        sampled, groups, verdicts, scores, stage1.advantages.padded(0.0), gold, pairs, metrics | clock.metrics()
    )


def _sample(config: RunConfig, parts: Parts, seed: int, version: int) -> Rollouts:
    problems = parts.stream.next_batch()
    prompts = [parts.prompt_encoder.encode(problem) for problem in problems]
    samples = parts.sampler.sample(prompts, config.rollout.n, config.rollout, seed)
    return Rollouts.of(problems, prompts, samples, config.rollout.n, version)


def _health(
    parts: Parts,
    probes: ProbeSet,
    groups: Sequence[AnswerGroup],
    verdicts: Sequence[Sequence[Verdict]],
    score_parts: dict[str, Tensor],
    gold_PN: Bool[Tensor, "P N"] | None,
) -> Metrics:
    metrics = verdict_metrics(verdicts)
    metrics |= metrics_by_rule([parts.verifier.rule_name(group.problem) for group in groups], verdicts)
    if "reward_model" in score_parts:
        metrics |= agreement(score_parts["reward_model"], verdicts)
    if parts.judge is not None:
        metrics |= probes.measure(parts.judge.learner, parts.judge.encoder, groups)
    if gold_PN is not None:
        metrics["gold/accuracy"] = gold_PN.float().mean().item()
        if "reward_model" in score_parts:
            said_yes = score_parts["reward_model"] > 0.5
            metrics["gold/reward_model_accuracy"] = (said_yes == gold_PN).float().mean().item()
    return metrics
