"""Preference as reward: how likely the answer beats a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_lab.designs.compared import Comparison
from cooper_lab.designs.references import ReferenceSource
from cooper_rl.reward.base import SHAPINGS

if TYPE_CHECKING:
    from cooper_rl import Ragged


@SHAPINGS.register
class PAR(Comparison):
    """mean over references of sigmoid(steepness (logit - reference logit)), in (0, 1). It replaces the score.

    Fu et al. 2025, "Reward Shaping to Mitigate Reward Hacking in RLHF" (arXiv 2502.18770), as in the authors' code. The
    paper's references are ten samples of the start policy: collect them with `cooper verifyrm collect` and name the
    file. With `group` the mean of every group is 1/2, whatever its answers are.
    """

    kind: Literal["par"] = "par"
    references: ReferenceSource = "solution"
    """Where the references come from: the data set's `solution` of the problem; `accepted`, the mean logit of the
    group's answers that the rule accepts, or of those of earlier steps if there is none; `group`, all answers of the
    group; `{file: …}`, answers collected before; or a logit."""
    steepness: float = Field(default=1.0, gt=0)
    """Factor of the difference of logits."""

    def compare(self, logits: Ragged, references: Ragged) -> Ragged:
        """The mean of sigmoid(steepness (logit - reference)) over the group's references, in float64."""
        rows = [
            (self.steepness * (of_group.double()[:, None] - others.double())).sigmoid().mean(dim=1)
            for of_group, others in zip(logits.groups(), references.groups(), strict=True)
        ]
        return type(logits).of(rows)
