"""The policy loss GSPO."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from cooper_rl.engines.losses.policy import LOSSES, PolicyLoss, clipped

if TYPE_CHECKING:
    from cooper_rl.engines.losses.policy import PolicyLossInputs, TokenLosses, Tokens


@LOSSES.register
class GSPO(PolicyLoss):
    """PPO-clip with one ratio per completion: s = exp(mean over its tokens of logprobs - old_logprobs).

    Zheng et al. 2025 (arXiv 2507.18071, eq. 5 and 7). Every token of a completion gets the same ratio, and the gradient
    flows through all of its tokens, so only the sum of a completion's token weights matters. Combine it with
    `sequence_mean_token_mean` for the paper's objective.
    """

    weighs_tokens: ClassVar[bool] = False
    kind: Literal["gspo"] = "gspo"
    clip_low: float = Field(default=3e-4, ge=0, le=1)
    """As in `ppo_clip`, but far smaller, because the log-ratio is a mean over tokens."""
    clip_high: float = Field(default=4e-4, ge=0)
    """As in `ppo_clip`, but far smaller, because the log-ratio is a mean over tokens."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Tokens) -> TokenLosses:
        lengths_B1 = inputs.mask.sum(dim=1, keepdim=True).clamp(min=1)
        ratio_B1 = (log_ratio.sum(dim=1, keepdim=True) / lengths_B1).exp()
        return clipped(inputs.advantages, ratio_B1.expand_as(log_ratio), self.clip_low, self.clip_high)
