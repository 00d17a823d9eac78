"""Binary cross-entropy of a pair's two completions, in the place of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cooper_rl.engines.losses.reward_model import PairLoss, RewardLossOutputs

if TYPE_CHECKING:
    from cooper_rl.engines.losses.reward_model import Numbers


class CrossEntropy(PairLoss):
    """Binary cross-entropy of both completions of each pair: as many right ones as wrong ones, and no comparison."""

    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """sum_i w_i (BCE(p_i, 1) + BCE(n_i, 0)) / 2. Metric: `pair_accuracy`, a tie counting as wrong."""
        from torch.nn.functional import softplus  # noqa: PLC0415 - a configuration is read without torch

        loss = (weights * (softplus(-positive_logits) + softplus(negative_logits)) / 2).sum()
        return RewardLossOutputs(loss, {"pair_accuracy": (positive_logits > negative_logits).to(weights.dtype).sum()})
