"""Stage 1: updates the policy on rollouts and their rewards."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cooper_base.progress import weights_change
from cooper_rl.engines.base import Metrics, PolicyBatch, PolicyLearner
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.losses.policy import KLKind, PolicyObjective, kl_estimate, pulls_in, token_weights
from cooper_rl.policy.advantages import (
    Completions,
    TokenCredit,
    advantage_shares,
    estimate,
    usable_groups,
)
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.estimators import differing
from cooper_rl.records import Ragged, Rollouts, Summands


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
    """The advantages that the update used (float32). With token credit, the mean over each completion's tokens."""
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
    summands: Summands = (),
) -> PolicyUpdate:
    """Update the policy on one step's rollouts, which were sampled with `sampling` (temperature > 0).

    `reference` is the frozen start; a KL term needs it. `credit` is what the estimator gives to single tokens, and
    `summands` are the rewards that add up to `rewards`, which some estimators read. All log-probabilities are at the
    sampling temperature. In a group with an infinite reward, all advantages are 0. An answer whose reward is NaN,
    because there is no opinion on it, is left out of the advantages, and of the loss with its denominators and its KL
    term. Raises ValueError if the rewards belong to other groups.
    """
    if rewards.sizes != tuple(rollouts.group_sizes.tolist()):
        raise ValueError(f"rewards have groups of sizes {rewards.sizes}, but rollouts have {rollouts.group_sizes}")
    before = _Before(learner, reference, rollouts, config, sampling)
    metrics: Metrics = {}
    if reference is not None:  # on all rows: the metric covers those without advantage too
        written_T = torch.from_numpy(rollouts.written)
        metrics["policy/reference_kl"] = before.of_all().kl("k3")[written_T].mean().item()
    after_kl, of_kl = _minus_kl(rewards.like(rewards.flat.double()), before, config)
    taught = _advantages(finite_rewards(after_kl), before, config, credit, summands)
    every = np.arange(len(rollouts.token_ids))
    counted_B = ~after_kl.flat.isnan().numpy() & (rollouts.stopped | (config.overlong == "keep"))
    # In groups without usable spread, a KL term in the loss still has a gradient.
    in_loss = pulls_in(config.kl, "loss")
    kept_B = counted_B if in_loss else counted_B & taught.usable_P[rollouts.problem_of]
    metrics |= of_kl | taught.metrics
    metrics["policy/trained_completions"] = torch.from_numpy(kept_B).float().mean().item()
    logprobs = before.of(every[kept_B])
    objective = PolicyObjective(loss=config.loss, kl=config.kl if in_loss else None)
    updates: list[Metrics] = []
    for problems in np.array_split(np.arange(len(rollouts.problems)), config.minibatches):
        rows = every[np.isin(rollouts.problem_of, problems)]
        batch = _batch(rollouts, rows, taught.tokens_T, kept_B, counted_B, logprobs, config)
        trained = learner.forward_backward(batch, objective) if len(batch.token_ids) else {}
        weights_change()
        # Also without gradients, so that a step's learning rate does not depend on how much data earlier steps had.
        updates.append(trained | learner.optim_step())
    metrics |= {f"policy/{name}": value for name, value in _over_updates(updates).items()}
    if not config.recompute_old_logprobs:  # the old log-probabilities are the sampler's, so 0 would say nothing
        metrics.pop("policy/mismatch_kl", None)
    return PolicyUpdate(taught.completions, metrics, after_kl if pulls_in(config.kl, "reward") else None)


class _Before:
    """The log-probabilities before the step's update, computed when they are needed, and once. The policy's are the
    sampler's unless the settings recompute them."""

    def __init__(
        self,
        learner: PolicyLearner,
        reference: PolicyLearner | None,
        rollouts: Rollouts,
        config: AlgorithmConfig,
        sampling: SamplingParams,
    ) -> None:
        self.rollouts = rollouts
        self._learner, self._reference = learner, reference
        self._recomputes, self._temperature = config.recompute_old_logprobs, sampling.temperature
        self._of_all: StepLogprobs | None = None

    def of_all(self) -> StepLogprobs:
        """The log-probabilities of all completions."""
        if self._of_all is None:
            self._of_all = self.of(np.arange(len(self.rollouts.token_ids)))
        return self._of_all

    def of(self, rows: Int[np.ndarray, " R"]) -> StepLogprobs:
        """The log-probabilities of at least these completions."""
        if self._of_all is not None:
            return self._of_all
        old = self._under(self._learner, rows, adapter=True) if self._recomputes else self.rollouts.logprobs
        reference = None if self._reference is None else self._under(self._reference, rows, adapter=False)
        return StepLogprobs(self._temperature, old, reference)

    def _under(self, model: PolicyLearner, rows: Int[np.ndarray, " R"], adapter: bool) -> Float[np.ndarray, " tokens"]:
        """Those of a model, NaN in all other completions."""
        rollouts = self.rollouts
        if not len(rows):
            return np.full(len(rollouts.logprobs), np.nan)
        lengths = rollouts.token_ids.lengths[rows]
        logprobs = model.logprobs(rollouts.sequences(rows), lengths, self._temperature, adapter)
        of_all_rows = np.full(len(rollouts.logprobs), np.nan, logprobs.dtype)
        of_all_rows[rollouts.token_ids.places(rows)] = logprobs
        return of_all_rows

    def completions(self, rewards: Ragged, reads_logprobs: bool, summands: Summands) -> Completions:
        """What some estimators read, in the groups of the rewards."""
        mean_logprobs = torch.full_like(rewards.flat, torch.nan)
        if reads_logprobs:
            mean_logprobs = _means(self.of_all().old.astype(np.float64), self.rollouts)
        lengths = torch.from_numpy(self.rollouts.written_lengths)
        return Completions(rewards.like(lengths), rewards.like(mean_logprobs), summands)


