"""The mean, the median and the smallest score of an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.config.base import Config
from cooper_rl.rewards.combining import COMBINATIONS

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@COMBINATIONS.register
class Mean(Config):
    """The mean score (Coste et al. 2023, arXiv 2310.02743; Eisenstein et al. 2023, arXiv 2312.09244)."""

    kind: Literal["mean"] = "mean"
    """Names this combination."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """See `Combination`."""
        return scores.mean(dim=0)


@COMBINATIONS.register
class Median(Config):
    """The median score (Eisenstein et al. 2023, arXiv 2312.09244); of an even number, the mean of the middle two."""

    kind: Literal["median"] = "median"
    """Names this combination."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """See `Combination`."""
        return scores.quantile(0.5, dim=0)


@COMBINATIONS.register
class Min(Config):
    """The smallest score: worst-case optimisation (WCO; Coste et al. 2023, arXiv 2310.02743, as in their code)."""

    kind: Literal["min"] = "min"
    """Names this combination."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """See `Combination`."""
        return scores.amin(dim=0)
