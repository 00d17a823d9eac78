"""The scores of several reward models, combined into one reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores
from cooper_rl.rewards.combining import Combination, CombinationConfig
from cooper_rl.rewards.combining.brme import BRME
from cooper_rl.rewards.combining.order import Mean

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class EnsembleConfig(RewardConfig):
    """Several reward models, combined. Each is read as sigmoid(logit), so members must be trained to give absolute
    scores, as VerifyRM is. The logits of models trained on preferences alone have a free shift each and do not compare.

    Errors that the members share are not averaged out. A frozen copy of the model that learns is the cheapest second
    member: name the same folder twice in `reward_models`.
    """

    kind: Literal["ensemble"] = "ensemble"
    """Names this kind of reward."""
    models: tuple[str, ...] = Field(min_length=2)
    """The members: names in `reward_models`."""
    combine: CombinationConfig = Mean()
    """How their scores become one: `mean`, `median`, `min`, `soft_min`, `uwo`, `brme`, or `package.module:Class`."""

    @model_validator(mode="after")
    def _members_agree(self) -> Self:
        if len(set(self.models)) < len(self.models):
            raise ValueError(f"models lists a member twice: {', '.join(self.models)}")
        if isinstance(self.combine, BRME) and self.combine.nominal >= len(self.models):
            raise ValueError(
                f"combine.nominal: {self.combine.nominal}, but the places of {len(self.models)} models go from 0 to "
                f"{len(self.models) - 1}"
            )
        return self

    def reads(self) -> tuple[str, ...]:
        """The names of the members."""
        return self.models

    def build(self) -> EnsembleReward:
        """See the class."""
        return EnsembleReward(self.models, self.combine)


class EnsembleReward:
    """Combined scores of several reward models, with the weights from the start of the step."""

    def __init__(self, models: Sequence[str], combine: Combination) -> None:
        self._models = tuple(models)
        self._combine = combine

    def score(self, context: StepContext) -> Scores:
        """The combined score (the part `ensemble`) and every member's parts (see `StepContext.model_parts`).

        `ensemble/disagreement` is the mean, over answers, of the members' standard deviation (M in the denominator). It
        can fall during reward hacking, when the policy finds what all members accept.
        """
        import torch  # noqa: PLC0415 - configuration records do without it

        scores = torch.stack([context.probabilities(name).flat.double() for name in self._models])
        paid = context.ragged(self._combine.of(scores))
        parts = {name: part for model in self._models for name, part in context.model_parts(model).items()}
        metrics = {"ensemble/disagreement": scores.std(dim=0, correction=0).mean().item()}
        return Scores(paid, {**parts, "ensemble": paid}, metrics)
