"""A penalty for every token beyond a free length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.base import SHAPINGS

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged


@SHAPINGS.register
class LengthPenalty(Config):
    """Subtracts `per_token` from the reward for every token beyond `free`, without a lower bound."""

    kind: Literal["length_penalty"] = "length_penalty"
    """Names this kind of shaping."""
    free: int = Field(default=300, ge=0)
    """Number of tokens without a penalty."""
    per_token: float = Field(default=0.01, ge=0)
    """Penalty for each further token, in units of the reward."""

    def build(self) -> Self:
        """The record itself, since it needs no state."""
        return self

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See the class. Raises InputError if an answer has no `tokens`."""
        excess = (context.lengths.flat - self.free).clamp(min=0).double()
        return rewards.like(rewards.flat.double() - self.per_token * excess)
