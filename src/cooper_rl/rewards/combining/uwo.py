"""The mean score less a penalty for disagreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.combining import COMBINATIONS

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@COMBINATIONS.register
class UWO(Config):
    """mean - weight * variance over the members: uncertainty-weighted optimisation (Coste et al. 2023, arXiv
    2310.02743, as in their code).

    Their weight is 0.5 for best-of-n, with M in the variance's denominator, and 0.1 for PPO, with M - 1, so a weight
    does not carry over from one to the other. With `root` it is mean - weight * std (Eisenstein et al. 2023, arXiv
    2312.09244; from a secondary source).
    """

    kind: Literal["uwo"] = "uwo"
    """Names this combination."""
    weight: float = Field(default=0.5, ge=0)
    """Factor of the penalty."""
    correction: Literal[0, 1] = 0
    """Subtracted from the number of members in the variance's denominator."""
    root: bool = False
    """Take the standard deviation instead of the variance."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """See `Combination`."""
        variance = scores.var(dim=0, correction=self.correction)
        return scores.mean(dim=0) - self.weight * (variance.sqrt() if self.root else variance)
