"""The scores of several reward models, combined into one reward."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from cooper_lab.designs.combinations import BRME, COMBINATIONS, Combination, Mean
from cooper_rl import RewardConfig, Scores
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.reward.base import REWARDS

if TYPE_CHECKING:
    from cooper_rl import Ragged, RewardModel, StepContext


@REWARDS.register
class Ensemble(RewardConfig):
    """Several reward models, combined. Each is read as sigmoid(logit), so members must be trained to give absolute
    scores, as VerifyRM is. The logits of models trained on preferences alone have a free shift each and do not compare.

    Errors that the members share are not averaged out. A frozen copy of the model that learns is the cheapest second
    member: name the folder of `reward_model` in `others`.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("ensemble/disagreement",)
    kind: Literal["ensemble"] = "ensemble"
    others: tuple[ScorerConfig, ...] = Field(min_length=1)
    """The further members, which do not learn. The run's own reward model is the first member."""
    combine: Annotated[Combination, COMBINATIONS] = Mean()
    """How their scores become one: `mean`, `median`, `min`, `soft_min`, `uwo`, `brme`, or `package.module:Class`."""

    @model_validator(mode="after")
    def _members_agree(self) -> Self:
        if isinstance(self.combine, BRME) and self.combine.nominal > len(self.others):
            raise ValueError(
                f"combine.nominal: {self.combine.nominal}, but the places of {len(self.others) + 1} members go from 0 "
                f"to {len(self.others)}"
            )
        return self

    @property
    def reads_model(self) -> bool:
        return True

    @cached_property
    def _others(self) -> list[RewardModel]:
        from cooper_rl import load_scorer  # noqa: PLC0415 - configuration records do without torch

        return [load_scorer(member) for member in self.others]

    def score(self, context: StepContext) -> Scores:
        """The combined score (the part `ensemble`), the parts `reward_model` and `logit` of the run's model, and the
        score of each further member: `member_2`, `member_3`, …

        The reward model's weights are those from the start of the step. `ensemble/disagreement` is the mean, over
        answers, of the members' standard deviation (M in the denominator). It can fall during reward hacking, when the
        policy finds what all members accept.
        """
        import torch  # noqa: PLC0415 - configuration records do without it

        others = context.once(self, lambda: self._scores(context))
        scores = torch.stack([member.flat.double() for member in (context.probabilities, *others)])
        paid = context.ragged(self.combine.combine(scores))
        parts = context.model_parts | {f"member_{place}": member for place, member in enumerate(others, 2)}
        metrics = {"ensemble/disagreement": scores.std(dim=0, correction=0).mean().item()}
        return Scores(paid, {**parts, "ensemble": paid}, metrics)

    def _scores(self, context: StepContext) -> list[Ragged]:
        """The scores of the further members."""
        return [context.ragged(model.logits(context.groups).flat.sigmoid()) for model in self._others]
