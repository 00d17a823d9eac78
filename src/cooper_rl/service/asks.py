"""Requests of the HTTP side to the training, and its replies."""

from dataclasses import dataclass, field

from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.service.book import Asked, ScoredGroup
from cooper_rl.service.commit_policy import CommitPolicy


@dataclass(frozen=True)
class ScoreAsk:
    """One request to score. `policy` says when to train, for requests without a step."""

    groups: list[Asked]
    step: int | None = None
    train: bool = True
    run: str | None = None
    policy: CommitPolicy | None = None

    @property
    def rows(self) -> int:
        """Number of answers."""
        return sum(len(one.group.answers) for one in self.groups)

    @property
    def names(self) -> set[str]:
        """Groups that it adds to the step."""
        return {one.group.id for one in self.groups} if self.train else set()


@dataclass(frozen=True)
class ScoreReply:
    """One entry per group of the request; the metrics cover new groups only."""

    step: int | None
    version: int
    groups: list[ScoredGroup]
    metrics: Metrics


@dataclass(frozen=True)
class StepView:
    """The state of a step: `open`, `updating`, `done` or `failed`."""

    step: int
    state: str
    version: int
    metrics: Metrics = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    error: str | None = None
