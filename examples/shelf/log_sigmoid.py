"""The log-probability of being good: the log-sigmoid of a reward model's logit, centred at a reference."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_lab.designs.compared import Comparison
from cooper_lab.designs.references import ReferenceSource

if TYPE_CHECKING:
    from torch import Tensor

    from cooper_rl import Ragged


class LogSigmoid(Comparison):
    """log sigmoid(logit - q), with q a quantile of the reference logits. At most 0, in nats. It replaces the score.

    Wang et al. 2024, "Transforming and Combining Rewards" (arXiv 2402.00742; formula from memory), which takes the
    quantile 0.85. The estimate `normal` is that of PAR's code for this baseline. Since rewards are in nats,
    `algorithm.min_spread` is too.
    """

    references: ReferenceSource = "group"
    """Where the references come from: `group`, all answers of the group; the data set's `solution` of the problem;
    `accepted`, the mean logit of the group's answers that the rule accepts, or of those of earlier steps if there is
    none; `{file: …}`, answers collected before; or a logit. A single reference is its own quantile; only `group` and
    collected answers have several."""
    quantile: float = Field(default=0.85, gt=0, lt=1)
    """Which quantile of the references is the centre."""
    estimate: Literal["normal", "empirical"] = "normal"
    """How the quantile is estimated: `normal` from mean and sample standard deviation of the references, `empirical`
    by linear interpolation between them."""

    def centre(self, references: Tensor) -> Tensor:
        """The quantile of one group's reference logits [R]."""
        if len(references) == 1:
            return references[0]
        if self.estimate == "empirical":
            return references.quantile(self.quantile)
        return references.mean() + NormalDist().inv_cdf(self.quantile) * references.std()

    def compare(self, logits: Ragged, references: Ragged) -> Ragged:
        """log sigmoid(logit - centre of the group's references), in float64."""
        rows = []
        for of_group, others in zip(logits.groups(), references.groups(), strict=True):
            below = self.centre(others.double()) - of_group.double()
            rows.append(-below.logaddexp(below.new_zeros(())))  # exact where the sigmoid itself would round to 0 or 1
        return type(logits).of(rows)
