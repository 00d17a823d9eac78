"""What the HTTP side asks of the training, and what it gets."""

from dataclasses import dataclass, field

from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.service.book import Asked, JudgedGroup
from cooper_rl.service.commit_policy import CommitPolicy


@dataclass(frozen=True)
class ScoreAsk:
    """One request to score. `policy` says when to train, for requests that count no steps."""

    groups: list[Asked]
    step: int | None = None
    train: bool = True
    run: str | None = None
    policy: CommitPolicy | None = None

    @property
    def rows(self) -> int:
        """Answers in it."""
        return sum(len(one.group.answers) for one in self.groups)

    @property
    def names(self) -> set[str]:
        """Groups that it enters into the step."""
        return {one.group.id for one in self.groups} if self.train else set()


@dataclass(frozen=True)
class ScoreReply:
    """One entry a group of the request; metrics are of the groups that were new."""

    step: int | None
    version: int
    groups: list[JudgedGroup]
    metrics: Metrics


@dataclass(frozen=True)
class StepView:
    """What became of a step: `open`, `updating`, `done` or `failed`."""

    step: int
    state: str
    version: int
    metrics: Metrics = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    error: str | None = None
