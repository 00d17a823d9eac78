"""The one interface of everything that turns completions into numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jaxtyping import Float
from torch import Tensor

from cooper_rl.rollouts.answers import AnswerGroup


@dataclass(frozen=True)
class Scores:
    """Rewards of P groups with N completions each, and where they come from.

    `parts` holds every ingredient under its own name, same shape (`rule`, `reward_model`, `logit`, …);
    `metrics` holds step-level numbers under their full `area/name`.
    """

    rewards: Float[Tensor, "P N"]
    parts: dict[str, Float[Tensor, "P N"]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


class Reward(Protocol):
    """Scores groups of completions. All groups of a call have the same number of completions."""

    def score(self, groups: Sequence[AnswerGroup]) -> Scores: ...
