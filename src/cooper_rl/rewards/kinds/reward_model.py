"""A reward model's score as the reward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class RewardModelRewardConfig(RewardConfig):
    """sigmoid(logit) of a reward model, frozen or learning."""

    kind: Literal["reward_model"] = "reward_model"
    """Names this kind of reward."""
    model: str = "main"
    """The reward model's name in `reward_models`."""

    def reads(self) -> tuple[str, ...]:
        """The name of the one model it uses."""
        return (self.model,)

    def build(self) -> RewardModelReward:
        """See the class."""
        return RewardModelReward(self.model)


class RewardModelReward:
    """sigmoid(logit) of a reference-based reward model, with the weights from the start of the step."""

    def __init__(self, model: str = "main") -> None:
        self._model = model

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1], with the parts `reward_model` (the reward) and `logit` (see `StepContext.model_parts`)."""
        return Scores(context.probabilities(self._model), context.model_parts(self._model))
