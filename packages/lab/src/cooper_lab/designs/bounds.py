"""Shapings that bound the finished reward, or charge for the length of a completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from cooper_rl import ShapingConfig
from cooper_rl.reward.base import SHAPINGS

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from cooper_rl import Ragged, StepContext


@SHAPINGS.register
class Clip(ShapingConfig):
    """Rewards below `low` become `low`, and rewards above `high` become `high`. A bound of null has no effect."""

    kind: Literal["clip"] = "clip"
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

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """NaN stays NaN."""
        return rewards.like(rewards.flat.clamp(self.low, self.high))


@SHAPINGS.register
class LengthPenalty(ShapingConfig):
    """Subtracts `per_token` from the reward for every token beyond `free`, without a lower bound."""

    kind: Literal["length_penalty"] = "length_penalty"
    free: int = Field(default=300, ge=0)
    """Number of tokens without a penalty."""
    per_token: float = Field(default=0.01, ge=0)
    """Penalty for each further token, in units of the reward."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """Raises InputError if an answer has no `tokens`."""
        excess = (context.lengths.flat - self.free).clamp(min=0).double()
        return rewards.like(rewards.flat.double() - self.per_token * excess)


@SHAPINGS.register
class Overlong(ShapingConfig):
    """Subtracts a penalty from completions near the length limit (arXiv 2503.14476, eq. 13).

    The penalty grows linearly to `factor` over the last `buffer` of `max_tokens` tokens.
    """

    kind: Literal["overlong"] = "overlong"
    max_tokens: int = Field(ge=1)
    """The length limit of a completion."""
    buffer: int = Field(default=128, ge=1)
    """Number of tokens before the limit over which the penalty grows; at most `max_tokens`."""
    factor: float = Field(default=1.0, ge=0)
    """Penalty at the limit, in units of the reward."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if self.buffer > self.max_tokens:
            raise ValueError(f"buffer: {self.buffer} exceeds max_tokens: {self.max_tokens}")
        return self

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """Raises InputError if an answer has no `tokens`."""
        return rewards.like(rewards.flat.double() + self.penalty(context.lengths.flat))

    def penalty(self, lengths: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """What to add for completions of these lengths in tokens: float64, from 0 up to max_tokens - buffer (L_max and
        L_cache in the paper) linearly to -factor at max_tokens."""
        excess = lengths.double() - (self.max_tokens - self.buffer)
        return -self.factor * (excess / self.buffer).clamp(0, 1)
