"""The treatment of completions that reach the length limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jaxtyping import Float, Int
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


class OverlongConfig(Config):
    """The treatment of completions that reach the length limit or come close to it."""

    kind: Literal["keep", "mask", "penalise"] = "keep"
    """`keep` treats them like any other; `mask` leaves them out of the loss and its denominators (their rewards still
    count in the group's baseline); `penalise` lowers the reward smoothly as the limit comes near."""
    buffer: int = Field(default=128, ge=1)
    """Tokens before the limit over which the penalty grows (`penalise` only); at most the limit itself."""
    factor: float = Field(default=1.0, ge=0)
    """Penalty at the limit, in units of the reward (`penalise` only)."""


def overlong_penalty(
    lengths: Int[Tensor, "*shape"], max_tokens: int, config: OverlongConfig
) -> Float[Tensor, "*shape"]:
    """What to add to the reward of completions of these lengths (tokens): float64, between -factor and 0.

    0 up to max_tokens - buffer, then falling linearly to -factor at max_tokens
    (DAPO's soft overlong punishment, arXiv 2503.14476, eq. 13, with L_max = max_tokens and L_cache = buffer).
    Raises InputError when the buffer is longer than max_tokens.
    """
    if config.buffer > max_tokens:
        raise InputError(
            f"overlong.buffer: {config.buffer} tokens exceed the limit of {max_tokens} tokens a completion; "
            f"use a buffer of at most {max_tokens}"
        )
    excess = lengths.double() - (max_tokens - config.buffer)
    return -config.factor * (excess / config.buffer).clamp(0, 1)
