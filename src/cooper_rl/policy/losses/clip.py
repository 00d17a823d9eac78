"""Losses that clip the probability ratio: per token, per completion, or as a weight without gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.policy.losses import LOSSES, PolicyLoss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl.policy.losses import PolicyLossInputs, TokenLosses


@LOSSES.register
class PPOClip(PolicyLoss):
    """max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)) with r = exp(logprobs - old_logprobs) for each token.

    Schulman et al. 2017 (arXiv 1707.06347, eq. 7), with separate bounds as in DAPO (arXiv 2503.14476, eq. 10).
    """

    kind: Literal["ppo_clip"] = "ppo_clip"
    """Names this loss."""
    clip_low: float = Field(default=0.2, ge=0, le=1)
    """How far below 1 the ratio still carries gradient for a negative advantage."""
    clip_high: float = Field(default=0.2, ge=0)
    """How far above 1 the ratio still carries gradient for a positive advantage (DAPO's clip-higher: 0.28)."""
    dual_clip: float | None = Field(default=None, gt=1)
    """Bounds the loss of a token with negative advantage A at -A times this value (usually 3), however large the ratio
    (Ye et al. 2020, arXiv 1912.09729, eq. 5). Null means no bound."""

    def of_tokens(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        """See `PolicyLoss`."""
        return _clipped(inputs.advantages, log_ratio.exp(), self.clip_low, self.clip_high, self.dual_clip)


@LOSSES.register
class GSPO(PolicyLoss):
    """PPO-clip with one ratio per completion: s = exp(mean over its tokens of logprobs - old_logprobs).

    Zheng et al. 2025 (arXiv 2507.18071, eq. 5 and 7). Every token of a completion gets the same ratio, and the gradient
    flows through all of its tokens, so only the sum of a completion's token weights matters. Combine it with
    `sequence_mean_token_mean` for the paper's objective.
    """

    kind: Literal["gspo"] = "gspo"
    """Names this loss."""
    clip_low: float = Field(default=3e-4, ge=0, le=1)
    """As in `ppo_clip`, but far smaller, because the log-ratio is a mean over tokens."""
    clip_high: float = Field(default=4e-4, ge=0)
    """As in `ppo_clip`, but far smaller, because the log-ratio is a mean over tokens."""

    def of_tokens(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        """See `PolicyLoss`."""
        lengths_B1 = inputs.mask.sum(dim=1, keepdim=True).clamp(min=1)
        ratio_B1 = (log_ratio.sum(dim=1, keepdim=True) / lengths_B1).exp()
        return _clipped(inputs.advantages, ratio_B1.expand_as(log_ratio), self.clip_low, self.clip_high, None)


@LOSSES.register
class CISPO(PolicyLoss):
    """-sg(clip(r, 1 - clip_low, 1 + clip_high)) A logprobs, with sg = stop-gradient.

    It clips the weight and keeps the gradient of every token. MiniMax-M1 (arXiv 2506.13585, eq. 4 and 5).
    """

    kind: Literal["cispo"] = "cispo"
    """Names this loss."""
    clip_low: float = Field(default=1.0, ge=0, le=1)
    """The importance weight is at least 1 - this; 1 means no lower bound, as in the paper."""
    clip_high: float = Field(default=4.0, ge=0)
    """The importance weight is at most 1 + this. The paper tunes it but does not give its value; 4 is our choice."""

    def of_tokens(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        """See `PolicyLoss`."""
        ratio = log_ratio.exp().detach()
        weight = ratio.clamp(1 - self.clip_low, 1 + self.clip_high)
        return -weight * inputs.advantages * inputs.logprobs, {"clip_fraction": weight != ratio, "ratio": ratio}


def _clipped(
    advantages: Float[Tensor, "B T"], ratio: Float[Tensor, "B T"], low: float, high: float, dual: float | None
) -> TokenLosses:
    unclipped = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - low, 1 + high)
    loss = unclipped.maximum(clipped)
    metrics = {"clip_fraction": clipped > unclipped, "ratio": ratio}
    if dual is not None:
        ceiling = -dual * advantages
        beyond = (advantages < 0) & (loss > ceiling)
        loss = loss.where(~beyond, ceiling)
        metrics["dual_clip_fraction"] = beyond
    return loss, metrics
