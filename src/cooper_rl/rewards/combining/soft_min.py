"""A soft minimum of an ensemble's scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.combining import COMBINATIONS

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@COMBINATIONS.register
class SoftMin(Config):
    """-temperature * log mean exp(-score / temperature), between the smallest score and the mean.

    arXiv 2606.09073 (abstract read, formula derived). A low temperature gives the minimum, a high one the mean; to
    second order it is `uwo` with weight 1 / (2 temperature). The default is ours, for scores in [0, 1].
    """

    kind: Literal["soft_min"] = "soft_min"
    """Names this combination."""
    temperature: float = Field(default=0.1, gt=0)
    """In units of the score."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """See `Combination`."""
        total = (-scores / self.temperature).logsumexp(dim=0)
        return -self.temperature * (total - math.log(len(scores)))
