"""Credit for what a step is better than the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.policy.process import PROCESS_CREDITS, ProcessCredit

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
    """Names this kind of credit."""

    def of(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """See the class."""
        credit = rewards.clone()
        credit[:-1] -= rewards[1:]
        return credit
