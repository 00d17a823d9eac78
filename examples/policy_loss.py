"""A policy loss of your own: a squared distance to the old policy in the place of clipping.

In YAML: algorithm: {loss: {kind: "policy_loss:Proximal", strength: 0.5}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiny_run import train

from cooper_rl.policy.losses import PolicyLoss, PolicyLossInputs

if TYPE_CHECKING:
    from torch import Tensor


class Proximal(PolicyLoss):
    """-A r + strength / 2 (log r)^2 for each token, with r = exp(logprobs - old_logprobs)."""

    strength: float = 0.5
    """Weight of the squared log-ratio."""

    def of_tokens(self, inputs: PolicyLossInputs, log_ratio: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses [B, T], and metrics of the same shape that are averaged over the tokens."""
        distance = self.strength / 2 * log_ratio.square()
        return distance - inputs.advantages * log_ratio.exp(), {"distance": distance}


if __name__ == "__main__":
    run = train(steps=2, algorithm={"loss": Proximal(), "minibatches": 2})
    print("own policy loss: policy/distance", run.metrics["policy/distance"])
