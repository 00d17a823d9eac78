"""A policy loss of your own: a squared distance to the old policy instead of clipping.

In YAML: algorithm: {loss: {kind: "policy_loss:Proximal", strength: 0.5}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cooper_rl.engines.losses.policy import PolicyLoss, PolicyLossInputs

if TYPE_CHECKING:
    from torch import Tensor


class Proximal(PolicyLoss):
    """The loss of a token is -A r + strength / 2 (log r)^2, with r = exp(logprobs - old_logprobs)."""

    strength: float = 0.5
    """The weight of the squared log-ratio."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses [B, T], and metrics of the same shape, which are averaged over the tokens."""
        distance = self.strength / 2 * log_ratio.square()
        return distance - inputs.advantages * log_ratio.exp(), {"distance": distance}


if __name__ == "__main__":
    from tiny_run import train

    run = train(steps=2, algorithm={"loss": Proximal(), "minibatches": 2})
    print("own policy loss: policy/distance", run.metrics["policy/distance"])
