"""A reward inside a shaping: it is computed once per context, however often the shaping asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from pydantic import BeforeValidator

from cooper_rl.rewards.base import REWARDS
from cooper_rl.rewards.kinds.sum import build_sum

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged

InnerReward = Annotated[
    Any, REWARDS, BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value)
]
"""A reward with its settings, or just its kind, such as `rule`."""


class ScoredOnce:
    """The reward that a configuration record describes, times its weight. User functions are called only once."""

    def __init__(self, config: Any) -> None:
        self._reward = build_sum((config,))
        self._found: WeakKeyDictionary[StepContext, Ragged] = WeakKeyDictionary()

    def rewards(self, context: StepContext) -> Ragged:
        """The reward of every answer."""
        if context not in self._found:
            self._found[context] = self._reward.score(context).rewards
        return self._found[context]

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """See `Remembers`."""
        self._reward.commit(contexts)

    def state(self) -> list[Any]:
        """See `Remembers`."""
        return self._reward.state()

    def restore(self, state: list[Any]) -> None:
        """Restore what `state` returned."""
        self._reward.restore(state)

    def close(self) -> None:
        """See `Closes`."""
        self._reward.close()
