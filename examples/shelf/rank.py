"""The place of an answer in its group."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from jaxtyping import Float
from pydantic import Field

from cooper_rl import ShapingConfig

if TYPE_CHECKING:
    from torch import Tensor

    from cooper_rl import Ragged, StepContext


class RankInGroup(ShapingConfig):
    """The share of the group that the answer beats, ties counting one half: in (0, 1), with mean 1/2 in every group.

    An answer ties with itself. The idea is that of win rates (Nash learning from human feedback); the form is ours.
    Beware: ranks give noise the full spread. Where a reward model scores a whole group alike, the last digits decide,
    and `algorithm.min_spread` cannot see it; `tie` is there for that. A constant mean also shows no progress: read
    `reward/mean`, which is from before shaping.
    """

    compares_answers: ClassVar[bool] = True
    tie: float = Field(default=0.01, ge=0)
    """Rewards that differ by no more than this count as equal, in units of the reward."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """In float64, among the answers on which there is an opinion. A group with an infinite reward becomes NaN."""
        ranks = rewards.flat.new_full((len(rewards.flat),), float("nan"), dtype=rewards.flat.double().dtype)
        opinions = rewards.opinions()
        ranks[~rewards.flat.isnan()] = opinions.of([self.ranks(group) for group in opinions.groups()]).flat
        return rewards.like(ranks)

    def ranks(self, rewards: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The ranks of one group's rewards [n]."""
        rewards = rewards.double()
        if not rewards.isfinite().all():
            return rewards * float("nan")
        gap = rewards[:, None] - rewards
        beaten, tied = gap > self.tie, gap.abs() <= self.tie
        return (beaten.double() + 0.5 * tied.double()).mean(dim=1)
