"""A nominal member's score, moved towards the worst case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.combining import COMBINATIONS

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@COMBINATIONS.register
class BRME(Config):
    """trust * nominal score + (1 - trust) * smallest score.

    Reward-robust RLHF (arXiv 2409.15360, from a secondary source, which contradicts itself on which end of `trust` is
    the plain one). The paper takes the head of least predicted variance as nominal; members here predict no variance,
    so the nominal one is fixed.
    """

    kind: Literal["brme"] = "brme"
    """Names this combination."""
    nominal: int = Field(default=0, ge=0)
    """Place of the nominal member in `models`, counted from 0."""
    trust: float = Field(default=0.3, ge=0, le=1)
    """Weight of the nominal score. The paper's best values are 0.2 to 0.4."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """See `Combination`. Raises IndexError if there is no nominal member."""
        return self.trust * scores[self.nominal] + (1 - self.trust) * scores.amin(dim=0)
