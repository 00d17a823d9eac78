"""Clips rewards to bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from cooper_rl.config.base import Config
from cooper_rl.rewards.base import SHAPINGS

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged


@SHAPINGS.register
class Clip(Config):
    """Rewards below `low` become `low`, and rewards above `high` become `high`. A bound of null has no effect."""

    kind: Literal["clip"] = "clip"
    """Names this kind of shaping."""
    low: float | None = None
    """The lowest reward."""
    high: float | None = None
    """The highest reward."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.low is None and self.high is None:
            raise ValueError("clip has no bound; set low, high or both")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low: {self.low} must be below high: {self.high}")
        return self

    def build(self) -> Self:
        """The record itself, since it needs no state."""
        return self

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See the class. NaN stays NaN."""
        return rewards.like(rewards.flat.clamp(self.low, self.high))
