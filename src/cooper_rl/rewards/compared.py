"""Shapings that replace a reward model's score by a function of its logit and of reference logits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cooper_rl.rewards.base import REWARDS, SHAPINGS, ShapingConfig
from cooper_rl.rewards.references import References, ReferenceSource

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged


class Comparison(ShapingConfig):
    """The settings that such shapings share. Each has a `compare` of its own."""

    model: str = "main"
    """The reward model's name in `reward_models`. Its score must be the only reward."""
    references: ReferenceSource = "solution"
    """Where the references come from."""

    @property
    def needs_solutions(self) -> bool:
        """Whether the references are solutions."""
        return self.references == "solution"

    def reads(self) -> tuple[str, ...]:
        """The name of the one model it uses."""
        return (self.model,)

    def check_place(self, rewards: Sequence[Any], before: Sequence[Any]) -> None:
        """See `check_only_reward`."""
        check_only_reward(SHAPINGS.kind_of(self), self.model, rewards, before)

    def build(self) -> ComparedShaping:
        """See the class."""
        return ComparedShaping(self)

    @abstractmethod
    def compare(self, logits: Ragged, references: Ragged) -> Ragged:
        """The new rewards. Both arguments have the same groups, but groups of different sizes."""


class ComparedShaping:
    """Pays what `compare` makes of the reward model's logits. The rewards that it is given are replaced."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._references = References(comparison.model, comparison.references)

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See the class. Raises InputError if the references are solutions and a problem has none."""
        return self._comparison.compare(context.logits(self._comparison.model), self._references.of(context))

    def metrics(self, context: StepContext) -> dict[str, float]:
        """`shaping/reference_logit`: the mean reference. `shaping/above_reference`: the share of answers above it."""
        logits, reference = context.logits(self._comparison.model), self._references.of(context).mean()
        return {
            "shaping/reference_logit": reference.mean().item(),
            "shaping/above_reference": (logits.flat > logits.expand(reference)).float().mean().item(),
        }

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """See `References`."""
        self._references.commit(contexts)

    def state(self) -> float | None:
        """See `References`."""
        return self._references.state()

    def restore(self, state: float | None) -> None:
        """Restore what `state` returned."""
        self._references.restore(state)


def check_only_reward(kind: str, model: str, rewards: Sequence[Any], before: Sequence[Any]) -> None:
    """Raises ValueError unless the shaping `kind` is the first one and this model's score is the only reward."""
    if before:
        raise ValueError(f"shaping: {kind} reads the logit, not the rewards before it; write it first in the list")
    found = [(REWARDS.kind_of(part), getattr(part, "model", None)) for part in rewards]
    if found != [("reward_model", model)]:
        words = " + ".join(name for name, _ in found)
        raise ValueError(
            f"shaping: {kind} replaces the score of reward model {model!r} and would drop other rewards, but rewards "
            f"lists {words}; keep only {{kind: reward_model, model: {model}}}"
        )
    if getattr(rewards[0], "weight", 1.0) != 1.0:
        raise ValueError(f"shaping: {kind} replaces the score, so the reward's weight has no effect; remove weight")
