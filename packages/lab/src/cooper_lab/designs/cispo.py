"""The policy loss CISPO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.engines.losses.policy import LOSSES, PolicyLoss

if TYPE_CHECKING:
    from cooper_rl.engines.losses.policy import PolicyLossInputs, TokenLosses, Tokens


@LOSSES.register
class CISPO(PolicyLoss):
    """-sg(clip(r, 1 - clip_low, 1 + clip_high)) A logprobs, with sg = stop-gradient.

    It clips the weight and keeps the gradient of every token; `policy/clip_fraction` is the share of tokens with a
    changed weight. MiniMax-M1 (arXiv 2506.13585, eq. 4 and 5).
    """

    kind: Literal["cispo"] = "cispo"
    clip_low: float = Field(default=1.0, ge=0, le=1)
    """The importance weight is at least 1 - this; 1 means no lower bound, as in the paper."""
    clip_high: float = Field(default=4.0, ge=0)
    """The importance weight is at most 1 + this. The paper tunes it but does not give its value; 4 is our choice."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Tokens) -> TokenLosses:
        ratio = log_ratio.exp().detach()
        weight = ratio.clamp(1 - self.clip_low, 1 + self.clip_high)
        return -weight * inputs.advantages * inputs.logprobs, {"clip_fraction": weight != ratio, "ratio": ratio}
