"""What policy and reference say of a step's completions before the policy is updated."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.engines.base import PolicyLearner
from cooper_rl.engines.sampling import Group
from cooper_rl.policy.kl import KLConfig, kl_estimate

Place = tuple[int, int]
"""The index of a group, and of a completion in it."""
Logprobs = dict[Place, list[float]]
"""A completion's log-probabilities, in nats: one for each of its tokens."""


@dataclass(frozen=True)
class StepLogprobs:
    """Log-probabilities at `temperature` under the policy before the update and, where there is one, the reference."""

    temperature: float
    old: Logprobs
    reference: Logprobs

    def mean_kl(self) -> float:
        """KL(policy || reference) in nats: k3, never negative and here without a clamp, averaged over the tokens."""
        old, reference = (_tensor([x for row in rows.values() for x in row]) for rows in (self.old, self.reference))
        return kl_estimate("k3", old, reference).mean().item()

    def penalty(self, place: Place, kl: KLConfig) -> Float[Tensor, ""]:
        """The KL estimate of one completion, summed over its tokens, times the coefficient."""
        old, reference = _tensor(self.old[place]), _tensor(self.reference[place])
        return kl.coefficient * kl_estimate(kl.kind, old, reference, kl.clamp).sum()


def places_of(groups: Sequence[Group]) -> list[Place]:
    """All completions of a step."""
    return [(p, i) for p, group in enumerate(groups) for i in range(len(group.completions))]


def sampler_logprobs(groups: Sequence[Group], places: Sequence[Place]) -> Logprobs:
    """What the sampler reported."""
    return {(p, i): groups[p].completions[i].logprobs for p, i in places}


def learner_logprobs(
    learner: PolicyLearner, groups: Sequence[Group], places: Sequence[Place], temperature: float
) -> Logprobs:
    """What a learner computes, at the temperature the completions were sampled with."""
    completions = [groups[p].completions[i] for p, i in places]
    token_ids = [groups[p].prompt_ids + c.token_ids for (p, _), c in zip(places, completions, strict=True)]
    found = learner.logprobs(token_ids, [len(c.token_ids) for c in completions], temperature) if places else []
    return dict(zip(places, found, strict=True))


def _tensor(values: Sequence[float]) -> Float[Tensor, " T"]:
    return torch.tensor(values, dtype=torch.float64)
