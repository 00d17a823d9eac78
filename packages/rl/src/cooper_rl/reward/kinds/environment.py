"""A reward that the environment of a run of several turns gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.reward.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.reward.context import StepContext


@REWARDS.register
class EnvironmentReward(RewardConfig):
    """What the environment's `get_reward()` returned, as it is. There is no opinion where it returned nothing."""

    needs_reference: ClassVar[bool] = False
    reads_environment: ClassVar[bool] = True
    kind: Literal["environment"] = "environment"

    def score(self, context: StepContext) -> Scores:
        """Any finite numbers or NaN, with the part `environment` (the reward)."""
        rewards = [answer.reward for group in context.groups for answer in group.answers]
        paid = context.ragged([math.nan if reward is None else reward for reward in rewards])
        return Scores(paid, {"environment": paid})
