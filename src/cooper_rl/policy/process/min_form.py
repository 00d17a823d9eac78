"""Credit for the worst step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.policy.process import PROCESS_CREDITS, ProcessCredit

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@PROCESS_CREDITS.register
class MinForm(ProcessCredit):
    """softmax(-r / temperature)_k r_k: the sum over the steps is close to the smallest reward.

    PURE (Cheng et al. 2025, arXiv 2504.15275). Further good steps add nothing, so a solution gains nothing by having
    more of them. At high temperatures it is the mean.
    """

    kind: Literal["min_form"] = "min_form"
    """Names this kind of credit."""
    temperature: float = Field(default=0.1, gt=0)
    """How little the worst step stands out, in units of the reward."""

    def of(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """See the class."""
        return (-rewards / self.temperature).softmax(dim=0) * rewards
