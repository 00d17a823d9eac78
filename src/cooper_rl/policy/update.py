"""Stage 1: updates the policy on rollouts and their rewards."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cooper_rl.config.user_functions import load_added
from cooper_rl.engines.base import Metrics, PolicyBatch, PolicyLearner
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.progress import weights_change
from cooper_rl.losses.policy import KLKind, PolicyObjective, kl_estimate, token_weights
from cooper_rl.policy.advantages import (
    Completions,
    ReadsCompletions,
    TokenCredit,
    advantages,
    usable_groups,
)
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.rollouts import Ragged, Rollouts


@dataclass(frozen=True)
class StepLogprobs:
    """Log-probabilities (nats) of a step's completion tokens at `temperature`, before the update.

    NaN at the tokens of completions for which they were not computed.
    """

    temperature: float
    old: Float[np.ndarray, " tokens"]
    """Log-probabilities under the policy."""
    reference: Float[np.ndarray, " tokens"] | None
    """Log-probabilities under the frozen reference policy, if there is one."""

    def kl(self, kind: KLKind, clamp: float | None = None) -> Float[Tensor, " tokens"]:
        """Each token's estimate of KL(policy || reference) in nats."""
        if self.reference is None:
            raise ValueError("the distance to the reference needs the reference policy")
        old, reference = (torch.from_numpy(values.astype(np.float64)) for values in (self.old, self.reference))
        return kl_estimate(kind, old, reference, clamp)


@dataclass(frozen=True)
class PolicyUpdate:
    """The result of stage 1."""

    advantages: Ragged
    """The advantages that the update used (float32). With process credit, the mean over each completion's tokens."""
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
    credit: TokenCredit | None = None,
) -> PolicyUpdate:
    """Update the policy on one step's rollouts, which were sampled with `sampling` (temperature > 0).

    `reference` is the frozen start; a KL term needs it. `credit` is that of `config.process`, if it is set. All
    log-probabilities are at the sampling temperature. In a group with a non-finite reward, all advantages are 0. Raises
    ValueError if the rewards belong to other groups.
    """
    if rewards.sizes != tuple(rollouts.group_sizes.tolist()):
        raise ValueError(f"rewards have groups of sizes {rewards.sizes}, but rollouts have {rollouts.group_sizes}")
    every, lengths_B = np.arange(len(rollouts.token_ids)), rollouts.token_ids.lengths
    written_T = torch.from_numpy(rollouts.written)
    kl, in_loss = config.kl, config.kl is not None and config.kl.acts_on("loss")
    metrics: Metrics = {}
    logprobs = after_kl = completions = None
    if reference is not None:  # on all rows: the metric covers those without advantage too
        logprobs = _logprobs(learner, reference, rollouts, every, config, sampling)
        metrics["policy/reference_kl"] = logprobs.kl("k3")[written_T].mean().item()
    rewards = rewards.like(rewards.flat.double())
    if kl is not None and kl.acts_on("reward"):
        if logprobs is None:
            raise ValueError("a KL term in the reward needs the reference policy")
        estimates = logprobs.kl(kl.kind, kl.clamp).where(written_T, 0.0).split(lengths_B.tolist())
        penalties_B = torch.stack([kl.coefficient * row.sum() for row in estimates])
        rewards = after_kl = rewards.like(rewards.flat - penalties_B)
    rewards = finite_rewards(rewards)
    if after_kl is not None:
        metrics["reward/after_kl_mean"] = rewards.flat.mean().item()
        metrics["reward/after_kl_std"] = rewards.flat.std(unbiased=False).item()
        metrics["reward/after_kl_group_spread"] = (rewards.amax() - rewards.amin()).nanmean().item()
    usable_P = usable_groups(rewards, config.min_spread)
    if isinstance(config.advantages, ReadsCompletions):
        logprobs = logprobs or _logprobs(learner, None, rollouts, every, config, sampling)
        mean_logprobs = _means(logprobs.old.astype(np.float64), rollouts)
        lengths = torch.from_numpy(rollouts.written_lengths)
        completions = Completions(rewards.like(lengths), rewards.like(mean_logprobs))
    found = advantages(rewards, config.advantages, usable_P, completions)
    if config.max_advantage_z is not None:
        found, share = load_added("designs", "max_advantage_z")(found, usable_P, config.max_advantage_z)
        metrics["policy/advantage_outliers"] = share.item()
    taught_P, advantages_T = usable_P.numpy(), np.repeat(found.flat.numpy(), lengths_B)
    if config.process is not None:
        if credit is None:
            raise ValueError("process credit needs the steps of the completions")
        advantages_T = config.process.outcome_weight * advantages_T + np.concatenate(credit.advantages)
        largest = np.array([np.abs(row).max(initial=0.0) for row in credit.advantages])
        groups = np.split(largest, rollouts.offsets[1:-1])
        teaches_P = np.array([group.max(initial=0.0) > config.min_spread for group in groups])
        taught_P = taught_P | teaches_P
        metrics |= credit.metrics | {"process/usable_groups": float(teaches_P.mean())}
    counted_B = rollouts.stopped if config.overlong == "mask" else np.ones(len(every), bool)
    # In groups without usable spread, a KL term in the loss still has a gradient.
    kept_B = counted_B if in_loss else counted_B & taught_P[rollouts.problem_of]
    metrics |= {
        "policy/usable_groups": torch.from_numpy(taught_P).float().mean().item(),
        "policy/trained_completions": torch.from_numpy(kept_B).float().mean().item(),
    }

    if logprobs is None:
        logprobs = _logprobs(learner, None, rollouts, every[kept_B], config, sampling)
    objective = PolicyObjective(loss=config.loss, kl=kl if in_loss else None)
    updates: list[Metrics] = []
    for problems in np.array_split(np.arange(len(rollouts.problems)), config.minibatches):
        rows = every[np.isin(rollouts.problem_of, problems)]
        batch = _batch(rollouts, rows, advantages_T, kept_B, counted_B, logprobs, config)
        trained = learner.forward_backward(batch, objective) if len(batch.token_ids) else {}
        weights_change()
        # Also without gradients, so that a step's learning rate does not depend on how much data earlier steps had.
        updates.append(trained | learner.optim_step())
    metrics |= {f"policy/{name}": value for name, value in _over_updates(updates).items()}
    used = found.flat if config.process is None else _means(advantages_T, rollouts)
    return PolicyUpdate(found.like(used.float()), metrics, after_kl)


