"""A gate: further rewards count only where a reward of higher rank is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cooper_rl.rewards.base import SHAPINGS, ShapingConfig
from cooper_rl.rewards.kinds.rule import RuleRewardConfig
from cooper_rl.rewards.kinds.sum import check_servers, read_by
from cooper_rl.rewards.once import InnerReward, ScoredOnce

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged


@SHAPINGS.register
class Gate(ShapingConfig):
    """high + weight * reward where high >= threshold, and high alone elsewhere; high is the reward `by`.

    Gated reward accumulation (arXiv 2508.10548; formula from a secondary source): R = R_high + 1[R_high >= delta] times
    the weighted sum of the other rewards. With `by: rule` a reward model ranks the answers that the rule accepts and
    pays for no other.
    """

    kind: Literal["gate"] = "gate"
    """Names this kind of shaping."""
    by: InnerReward = RuleRewardConfig()
    """The reward that opens the gate, with its settings, or just its kind, such as `rule`."""
    threshold: float = 0.5
    """The gate is open from this value of `by`."""
    weight: float = 1.0
    """Factor of the gated reward."""

    @property
    def needs_reference(self) -> bool:
        """Whether `by` needs one."""
        return getattr(self.by, "needs_reference", True)

    def reads(self) -> tuple[str, ...]:
        """Names of the models that `by` uses."""
        return read_by((self.by,))

    def check(self) -> None:
        """Check the server of `by`, if it has one."""
        check_servers((self.by,))

    def build(self) -> GateShaping:
        """See the class."""
        return GateShaping(self)


class GateShaping:
    """Adds the reward where the gate is open."""

    def __init__(self, config: Gate) -> None:
        self._config = config
        self._by = ScoredOnce(config.by)

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """See `Gate`. A closed gate gives the value of `by` itself, bit for bit."""
        high = self._by.rewards(context).flat
        both = high + self._config.weight * rewards.flat
        return rewards.like(both.where(high >= self._config.threshold, high.to(both.dtype)))

    def metrics(self, context: StepContext) -> dict[str, float]:
        """`shaping/gate_open`: the share of answers for which the gate is open."""
        high = self._by.rewards(context).flat
        return {"shaping/gate_open": (high >= self._config.threshold).float().mean().item()}

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """See `Remembers`."""
        self._by.commit(contexts)

    def state(self) -> list[Any]:
        """The state of `by`."""
        return self._by.state()

    def restore(self, state: list[Any]) -> None:
        """Restore what `state` returned."""
        self._by.restore(state)

    def close(self) -> None:
        """Close the connections of `by`."""
        self._by.close()
