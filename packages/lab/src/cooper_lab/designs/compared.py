"""Shapings that replace a reward model's score by a function of its logit and of reference logits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cooper_lab.designs.references import CollectedAnswers, References, ReferenceSource, check_solutions
from cooper_rl import ShapingConfig
from cooper_rl.reward.base import REWARDS, SHAPINGS

if TYPE_CHECKING:
    from cooper_rl import Problem, Ragged, StepContext


class Comparison(ShapingConfig):
    """The settings that such shapings share. Each has a `compare` of its own."""

    metric_names: ClassVar[tuple[str, ...]] = ("shaping/reference_logit", "shaping/above_reference")
    reads_model: ClassVar[bool] = True
    references: ReferenceSource = "solution"
    """Where the references come from."""

    @property
    def compares_answers(self) -> bool:
        return self.references in ("group", "accepted")

    def check_place(self, rewards: Sequence[Any], before: Sequence[Any]) -> None:
        check_only_reward(SHAPINGS.kind_of(self), rewards, before)

    def check_problems(self, problems: Sequence[Problem]) -> None:
        if isinstance(self.references, CollectedAnswers):
            self.references.check(problems)
        if self.references == "solution":
            check_solutions(SHAPINGS.kind_of(self), "references", "accepted", problems)

    def build(self) -> ComparedShaping:
        return ComparedShaping(self)

    @abstractmethod
    def compare(self, logits: Ragged, references: Ragged) -> Ragged:
        """The new rewards. Both arguments have the same groups, but groups of different sizes."""


class ComparedShaping(References):
    """Pays what `compare` makes of the reward model's logits. The rewards that it is given are replaced."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(comparison.references)
        self._comparison = comparison

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """Raises InputError if the references are solutions and a problem has none."""
        return self._comparison.compare(context.logits, self.logits(context))

    def metrics(self, context: StepContext) -> dict[str, float]:
        """`shaping/reference_logit`: the mean reference. `shaping/above_reference`: the share of answers above it."""
        logits, reference = context.logits, self.logits(context).mean()
        return {
            "shaping/reference_logit": reference.mean().item(),
            "shaping/above_reference": (logits.flat > logits.expand(reference)).float().mean().item(),
        }


def check_only_reward(kind: str, rewards: Sequence[Any], before: Sequence[Any]) -> None:
    """Raises ValueError unless the shaping `kind` is the first one and the reward model's score is the only reward."""
    if before:
        raise ValueError(f"shaping: {kind} reads the logit, not the rewards before it; write it first in the list")
    kinds = [REWARDS.kind_of(part) for part in rewards]
    if kinds != ["reward_model"]:
        raise ValueError(
            f"shaping: {kind} replaces the score of the reward model and would drop other rewards, but rewards lists "
            f"{' + '.join(kinds)}; keep only {{kind: reward_model}}"
        )
    if getattr(rewards[0], "weight", 1.0) != 1.0:
        raise ValueError(f"shaping: {kind} replaces the score, so the reward's weight has no effect; remove weight")
