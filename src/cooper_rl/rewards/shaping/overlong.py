"""DAPO's soft overlong punishment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.policy.overlong import OverlongConfig, overlong_penalty
from cooper_rl.rewards.base import SHAPINGS

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts.ragged import Ragged


@SHAPINGS.register
class Overlong(Config):
    """Subtracts a penalty from completions near the length limit (arXiv 2503.14476, eq. 13).

    The penalty grows linearly to `factor` over the last `buffer` of `max_tokens` tokens.
    """

    kind: Literal["overlong"] = "overlong"
    """Names this kind of shaping."""
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

    def build(self) -> Self:
        """The record itself, since it needs no state."""
        return self

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See the class. Raises InputError where an answer does not say how many tokens it has."""
        settings = OverlongConfig(kind="penalise", buffer=self.buffer, factor=self.factor)
        penalty = overlong_penalty(context.lengths.flat, self.max_tokens, settings)
        return rewards.like(rewards.flat.double() + penalty)