def _logprobs(
    learner: PolicyLearner,
    reference: PolicyLearner | None,
    rollouts: Rollouts,
    rows: Int[np.ndarray, " R"],
    config: AlgorithmConfig,
    sampling: SamplingParams,
) -> StepLogprobs:
    """Log-probabilities before the step's update. The policy's are the sampler's unless the settings recompute them."""

    def of(model: PolicyLearner, adapter: bool) -> Float[np.ndarray, " tokens"]:
        if not len(rows):
            return np.full(len(rollouts.logprobs), np.nan)
        lengths = rollouts.token_ids.lengths[rows]
        found = model.logprobs(rollouts.sequences(rows), lengths, sampling.temperature, adapter)
        everywhere = np.full(len(rollouts.logprobs), np.nan, found.dtype)
        everywhere[rollouts.token_ids.places(rows)] = found
        return everywhere

    old = of(learner, adapter=True) if config.recompute_old_logprobs else rollouts.logprobs
    return StepLogprobs(sampling.temperature, old, None if reference is None else of(reference, adapter=False))


def finite_rewards(rewards: Ragged) -> Ragged:
    """The rewards, with zeros for every group that has a non-finite reward, so that it has no spread to learn from.

    A diverged reward model thus costs its groups but does not end the run.
    """
    groups = [group if bool(group.isfinite().all()) else torch.zeros_like(group) for group in rewards.groups()]
    return rewards.like(torch.cat(groups))


def _means(values_T: Float[np.ndarray, " T"], rollouts: Rollouts) -> Float[Tensor, " B"]:
    """The mean over the tokens of each completion that the policy wrote; 0 for one without tokens."""
    rows = torch.from_numpy(values_T[rollouts.written]).split(rollouts.written_lengths.tolist())
    return torch.stack([row.mean() if len(row) else row.sum() for row in rows])


def _over_updates(updates: Sequence[Metrics]) -> Metrics:
    """Means over the step's optimizer steps, but the last value of the learning rate and of running totals."""
    names = dict.fromkeys(name for update in updates for name in update)
    values = {name: [update[name] for update in updates if name in update] for name in names}
    means = {name: sum(found) / len(found) for name, found in values.items()}
    return means | {name: updates[-1][name] for name in ("learning_rate", "skipped_updates")}


def _batch(
    rollouts: Rollouts,
    rows: Int[np.ndarray, " R"],
    advantages_T: Float[np.ndarray, " T"],
    kept_B: Bool[np.ndarray, " B"],
    counted_B: Bool[np.ndarray, " B"],
    logprobs: StepLogprobs,
    config: AlgorithmConfig,
) -> PolicyBatch:
    """The batch of the kept rows among `rows`. Weights are normalised over the counted rows among `rows`."""
    written_R, kept_R = rollouts.written_lengths[rows], kept_B[rows]
    weights_R = token_weights(written_R, config.aggregation, counted=counted_B[rows], kept=kept_R)
    kept = rows[kept_R]
    lengths, tokens = rollouts.token_ids.lengths[kept], rollouts.token_ids.places(kept)
    weights, trained = np.repeat(weights_R[kept_R], lengths), rollouts.trained
    return PolicyBatch(
        token_ids=rollouts.sequences(kept),
        lengths=lengths,
        advantages=advantages_T[tokens],
        weights=weights if trained is None else weights * trained[tokens],
        old_logprobs=logprobs.old[tokens],
        sampler_logprobs=rollouts.logprobs[tokens],
        reference_logprobs=None if logprobs.reference is None else logprobs.reference[tokens],
        temperature=logprobs.temperature,
        trained=None if trained is None else trained[tokens],
    )
