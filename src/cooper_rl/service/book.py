"""The step under way: what was found out about every answer that came, each once."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from cooper_rl.data.problem import Problem
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts.answers import Answer, AnswerGroup
from cooper_rl.service.refusal import Refusal


@dataclass(frozen=True)
class Asked:
    """A group as a request brings it. A partial group may get more answers from other requests."""

    group: AnswerGroup
    partial: bool = False


@dataclass(frozen=True)
class JudgedGroup:
    """A group with one entry an answer: verdicts, rewards, and logits by the model's name."""

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

    def joined(self, other: "JudgedGroup") -> Self:
        """With the answers of `other` behind its own."""
        return replace(
            self,
            group=replace(self.group, answers=[*self.group.answers, *other.group.answers]),
            verdicts=self.verdicts + other.verdicts,
            rewards=self.rewards + other.rewards,
            logits={name: row + other.logits[name] for name, row in self.logits.items()},
        )

    def closed(self) -> Self:
        """With the answers of a partial group in the order of their ids, in whatever order they came."""
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


@dataclass
class Book:
    """The groups of one step by id. `arrived` counts the answers that came, repeats included."""

    step: int
    groups: dict[str, JudgedGroup] = field(default_factory=dict)
    arrived: int = 0
    rows: int = 0
    """Answers in all groups."""

    def unseen(self, asked: Asked) -> AnswerGroup | None:
        """What of a group has not been judged yet. Raises Refusal (409) where it contradicts what has."""
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

    def add(self, judged: JudgedGroup) -> None:
        """Enter a group, or more answers of a partial one."""
        name = judged.group.id
        self.rows += len(judged.rewards)
        self.groups[name] = self.groups[name].joined(judged) if name in self.groups else judged

    def found(self, asked: Asked) -> JudgedGroup:
        """What was found out about a group that has been added, answer for answer."""
        known = self.groups[asked.group.id]
        if not asked.partial:
            return known
        places = {answer.id: i for i, answer in enumerate(known.group.answers)}
        return known.pick([places[answer.id] for answer in asked.group.answers])

    def digest(self, before: str, keep: Sequence[str] | None) -> str:
        """Names the training so far: `before`, and what this step's commit adds to it."""
        groups = [self.groups[name].closed().record() for name in sorted(self.groups)]
        content = json.dumps([before, self.step, keep, groups], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def _contradiction(self, name: str) -> Refusal:
        return Refusal(
            409,
            f"group {name}: step {self.step} has scored other content under this id; give every group of a step an id "
            "of its own, or, where the trainer has gone back, restore a checkpoint first (POST /v1/restore)",
        )
