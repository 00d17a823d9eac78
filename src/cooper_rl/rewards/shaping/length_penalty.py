"""A price for every token beyond a free length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.base import SHAPINGS

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts.ragged import Ragged


@SHAPINGS.register
class LengthPenalty(Config):
    """Takes `per_token` off the reward for every token beyond `free`, with no lower bound."""

    kind: Literal["length_penalty"] = "length_penalty"
    """Names this kind of shaping."""
    free: int = Field(default=300, ge=0)
    """Tokens that cost nothing."""
    per_token: float = Field(default=0.01, ge=0)
    """Price of each further token, in units of the reward."""

    def build(self) -> Self:
        """It has no state."""
        return self

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See the class. Raises InputError where an answer does not say how many tokens it has."""
        excess = (context.lengths.flat - self.free).clamp(min=0).double()
        return rewards.like(rewards.flat.double() - self.per_token * excess)
