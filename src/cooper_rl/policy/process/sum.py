"""Credit for every step, for the contrast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.policy.process import PROCESS_CREDITS, ProcessCredit

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@PROCESS_CREDITS.register
class Sum(ProcessCredit):
    """discount^k r_k, the baseline of PURE (arXiv 2504.15275). It is hacked by adding steps that score well."""

    kind: Literal["sum"] = "sum"
    """Names this kind of credit."""
    discount: float = Field(default=1.0, gt=0, le=1)
    """Factor per step, counted from the first."""

    def of(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """See the class."""
        return rewards * self.discount ** rewards.new_tensor(range(len(rewards)))
