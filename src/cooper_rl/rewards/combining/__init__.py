"""Combinations: the scores of several reward models become one. Each is a record in a file of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from jaxtyping import Float

from cooper_rl.config.base import Kinds

if TYPE_CHECKING:
    from torch import Tensor

COMBINATIONS = Kinds("combination", "cooper_rl.rewards.combining", needs=["of"])
"""The kinds of `combine` of an ensemble."""


class Combination(Protocol):
    """A combination of M scores per answer."""

    def of(self, scores: Float[Tensor, "M B"]) -> Float[Tensor, " B"]:
        """One score for each of B answers, from float64 scores in [0, 1]. NaN must stay NaN."""
        ...


CombinationConfig = Annotated[Combination, COMBINATIONS]
