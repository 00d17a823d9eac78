"""Process credit by differences of steps' rewards, and by their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl import PROCESS_CREDITS, ProcessCredit

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@PROCESS_CREDITS.register
class Delta(ProcessCredit):
    """r_k - r_(k+1), and the reward itself for the last step: the return from step k on is its own reward r_k.

    Gao et al. 2024 (arXiv 2410.15115; formula from memory and reviews). However many steps follow, none of them can add
    to a return.
    """

    kind: Literal["delta"] = "delta"

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        credit = rewards.clone()
        credit[:-1] -= rewards[1:]
        return credit


@PROCESS_CREDITS.register
class Sum(ProcessCredit):
    """discount^k r_k, the baseline of PURE (arXiv 2504.15275). It is hacked by adding steps that score well."""

    kind: Literal["sum"] = "sum"
    discount: float = Field(default=1.0, gt=0, le=1)
    """Factor per step, counted from the first."""

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        return rewards * self.discount ** rewards.new_tensor(range(len(rewards)))
