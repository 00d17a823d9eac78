"""Stage 1: updates the policy on rollouts and their rewards."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from cooper_rl.engines.base import Metrics, PolicyBatch, PolicyLearner
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.policy.advantages import advantages, usable_groups
from cooper_rl.policy.aggregation import token_weights
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.kl import KLConfig
from cooper_rl.policy.losses import PolicyObjective
from cooper_rl.policy.outliers import without_outliers
from cooper_rl.policy.step_logprobs import StepLogprobs, learner_logprobs
from cooper_rl.rollouts.ragged import Ragged
from cooper_rl.rollouts.rollouts import Rollouts


@dataclass(frozen=True)
class PolicyUpdate:
    """The result of stage 1."""

    advantages: Ragged
    """The advantages that the update used (float32)."""
    metrics: Metrics
    after_kl: Ragged | None = None
    """The rewards minus the KL penalty, from which the advantages were computed; None without such a penalty."""


def update_policy(
    learner: PolicyLearner,
    reference: PolicyLearner | None,
    rollouts: Rollouts,
    rewards: Ragged,
    config: AlgorithmConfig,
    sampling: SamplingParams,
) -> PolicyUpdate:
    """Update the policy on one step's rollouts, which were sampled with `sampling` (temperature > 0).

    `reference` is the frozen start; a KL term needs it. All log-probabilities are at the sampling temperature. In a
    group with a non-finite reward, all advantages are 0. Raises ValueError if the rewards belong to other groups.
    """
    if rewards.sizes != tuple(rollouts.group_sizes.tolist()):
        raise ValueError(f"rewards have groups of sizes {rewards.sizes}, but rollouts have {rollouts.group_sizes}")
    every = np.arange(len(rollouts.token_ids))
    metrics: Metrics = {}
    logprobs = None
    if reference is not None:  # on all rows: the metric covers those without advantage too
        logprobs = _logprobs(learner, reference, rollouts, every, config, sampling)
        metrics["policy/reference_kl"] = logprobs.mean_kl()
    rewards = rewards.like(rewards.flat.double())
    after_kl = None
    if config.kl is not None and config.pulls_in("reward"):
        rewards = after_kl = _after_kl(rewards, rollouts, logprobs, config.kl)
    rewards = _zero_where_not_finite(rewards)
    if after_kl is not None:
        metrics |= _reward_metrics(rewards)
    usable_P = usable_groups(rewards, config.min_spread)
    found = advantages(rewards, config.advantages, usable_P)
    if config.max_advantage_z is not None:
        found, share = without_outliers(found, usable_P, config.max_advantage_z)
        metrics["policy/advantage_outliers"] = share.item()
    counted_B = rollouts.stopped if config.overlong.kind == "mask" else np.ones(len(every), bool)
    # In groups without usable spread, a KL term in the loss still has a gradient.
    kept_B = counted_B if config.pulls_in("loss") else counted_B & usable_P.numpy()[rollouts.problem_of]
    metrics |= {
        "policy/usable_groups": usable_P.float().mean().item(),
        "policy/trained_completions": torch.from_numpy(kept_B).float().mean().item(),
    }

    if logprobs is None:
        logprobs = _logprobs(learner, None, rollouts, every[kept_B], config, sampling)
    objective = PolicyObjective(loss=config.loss, kl=config.kl if config.pulls_in("loss") else None)
    updates: list[Metrics] = []
    for groups in np.array_split(np.arange(len(rollouts.problems)), config.minibatches):
        rows = every[np.isin(rollouts.problem_of, groups)]
        batch = _batch(rollouts, rows, found.flat.numpy(), kept_B, counted_B, logprobs, config)
        trained = learner.forward_backward(batch, objective) if len(batch.token_ids) else {}
        # Also without gradients, so that a step's learning rate does not depend on how much data earlier steps had.
        updates.append(trained | learner.optim_step())
    metrics |= {f"policy/{name}": value for name, value in _over_updates(updates).items()}
    return PolicyUpdate(found.like(found.flat.float()), metrics, after_kl)


def _logprobs(
    learner: PolicyLearner,
    reference: PolicyLearner | None,
    rollouts: Rollouts,
    rows: Int[np.ndarray, " R"],
    config: AlgorithmConfig,
    sampling: SamplingParams,
) -> StepLogprobs:
    """Log-probabilities before the step's update. The policy's are the sampler's unless the settings recompute them."""
    temperature = sampling.temperature
    recomputed = config.recompute_old_logprobs
    return StepLogprobs(
        temperature=temperature,
        old=learner_logprobs(learner, rollouts, rows, temperature) if recomputed else rollouts.logprobs,
        reference=None if reference is None else learner_logprobs(reference, rollouts, rows, temperature),
    )


def _after_kl(rewards: Ragged, rollouts: Rollouts, logprobs: StepLogprobs | None, kl: KLConfig) -> Ragged:
    """The rewards minus each completion's KL penalty."""
    if logprobs is None:
        raise ValueError("a KL term in the reward needs the reference policy")
    return rewards.like(rewards.flat - logprobs.penalties(rollouts.token_ids.lengths, kl))


def _reward_metrics(rewards: Ragged) -> Metrics:
    """Metrics of the rewards after the KL penalty. A group with a non-finite reward counts as zeros."""
    spread = rewards.amax() - rewards.amin()
    return {
        "reward/after_kl_mean": rewards.flat.mean().item(),
        "reward/after_kl_std": rewards.flat.std(unbiased=False).item(),
        "reward/after_kl_group_spread": spread.nanmean().item(),
    }


def _zero_where_not_finite(rewards: Ragged) -> Ragged:
    """The rewards, with zeros for every group that has a non-finite reward, so that it has no spread to learn from.

    A diverged reward model thus costs its groups but does not end the run.
    """
    groups = [group if bool(group.isfinite().all()) else torch.zeros_like(group) for group in rewards.groups()]
    return rewards.like(torch.cat(groups))


def _over_updates(updates: Sequence[Metrics]) -> Metrics:
    """Means over the step's optimizer steps, but the last value of the learning rate and of running totals."""
    names = dict.fromkeys(name for update in updates for name in update)
    values = {name: [update[name] for update in updates if name in update] for name in names}
    means = {name: sum(found) / len(found) for name, found in values.items()}
    return means | {name: updates[-1][name] for name in ("learning_rate", "skipped_updates")}


def _batch(
    rollouts: Rollouts,
    rows: Int[np.ndarray, " R"],
    advantages_B: Float[np.ndarray, " B"],
    kept_B: Bool[np.ndarray, " B"],
    counted_B: Bool[np.ndarray, " B"],
    logprobs: StepLogprobs,
    config: AlgorithmConfig,
) -> PolicyBatch:
    """The batch of the kept rows among `rows`. Weights are normalised over the counted rows among `rows`."""
    lengths_B = rollouts.token_ids.lengths
    weights_R = token_weights(lengths_B[rows], config.aggregation, counted=counted_B[rows], kept=kept_B[rows])
    kept = rows[kept_B[rows]]
    lengths, tokens = lengths_B[kept], rollouts.token_ids.places(kept)
    return PolicyBatch(
        token_ids=rollouts.sequences(kept),
        lengths=lengths,
        advantages=np.repeat(advantages_B[kept], lengths),
        weights=np.repeat(weights_R[kept_B[rows]], lengths),
        old_logprobs=logprobs.old[tokens],
        sampler_logprobs=rollouts.logprobs[tokens],
        reference_logprobs=None if logprobs.reference is None else logprobs.reference[tokens],
        temperature=logprobs.temperature,
    )
