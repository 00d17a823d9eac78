"""Stage 1: from rewarded groups to the policy's update."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.engines.base import Metrics, PolicyBatch, PolicyLearner
from cooper_rl.engines.sampling import Group, SamplingParams
from cooper_rl.policy.advantages import advantages, usable_groups
from cooper_rl.policy.aggregation import token_weights
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.losses import PolicyObjective
from cooper_rl.policy.overlong import overlong_penalty
from cooper_rl.policy.step_logprobs import Logprobs, Place, StepLogprobs, learner_logprobs, places_of, sampler_logprobs
from cooper_rl.rollouts.ragged import Ragged


@dataclass(frozen=True)
class PolicyUpdate:
    """What stage 1 did: the advantages it used and the step's metrics."""

    advantages: Float[Tensor, "P N"]
    metrics: Metrics


def update_policy(
    learner: PolicyLearner,
    reference: PolicyLearner | None,
    groups: Sequence[Group],
    rewards: Float[Tensor, "P N"],
    config: AlgorithmConfig,
    sampling: SamplingParams,
) -> PolicyUpdate:
    """Update the policy on one step's groups, which were sampled with `sampling` (temperature > 0).

    `reference` is the frozen start, needed for a KL term. All log-probabilities are at the sampling temperature.
    Groups with a reward that is not finite have no advantage.
    """
    every = places_of(groups)
    metrics: Metrics = {}
    logprobs = None
    if reference is not None:  # on all rows: those without advantage are measured too
        logprobs = _logprobs(learner, reference, groups, every, config, sampling)
        metrics["policy/reference_kl"] = logprobs.mean_kl()
    rewards = _penalised(rewards.double(), groups, logprobs, config, sampling.max_tokens)

    # A reward model that has diverged costs its groups, not the run; a group of zeros has no spread to learn from.
    rewards = rewards.where(rewards.isfinite().all(dim=1, keepdim=True), 0.0)
    ragged = Ragged.of(list(rewards))
    usable_P = usable_groups(ragged, config.min_spread)
    advantages_PN = advantages(ragged, config.advantages, usable_P).padded(0.0)
    cut_off_PN = torch.tensor([[c.stop_reason == "length" for c in group.completions] for group in groups])
    counted_PN = ~cut_off_PN if config.overlong.kind == "mask" else torch.ones_like(cut_off_PN)
    # Where rewards are alike, a KL term in the loss is all that holds the policy.
    kept_PN = counted_PN if config.pulls_in("loss") else counted_PN & usable_P[:, None]
    metrics |= {
        "policy/usable_groups": usable_P.float().mean().item(),
        "policy/trained_completions": kept_PN.float().mean().item(),
    }

    if logprobs is None:
        kept = [place for place in every if kept_PN[place]]
        logprobs = _logprobs(learner, None, groups, kept, config, sampling)
    objective = PolicyObjective(loss=config.loss, kl=config.kl if config.pulls_in("loss") else None)
    updates: list[Metrics] = []
    for rows_P in torch.arange(len(groups)).tensor_split(config.minibatches):
        batch = _batch(groups, rows_P.tolist(), advantages_PN, kept_PN, counted_PN, logprobs, config)
        found = learner.forward_backward(batch, objective) if batch.token_ids else {}
        # Without gradients too: the learning rate of a step does not depend on what earlier steps had to learn from.
        updates.append(found | learner.optim_step())
    metrics |= {f"policy/{name}": value for name, value in _over_updates(updates).items()}
    return PolicyUpdate(advantages_PN.float(), metrics)


def _logprobs(
    learner: PolicyLearner,
    reference: PolicyLearner | None,
    groups: Sequence[Group],
    places: Sequence[Place],
    config: AlgorithmConfig,
    sampling: SamplingParams,
) -> StepLogprobs:
    """Those before any update of the step; the sampler's own serve as the policy's unless asked otherwise."""

    def of(model: PolicyLearner) -> Logprobs:
        return learner_logprobs(model, groups, places, sampling.temperature)

    return StepLogprobs(
        temperature=sampling.temperature,
        old=of(learner) if config.recompute_old_logprobs else sampler_logprobs(groups, places),
        reference=of(reference) if reference is not None else {},
    )


def _penalised(
    rewards: Float[Tensor, "P N"],
    groups: Sequence[Group],
    logprobs: StepLogprobs | None,
    config: AlgorithmConfig,
    max_tokens: int,
) -> Float[Tensor, "P N"]:
    """Rewards after what is taken off for length and for distance from the reference."""
    if config.overlong.kind == "penalise":
        lengths_PN = torch.tensor([[len(c.token_ids) for c in group.completions] for group in groups])
        rewards = rewards + overlong_penalty(lengths_PN, max_tokens, config.overlong)
    if config.kl is not None and config.pulls_in("reward"):
        if logprobs is None:
            raise ValueError("a KL term in the reward needs the reference policy")
        penalties = [logprobs.penalty(place, config.kl) for place in places_of(groups)]
        rewards = rewards - torch.stack(penalties).reshape(rewards.shape)
    return rewards


def _over_updates(updates: Sequence[Metrics]) -> Metrics:
    """Means over the step's optimizer steps; of the learning rate and of running totals, the last."""
    names = dict.fromkeys(name for update in updates for name in update)
    values = {name: [update[name] for update in updates if name in update] for name in names}
    means = {name: sum(found) / len(found) for name, found in values.items()}
    return means | {name: updates[-1][name] for name in ("learning_rate", "skipped_updates")}


def _batch(
    groups: Sequence[Group],
    chosen: list[int],
    advantages_PN: Tensor,
    kept_PN: Tensor,
    counted_PN: Tensor,
    logprobs: StepLogprobs,
    config: AlgorithmConfig,
) -> PolicyBatch:
    """The kept rows of the chosen groups; weights are normalised over all counted rows of those groups."""
    places = [(p, i) for p in chosen for i in range(len(groups[p].completions))]
    lengths = [len(groups[p].completions[i].token_ids) for p, i in places]
    weights = token_weights(
        np.array(lengths, dtype=np.int64),
        config.aggregation,
        counted=np.array([bool(counted_PN[place]) for place in places]),
        kept=np.array([bool(kept_PN[place]) for place in places]),
    )
    rows = zip(places, weights.tolist(), lengths, strict=True)
    kept = [(place, [weight] * length) for place, weight, length in rows if kept_PN[place]]
    completions = [groups[p].completions[i] for (p, i), _ in kept]
    return PolicyBatch(
        token_ids=[groups[p].prompt_ids + c.token_ids for ((p, _), _), c in zip(kept, completions, strict=True)],
        advantages=[[float(advantages_PN[place])] * len(weight) for place, weight in kept],
        weights=[weight for _, weight in kept],
        old_logprobs=[logprobs.old[place] for place, _ in kept],
        sampler_logprobs=[c.logprobs for c in completions],
        reference_logprobs=[logprobs.reference[place] for place, _ in kept] if logprobs.reference else [],
        temperature=logprobs.temperature,
    )