def _minus_kl(rewards: Ragged, before: _Before, config: AlgorithmConfig) -> tuple[Ragged, Metrics]:
    """The rewards less the KL penalty, if there is a KL term in the reward, and metrics of these rewards."""
    kl = config.kl
    if kl is None or not pulls_in(kl, "reward"):
        return rewards, {}
    rollouts, written_T = before.rollouts, torch.from_numpy(before.rollouts.written)
    estimates = before.of_all().kl(kl.kind, kl.clamp).where(written_T, 0.0).split(rollouts.token_ids.lengths.tolist())
    after_kl = rewards.like(rewards.flat - torch.stack([kl.coefficient * row.sum() for row in estimates]))
    finite = finite_rewards(after_kl).opinions()
    if not len(finite.flat):
        return after_kl, {}
    return after_kl, {
        "reward/after_kl_mean": finite.flat.mean().item(),
        "reward/after_kl_std": finite.flat.std(unbiased=False).item(),
        "reward/after_kl_group_spread": (finite.amax() - finite.amin()).nanmean().item(),
    }


@dataclass(frozen=True)
class _Advantages:
    """What the policy learns from."""

    tokens_T: Float[np.ndarray, " T"]
    completions: Ragged
    """See `PolicyUpdate.advantages`."""
    usable_P: Bool[np.ndarray, " P"]
    """The groups that teach something."""
    metrics: Metrics


def _advantages(
    rewards: Ragged, before: _Before, config: AlgorithmConfig, credit: TokenCredit | None, summands: Summands
) -> _Advantages:
    """Advantages from rewards, finite or NaN, and, if the estimator tells tokens apart, their credit."""
    estimator, rollouts, completions = config.advantages, before.rollouts, None
    each, summands = summands, differing(rewards, summands, config.min_spread) if estimator.reads_summands else ()
    shares = advantage_shares(estimator, summands or each)
    usable_P = usable_groups(rewards, config.min_spread, summands)
    if estimator.reads_completions or estimator.reads_summands:
        completions = before.completions(rewards, estimator.reads_completions, summands)
    estimated = estimate(rewards, estimator, usable_P, completions)
    taught_P, values, metrics = usable_P.numpy(), estimated.advantages.flat, estimated.metrics | shares
    tokens_T = np.repeat(values.numpy(), rollouts.token_ids.lengths)
    if credit is not None:
        tokens_T = tokens_T + np.concatenate(credit.advantages)
        values = _means(tokens_T, rollouts)
        largest = np.array([np.abs(row).max(initial=0.0) for row in credit.advantages])
        groups = np.split(largest, rollouts.offsets[1:-1])
        teaches_P = np.array([group.max(initial=0.0) > config.min_spread for group in groups])
        taught_P = taught_P | teaches_P
        metrics |= credit.metrics | {"process/usable_groups": float(teaches_P.mean())}
    metrics["policy/usable_groups"] = torch.from_numpy(taught_P).float().mean().item()
    return _Advantages(tokens_T, rewards.like(values.float()), taught_P, metrics)


def finite_rewards(rewards: Ragged) -> Ragged:
    """The rewards, with zeros for every group that has an infinite reward, so that it has no spread to learn from.

    A reward that overflows thus costs its groups but does not end the run. NaN, no opinion, stays.
    """
    infinite = rewards.like(rewards.flat.isinf().float()).amax() > 0
    return rewards.like(rewards.flat.masked_fill(rewards.expand(infinite) & ~rewards.flat.isnan(), 0.0))


def _means(values_T: Float[np.ndarray, " T"], rollouts: Rollouts) -> Float[Tensor, " B"]:
    """The mean over the tokens of each completion that the policy wrote; 0 for one without tokens."""
    rows = torch.from_numpy(values_T[rollouts.written]).split(rollouts.written_lengths.tolist())
    return torch.stack([row.mean() if len(row) else row.sum() for row in rows])


def _over_updates(updates: Sequence[Metrics]) -> Metrics:
    """Means over the step's optimizer steps, but the last value of the learning rate and of running totals."""
    names = dict.fromkeys(name for update in updates for name in update)
    values = {name: [update[name] for update in updates if name in update] for name in names}
    means = {name: sum(rows) / len(rows) for name, rows in values.items()}
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
