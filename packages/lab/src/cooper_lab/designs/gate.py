"""A gate: further rewards count only where a reward of higher rank is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from cooper_rl import ShapingConfig
from cooper_rl.reward.base import REWARDS, SHAPINGS
from cooper_rl.reward.kinds.plain import RuleReward, WeightedSum

if TYPE_CHECKING:
    from cooper_rl import Ragged, StepContext

InnerReward = Annotated[
    Any, REWARDS, BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value)
]
"""A reward with its settings, or just its kind, such as `rule`."""


@SHAPINGS.register
class RewardGate(ShapingConfig):
    """high + weight * reward where high >= threshold, and high alone elsewhere; high is the reward `by`.

    Gated reward accumulation (arXiv 2508.10548; formula from a secondary source): R = R_high + 1[R_high >= delta] times
    the weighted sum of the other rewards. With `by: rule` a reward model ranks the answers that the rule accepts and
    pays for no other.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("shaping/gate_open",)
    kind: Literal["gate"] = "gate"
    by: InnerReward = RuleReward()
    """The reward that opens the gate, with its settings, or just its kind, such as `rule`."""
    threshold: float = 0.5
    """The gate is open from this value of `by`."""
    weight: float = 1.0
    """Factor of the gated reward."""

    @property
    def compares_answers(self) -> bool:
        return self.by.compares_answers

    @property
    def needs_reference(self) -> bool:
        """Whether `by` needs one."""
        return getattr(self.by, "needs_reference", True)

    def check(self) -> None:
        self.by.check()

    def build(self) -> GateShaping:
        return GateShaping(self)


class GateShaping(WeightedSum):
    """Adds the reward where the gate is open. It is itself the sum that holds `by`, with its state and connections."""

    def __init__(self, config: RewardGate) -> None:
        super().__init__([config.by.build()], [getattr(config.by, "weight", 1.0)])
        self._config = config

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See `RewardGate`. A closed gate gives the value of `by` itself, bit for bit."""
        high = context.scores(self).rewards.flat
        both = high + self._config.weight * rewards.flat
        return rewards.like(both.where(high >= self._config.threshold, high.to(both.dtype)))

    def metrics(self, context: StepContext) -> dict[str, float]:
        """`shaping/gate_open`: the share of answers for which the gate is open."""
        high = context.scores(self).rewards.flat
        return {"shaping/gate_open": (high >= self._config.threshold).float().mean().item()}
