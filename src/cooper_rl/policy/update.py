"""Stage 1: from rewarded groups to the policy's update."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.learning.learner import Metrics, PolicyBatch, PolicyLearner
from cooper_rl.policy.advantages import advantages, usable_groups
from cooper_rl.policy.aggregation import token_weights
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.kl import KLConfig, kl_estimate
from cooper_rl.policy.losses import PolicyObjective
from cooper_rl.policy.overlong import overlong_penalty
from cooper_rl.sampling.sampler import Completion, Group


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
    max_tokens: int,
) -> PolicyUpdate:
    """Update the policy on one step's groups.

    `reference` is the frozen start, needed when `config.kl` is set; `max_tokens` is the sampler's length limit.
    Groups with a reward that is not finite take no part.
    """
    lengths_PN = torch.tensor([[len(c.token_ids) for c in group.completions] for group in groups])
    cut_off_PN = torch.tensor([[c.stop_reason == "length" for c in group.completions] for group in groups])
    rewards = rewards.double()
    if config.overlong.kind == "penalise":
        rewards = rewards + overlong_penalty(lengths_PN, max_tokens, config.overlong)
    if config.pulls_in("reward"):
        rewards = rewards - _sequence_kl(groups, reference, config.kl)

    # A reward model that has diverged costs its groups, not the run; a group of zeros has no spread to learn from.
    rewards = rewards.where(rewards.isfinite().all(dim=1, keepdim=True), 0.0)
    usable_P = usable_groups(rewards, config.min_spread)
    advantages_PN = advantages(rewards, config.advantages, usable_P)
    counted_PN = ~cut_off_PN if config.overlong.kind == "mask" else torch.ones_like(cut_off_PN)
    kept_PN = counted_PN & usable_P[:, None]

    metrics: Metrics = {
        "policy/usable_groups": usable_P.float().mean().item(),
        "policy/trained_completions": kept_PN.float().mean().item(),
    }
    old_logprobs = _old_logprobs(learner, groups, kept_PN, config)
    objective = PolicyObjective(loss=config.loss, kl=config.kl if config.pulls_in("loss") else None)
    updates: list[Metrics] = []
    for rows_P in torch.arange(len(groups)).tensor_split(config.minibatches):
        batch = _batch(groups, rows_P.tolist(), advantages_PN, kept_PN, counted_PN, old_logprobs, reference, config)
        found = learner.forward_backward(batch, objective) if batch.token_ids else {}
        # Without gradients too: the learning rate of a step does not depend on what earlier steps had to learn from.
        updates.append(found | learner.optim_step())
    metrics |= {f"policy/{name}": value for name, value in _over_updates(updates).items()}
    return PolicyUpdate(advantages_PN.float(), metrics)


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
    old_logprobs: dict[tuple[int, int], list[float]],
    reference: PolicyLearner | None,
    config: AlgorithmConfig,
) -> PolicyBatch:
    """The kept rows of the chosen groups; weights are normalised over all counted rows of those groups."""
    rows = [(p, i) for p in chosen for i in range(len(groups[p].completions))]
    weights = token_weights(
        [len(groups[p].completions[i].token_ids) for p, i in rows],
        config.aggregation,
        counted=[bool(counted_PN[p, i]) for p, i in rows],
        kept=[bool(kept_PN[p, i]) for p, i in rows],
    )
    kept = [(p, i, weight) for (p, i), weight in zip(rows, weights, strict=True) if kept_PN[p, i]]
    completions = [groups[p].completions[i] for p, i, _ in kept]
    token_ids = [groups[p].prompt_ids + c.token_ids for (p, _, _), c in zip(kept, completions, strict=True)]
    needs_reference = config.pulls_in("loss") and bool(kept)
    return PolicyBatch(
        token_ids=token_ids,
        advantages=[
            [float(advantages_PN[p, i])] * len(c.token_ids) for (p, i, _), c in zip(kept, completions, strict=True)
        ],
        weights=[weight for _, _, weight in kept],
        old_logprobs=[old_logprobs[p, i] for p, i, _ in kept],
        sampler_logprobs=[c.logprobs for c in completions],
        reference_logprobs=_logprobs(reference, token_ids, completions) if needs_reference else [],
    )


def _old_logprobs(
    learner: PolicyLearner, groups: Sequence[Group], kept_PN: Tensor, config: AlgorithmConfig
) -> dict[tuple[int, int], list[float]]:
    """Log-probabilities before any update of the step; the sampler's own serve unless asked otherwise."""
    rows = [(int(p), int(i)) for p, i in kept_PN.nonzero()]
    completions = [groups[p].completions[i] for p, i in rows]
    if not config.recompute_old_logprobs or not rows:
        return {row: c.logprobs for row, c in zip(rows, completions, strict=True)}
    token_ids = [groups[p].prompt_ids + c.token_ids for (p, _), c in zip(rows, completions, strict=True)]
    return dict(zip(rows, _logprobs(learner, token_ids, completions), strict=True))


def _sequence_kl(groups: Sequence[Group], reference: PolicyLearner | None, kl: KLConfig | None) -> Float[Tensor, "P N"]:
    """The KL estimate of each completion, summed over its tokens (nats), times the coefficient."""
    if kl is None:
        raise ValueError("there is no KL term")
    completions = [c for group in groups for c in group.completions]
    token_ids = [group.prompt_ids + c.token_ids for group in groups for c in group.completions]
    estimates = [
        kl_estimate(
            kl.kind, torch.tensor(c.logprobs, dtype=torch.float64), torch.tensor(row, dtype=torch.float64)
        ).sum()
        for c, row in zip(completions, _logprobs(reference, token_ids, completions), strict=True)
    ]
    return kl.coefficient * torch.stack(estimates).reshape(len(groups), -1)


def _logprobs(
    learner: PolicyLearner | None, token_ids: list[list[int]], completions: list[Completion]
) -> list[list[float]]:
    if learner is None:
        raise ValueError("a KL term needs the reference policy")
    return learner.logprobs(token_ids, [len(c.token_ids) for c in completions])
