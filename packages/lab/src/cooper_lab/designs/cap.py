"""Caps a reward model's logit at a reference: being better than the reference is not paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_lab.designs.compared import Comparison
from cooper_lab.designs.references import ReferenceSource
from cooper_rl.reward.base import SHAPINGS

if TYPE_CHECKING:
    from cooper_rl import Ragged


@SHAPINGS.register
class Cap(Comparison):
    """min(logit, reference logit), in nats and without a lower bound. It replaces the score of the reward model.

    All answers above the reference tie. Up to a constant of the group it is the clip min(r - eta, 0) of Gao et al. 2024
    ("On Designing Effective RL Reward at Training Time for LLM Reasoning", arXiv 2410.15115; formula from memory),
    which uses a fixed eta; the reference in its place is Cooper's. Since rewards are in nats, `algorithm.min_spread` is
    too.
    """

    kind: Literal["cap"] = "cap"
    references: ReferenceSource = "solution"
    """Where the reference comes from: the data set's `solution` of the problem; `accepted`, the mean logit of the
    group's answers that the rule accepts, or of those of earlier steps if there is none; `group`, the mean of the
    group; `{file: …}`, the mean of answers collected before, such as the start policy's; or a logit."""

    def compare(self, logits: Ragged, references: Ragged) -> Ragged:
        """min(logit, mean of the group's references)."""
        return logits.like(logits.flat.minimum(logits.expand(references.mean())))
