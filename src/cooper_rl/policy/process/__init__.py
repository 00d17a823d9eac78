"""Process credit: how the rewards of a completion's steps become credit. Each kind is a record in a file here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

PROCESS_CREDITS = Kinds("process credit", "cooper_rl.policy.process", ["of", "model", "separator", "outcome_weight"])
"""The kinds of `algorithm.process`."""


class ProcessCredit(Config):
    """Settings that all kinds share. Each kind implements `of`."""

    model: str = "main"
    """The reward model's name in `reward_models`. It reads a completion up to the end of each step, so it must have
    been trained to judge unfinished solutions. A VerifyRM has not: it rejects what has no final answer yet."""
    separator: str = Field(default="\n\n", min_length=1)
    """The text between two steps. Blank steps are left out, and tokens of separators get no process advantage."""
    outcome_weight: float = Field(default=1.0, ge=0)
    """Factor of the advantages of the finished reward, to which those of the process are added. With 0 only the
    process counts."""

    def of(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """The credit of each of a completion's S steps, from their rewards in [-1, 1] (float64)."""
        raise NotImplementedError


ProcessConfig = Annotated[ProcessCredit, PROCESS_CREDITS]
