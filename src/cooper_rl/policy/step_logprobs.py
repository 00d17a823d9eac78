"""Log-probabilities of a step's completions under the policy and the reference, before the policy is updated."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cooper_rl.engines.base import PolicyLearner
from cooper_rl.policy.kl import KLConfig, kl_estimate
from cooper_rl.rollouts.rollouts import Rollouts


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

    def mean_kl(self) -> float:
        """KL(policy || reference) in nats, averaged over the tokens. The estimate is unclamped k3, never negative."""
        return kl_estimate("k3", *self._tensors()).mean().item()

    def penalties(self, lengths: Int[np.ndarray, " B"], kl: KLConfig) -> Float[Tensor, " B"]:
        """For each completion, the coefficient times the KL estimate summed over its tokens."""
        estimates = kl_estimate(kl.kind, *self._tensors(), kl.clamp)
        return torch.stack([kl.coefficient * row.sum() for row in estimates.split(lengths.tolist())])

    def _tensors(self) -> tuple[Float[Tensor, " tokens"], Float[Tensor, " tokens"]]:
        if self.reference is None:
            raise ValueError("the distance to the reference needs the reference policy")
        old, reference = (torch.from_numpy(values.astype(np.float64)) for values in (self.old, self.reference))
        return old, reference


def learner_logprobs(
    learner: PolicyLearner, rollouts: Rollouts, rows: Int[np.ndarray, " R"], temperature: float, adapter: bool = True
) -> Float[np.ndarray, " tokens"]:
    """The learner's log-probabilities (nats) of these completions; NaN at the tokens of all others."""
    if not len(rows):
        return np.full(len(rollouts.logprobs), np.nan)
    found = learner.logprobs(rollouts.sequences(rows), rollouts.token_ids.lengths[rows], temperature, adapter)
    everywhere = np.full(len(rollouts.logprobs), np.nan, found.dtype)
    everywhere[rollouts.token_ids.places(rows)] = found
    return everywhere
