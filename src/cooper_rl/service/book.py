"""Requests to the training, its replies, and the step under way: the results for every answer, each once."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.data.problem import Problem
from cooper_rl.engines.base import Metrics
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.service.config import CommitPolicy
from cooper_rl.service.refusal import Refusal


@dataclass(frozen=True)
class Asked:
    """A group in a request. A partial group may get more answers from other requests."""

    group: AnswerGroup
    partial: bool = False


@dataclass(frozen=True)
class ScoredGroup:
    """A group with one verdict, reward and logit per answer; logits are by the model's name."""

    group: AnswerGroup
    partial: bool
    verdicts: list[Verdict]
    rewards: list[float]
    logits: dict[str, list[float]]

    def pick(self, places: Sequence[int]) -> Self:
        """The answers at these places, in this order."""
        return replace(
            self,
            group=replace(self.group, answers=[self.group.answers[i] for i in places]),
            verdicts=[self.verdicts[i] for i in places],
            rewards=[self.rewards[i] for i in places],
            logits={name: [row[i] for i in places] for name, row in self.logits.items()},
        )

    def joined(self, other: "ScoredGroup") -> Self:
        """With the answers of `other` appended."""
        return replace(
            self,
            group=replace(self.group, answers=[*self.group.answers, *other.group.answers]),
            verdicts=self.verdicts + other.verdicts,
            rewards=self.rewards + other.rewards,
            logits={name: row + other.logits[name] for name, row in self.logits.items()},
        )

    def closed(self) -> Self:
        """With the answers of a partial group sorted by id, so that the order of arrival does not matter."""
        if not self.partial:
            return self
        answers = self.group.answers
        return self.pick(sorted(range(len(answers)), key=lambda i: answers[i].id or ""))

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """From what `record` returned."""
        group = record["group"]
        answers = [Answer(**answer) for answer in group["answers"]]
        return cls(**{**record, "group": AnswerGroup(group["id"], Problem(**group["problem"]), answers)})


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


@dataclass
class Book:
    """The groups of one step by id. `arrived` counts the answers received, including repeats."""

    step: int
    groups: dict[str, ScoredGroup] = field(default_factory=dict)
    arrived: int = 0
    rows: int = 0
    """Answers in all groups."""

    def unseen(self, asked: Asked) -> AnswerGroup | None:
        """The part of a group that has no results yet. Raises Refusal (409) if it contradicts the part that has."""
        known, group = self.groups.get(asked.group.id), asked.group
        if known is None:
            return group
        same = (known.partial, known.group.problem) == (asked.partial, group.problem)
        if not asked.partial:
            if not same or list(known.group.answers) != list(group.answers):
                raise self._contradiction(group.id)
            return None
        before = {answer.id: answer for answer in known.group.answers}
        if not same or any(before.get(answer.id, answer) != answer for answer in group.answers):
            raise self._contradiction(group.id)
        new = [answer for answer in group.answers if answer.id not in before]
        return replace(group, answers=new) if new else None

    def add(self, scored: ScoredGroup) -> None:
        """Add a group, or more answers of a partial group."""
        name = scored.group.id
        self.rows += len(scored.rewards)
        self.groups[name] = self.groups[name].joined(scored) if name in self.groups else scored

    def found(self, asked: Asked) -> ScoredGroup:
        """The results for a group that has been added, in the order of its answers."""
        known = self.groups[asked.group.id]
        if not asked.partial:
            return known
        places = {answer.id: i for i, answer in enumerate(known.group.answers)}
        return known.pick([places[answer.id] for answer in asked.group.answers])

    def digest(self, before: str, keep: Sequence[str] | None) -> str:
        """Identifies the training up to this step's commit; `before` identifies it up to the previous one."""
        groups = [self.groups[name].closed().record() for name in sorted(self.groups)]
        content = json.dumps([before, self.step, keep, groups], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def _contradiction(self, name: str) -> Refusal:
        return Refusal(
            409,
            f"group {name}: step {self.step} has scored other content under this id; give every group of a step an id "
            "of its own, or, if the trainer has gone back, restore a checkpoint first (POST /v1/restore)",
        )
