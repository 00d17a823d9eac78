"""Bradley-Terry with a margin, with centred logits, and with smoothed labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from cooper_rl.engines.losses.reward_model import PairwiseLoss, RewardLossOutputs

if TYPE_CHECKING:
    from cooper_rl.engines.losses.reward_model import Numbers


class RegularisedLoss(PairwiseLoss):
    """`pairwise` with a margin, centred logits and smoothed labels, each of which is off by default.

    Margins, and pairs weighted by their strength, are those of HelpSteer2-Preference (arXiv 2410.01257), the centring
    is that of Eisenstein et al. 2023 (arXiv 2312.09244), the smoothing that of Secrets of RLHF II (arXiv 2401.06080).
    """

    margin: float = Field(default=0.0, ge=0)
    """By how much a positive's logit should exceed its negative's; 0 is plain Bradley-Terry."""
    centring: float = Field(default=0.0, ge=0)
    """Weight of the squared sum of a pair's logits. It keeps logits around 0, as the anchor does, but says nothing
    about either completion."""
    smoothing: float = Field(default=0.0, ge=0, le=0.5)
    """Assumed probability that a pair is the wrong way round. Raise it if the rule often misses right answers. At 1/2,
    a pair is taught as a tie."""

    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """sum_i w_i [ (1 - s) L(d_i) + s L(-d_i) + anchor (BCE(p_i, 1) + BCE(n_i, 0)) / 2 + centring (p_i + n_i)^2 ].

        Here d_i = p_i - n_i - margin, L(d) = -log sigmoid(d) and s = smoothing.
        """
        from torch.nn.functional import softplus  # noqa: PLC0415 - a configuration is read without torch

        gaps = positive_logits - negative_logits - self.margin
        per_pair = softplus(-gaps) + self.anchor * (softplus(-positive_logits) + softplus(negative_logits)) / 2
        if self.smoothing:  # not computed at 0, where an infinite logit would turn 0 times its loss into NaN
            per_pair = per_pair + self.smoothing * (softplus(gaps) - softplus(-gaps))
        if self.centring:
            per_pair = per_pair + self.centring * (positive_logits + negative_logits).square()
        plain = super().pair_loss(positive_logits, negative_logits, weights)
        return replace(plain, loss=(weights * per_pair).sum())
