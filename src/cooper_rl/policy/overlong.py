"""The treatment of completions that reach the length limit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cooper_rl.config.base import Config


class OverlongConfig(Config):
    """The treatment of completions that reach the length limit or come close to it."""

    kind: Literal["keep", "mask", "penalise"] = "keep"
    """`keep` treats them like any other completion. `mask` leaves those cut at the limit out of the loss and its
    denominators; their rewards still count in the group's baseline. `penalise` is the short form of the shaping
    `overlong`."""
    buffer: int = Field(default=128, ge=1)
    """Number of tokens before the limit over which the penalty grows (`penalise` only); at most the limit itself."""
    factor: float = Field(default=1.0, ge=0)
    """Penalty at the limit, in units of the reward (`penalise` only)."""
