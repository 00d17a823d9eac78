"""Caps a reward model's logit at a reference: being better than the reference is not paid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cooper_rl.rewards.base import SHAPINGS, ShapingConfig
from cooper_rl.rewards.compared import ComparedShaping, check_only_reward
from cooper_rl.rewards.references import ReferenceSource

if TYPE_CHECKING:
    from cooper_rl.rollouts.ragged import Ragged


@SHAPINGS.register
class Cap(ShapingConfig):
    """min(logit, reference logit), in nats and without a lower bound. It replaces the score of the reward model.

    All answers above the reference tie. Up to a constant of the group it is the clip min(r - eta, 0) of Gao et al. 2024
    ("On Designing Effective RL Reward at Training Time for LLM Reasoning", arXiv 2410.15115; formula from memory),
    which uses a fixed eta; the reference in its place is Cooper's. Since rewards are in nats, `algorithm.min_spread` is
    too.
    """

    kind: Literal["cap"] = "cap"
    """Names this kind of shaping."""
    model: str = "main"
    """The reward model's name in `reward_models`. Its score must be the only reward."""
    references: ReferenceSource = "solution"
    """Where the reference comes from: the data set's `solution` of the problem; `accepted`, the mean logit of the
    group's answers that the rule accepts, or of those of earlier steps if there is none; `group`, the mean of the
    group; or a logit."""

    @property
    def needs_solutions(self) -> bool:
        """Whether the references are solutions."""
        return self.references == "solution"

    def reads(self) -> tuple[str, ...]:
        """The name of the one model it uses."""
        return (self.model,)

    def check_place(self, rewards: Sequence[Any], before: Sequence[Any]) -> None:
        """See `check_only_reward`."""
        check_only_reward(self.kind, self.model, rewards, before)

    def build(self) -> ComparedShaping:
        """See the class."""
        return ComparedShaping(self)

    def compare(self, logits: Ragged, references: Ragged) -> Ragged:
        """min(logit, mean of the group's references)."""
        return logits.like(logits.flat.minimum(logits.expand(references.mean())))
