"""DAPO's soft overlong punishment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from jaxtyping import Float, Int
from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.rewards.base import SHAPINGS

if TYPE_CHECKING:
    from torch import Tensor

    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged


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
        """See the class. Raises InputError if an answer has no `tokens`."""
        return rewards.like(rewards.flat.double() + self.penalty(context.lengths.flat))

    def penalty(self, lengths: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The penalty to add to the rewards of completions with these lengths in tokens: float64, from -factor to 0.

        It is 0 up to max_tokens - buffer, then falls linearly to -factor at max_tokens. (In the paper, max_tokens is
        L_max and buffer is L_cache.)
        """
        excess = lengths.double() - (self.max_tokens - self.buffer)
        return -self.factor * (excess / self.buffer).clamp(0, 1)
