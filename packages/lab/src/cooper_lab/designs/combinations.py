"""How the scores of several reward models become one: the kinds of `combine` of an ensemble."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import Field

from cooper_base.config.base import Kinds
from cooper_rl import Config

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

COMBINATIONS = Kinds("combination", "cooper_lab.designs.combinations", needs=["combine"])
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
