"""What an adapter needs of a reward: `CooperReward` in the same process has it, and so has the service's client."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from cooper_rl.engines.base import Metrics
from cooper_rl.rollouts import AnswerGroup


class Rewarded(Protocol):
    """What scoring gives: a reward for every answer of every group, and the version that gave it."""

    @property
    def rewards(self) -> list[list[float]]: ...
    @property
    def version(self) -> int: ...
    @property
    def metrics(self) -> Metrics: ...


class Learned(Protocol):
    """What an update gives: the version after it, and its metrics."""

    @property
    def version(self) -> int: ...
    @property
    def metrics(self) -> Metrics: ...


class Scorer(Protocol):
    """The verbs of `CooperReward`."""

    def score(self, groups: Sequence[AnswerGroup], *, step: int | None = None, train: bool = True) -> Rewarded: ...
    def update(self, step: int, keep: Collection[str] | None = None) -> Learned: ...
    def save(self, folder: str | Path) -> Any: ...
    def load(self, folder: str | Path) -> Any: ...
