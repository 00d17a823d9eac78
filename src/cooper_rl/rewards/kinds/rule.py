"""The rule's verdict as the reward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class RuleRewardConfig(RewardConfig):
    """1 for an answer that the rule calls correct, 0 for any other answer."""

    kind: Literal["rule"] = "rule"
    """Names this kind of reward."""

    def build(self) -> RuleReward:
        """See the class."""
        return RuleReward()


class RuleReward:
    """1 for an answer that the rule calls correct, 0 for any other answer."""

    def score(self, context: StepContext) -> Scores:
        """Rewards of 0 or 1, with the part `rule` (the reward)."""
        return Scores(context.correct, {"rule": context.correct})
