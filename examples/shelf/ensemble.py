"""The scores of several reward models, combined into one reward, and the kinds of `combine`: how they become one."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol, Self

from pydantic import Field, model_validator

from cooper_base.config.base import Kinds
from cooper_rl import Config, RewardConfig, Scores
from cooper_rl.engines.config import ScorerConfig

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl import Ragged, RewardModel, StepContext

COMBINATIONS = Kinds("combination", "shelf.ensemble", needs=["combine"])
"""The kinds of `combine` of an ensemble."""


class Combination(Protocol):
    """A combination of M scores per answer."""

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """One score for each of B answers, from float64 scores in [0, 1]. NaN must stay NaN."""
        ...


@COMBINATIONS.register
class Mean(Config):
    """The mean score (Coste et al. 2023, arXiv 2310.02743; Eisenstein et al. 2023, arXiv 2312.09244)."""

    kind: Literal["mean"] = "mean"

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        return scores.mean(dim=0)


@COMBINATIONS.register
class Median(Config):
    """The median score (Eisenstein et al. 2023, arXiv 2312.09244); of an even number, the mean of the middle two."""

    kind: Literal["median"] = "median"

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        return scores.quantile(0.5, dim=0)


@COMBINATIONS.register
class Min(Config):
    """The smallest score: worst-case optimisation (WCO; Coste et al. 2023, arXiv 2310.02743, as in their code)."""

    kind: Literal["min"] = "min"

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        return scores.amin(dim=0)


@COMBINATIONS.register
class UWO(Config):
    """mean - weight * variance over the members: uncertainty-weighted optimisation (Coste et al. 2023, arXiv
    2310.02743, as in their code).

    Their weight is 0.5 for best-of-n, with M in the variance's denominator, and 0.1 for PPO, with M - 1, so a weight
    does not carry over from one to the other. With `root` it is mean - weight * std (Eisenstein et al. 2023, arXiv
    2312.09244; from a secondary source).
    """

    kind: Literal["uwo"] = "uwo"
    weight: float = Field(default=0.5, ge=0)
    """Factor of the penalty."""
    correction: Literal[0, 1] = 0
    """Subtracted from the number of members in the variance's denominator."""
    root: bool = False
    """Take the standard deviation instead of the variance."""

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        variance = scores.var(dim=0, correction=self.correction)
        return scores.mean(dim=0) - self.weight * (variance.sqrt() if self.root else variance)


@COMBINATIONS.register
class SoftMin(Config):
    """-temperature * log mean exp(-score / temperature), between the smallest score and the mean.

    arXiv 2606.09073 (abstract read, formula derived). A low temperature gives the minimum, a high one the mean; to
    second order it is `uwo` with weight 1 / (2 temperature). The default is ours, for scores in [0, 1].
    """

    kind: Literal["soft_min"] = "soft_min"
    temperature: float = Field(default=0.1, gt=0)
    """In units of the score."""

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        total = (-scores / self.temperature).logsumexp(dim=0)
        return -self.temperature * (total - math.log(len(scores)))


@COMBINATIONS.register
class BRME(Config):
    """trust * nominal score + (1 - trust) * smallest score.

    Reward-robust RLHF (arXiv 2409.15360, from a secondary source, which contradicts itself on which end of `trust` is
    the plain one). The paper takes the head of least predicted variance as nominal; members here predict no variance,
    so the nominal one is fixed.
    """

    kind: Literal["brme"] = "brme"
    nominal: int = Field(default=0, ge=0)
    """Place of the nominal member, counted from 0, which is the run's own reward model."""
    trust: float = Field(default=0.3, ge=0, le=1)
    """Weight of the nominal score. The paper's best values are 0.2 to 0.4."""

    def combine(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """Raises IndexError if there is no nominal member."""
        return self.trust * scores[self.nominal] + (1 - self.trust) * scores.amin(dim=0)


class Ensemble(RewardConfig):
    """Several reward models, combined. Each is read as sigmoid(logit), so members must be trained to give absolute
    scores, as VerifyRM is. The logits of models trained on preferences alone have a free shift each and do not compare.

    Errors that the members share are not averaged out. A frozen copy of the model that learns is the cheapest second
    member: name the folder of `reward_model` in `others`.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("ensemble/disagreement",)
    compares_answers: ClassVar[bool] = False
    reads_model: ClassVar[bool] = True
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
