"""The step under way as other processes send it: in any order, in parts, and perhaps more than once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import torch

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_rl.engines.base import Metrics
from cooper_rl.records import Ragged
from cooper_rl.reward.base import Scores
from cooper_rl.reward.context import StepContext
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.scored import Scored, Updated, answer_metrics


@dataclass(frozen=True)
class ScoredGroup:
    """A group as the journal has it, with a verdict, a reward and a logit for each answer."""

    group: AnswerGroup
    partial: bool
    """Whether further answers may come."""
    verdicts: list[Verdict]
    rewards: list[float]
    logits: list[float] | None
    """None without a reward model."""

    @classmethod
    def all_of(cls, scored: Scored, partial: Collection[str]) -> list[Self]:
        """The groups of a call. Groups in `partial` may grow."""
        logits = [None] * len(scored.rewards) if scored.logits is None else scored.logits
        rows = zip(scored.context.groups, scored.verdicts, scored.rewards, logits, strict=True)
        return [
            cls(group, group.id in partial, verdicts, rewards, of_group) for group, verdicts, rewards, of_group in rows
        ]

    def picked(self, places: Sequence[int]) -> Self:
        """The answers at these places, in this order."""
        return replace(
            self,
            group=replace(self.group, answers=[self.group.answers[i] for i in places]),
            verdicts=[self.verdicts[i] for i in places],
            rewards=[self.rewards[i] for i in places],
            logits=None if self.logits is None else [self.logits[i] for i in places],
        )

    def extended(self, other: ScoredGroup) -> Self:
        """With the answers of `other` at the end."""
        return replace(
            self,
            group=replace(self.group, answers=[*self.group.answers, *other.group.answers]),
            verdicts=self.verdicts + other.verdicts,
            rewards=self.rewards + other.rewards,
            logits=None if self.logits is None else [*self.logits, *(other.logits or ())],
        )

    def in_order(self) -> Self:
        """With the answers of a partial group sorted by id, so that the order of arrival does not matter."""
        if not self.partial:
            return self
        answers = self.group.answers
        return self.picked(sorted(range(len(answers)), key=lambda i: answers[i].id or ""))

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """From what `record` returned."""
        group = record["group"]
        answers = [Answer(**answer) for answer in group["answers"]]
        return cls(**{**record, "group": AnswerGroup(group["id"], Problem(**group["problem"]), answers)})


class OtherContentError(InputError):
    """A group of a step comes back under the same id with other content."""


@dataclass
class OpenStep:
    """The step under way: every answer scored in it, once."""

    number: int
    groups: dict[str, ScoredGroup] = field(default_factory=dict)
    """Every group by its id."""
    calls: list[Scored] = field(default_factory=list)
    """The whole groups again, with the pairs that are being made of them. A partial group is in none of them."""
    rows: int = 0
    """Answers in all groups."""

    def unseen(self, groups: Sequence[AnswerGroup], partial: Collection[str] = ()) -> list[AnswerGroup]:
        """The groups, and of those with an id in `partial` the answers, that are new in this step.

        Raises OtherContentError for a group that contradicts what was scored under its id.
        """
        new: dict[str, AnswerGroup] = {}
        for group in groups:
            scored = self.groups.get(group.id)
            before = scored.group if scored is not None else new.get(group.id)
            if before is None:
                new[group.id] = group
                continue
            more = group.id in partial
            answers = {answer.id: answer for answer in before.answers}
            same = before.problem == group.problem and (scored is None or scored.partial == more)
            if more:
                same = same and all(answers.get(answer.id, answer) == answer for answer in group.answers)
                if left := [answer for answer in group.answers if answer.id not in answers]:
                    new[group.id] = replace(group, answers=left)
            else:
                same = same and list(before.answers) == list(group.answers)
            if not same:
                raise OtherContentError(f"group {group.id}: step {self.number} has scored other content under this id")
        return list(new.values())

    def add(self, scored: ScoredGroup) -> None:
        """Add a group or more answers of a partial group, or replace a partial group by the whole."""
        if (before := self.groups.get(scored.group.id)) is not None:
            scored = before.extended(scored) if scored.partial else scored
            self.rows -= len(before.rewards)
        self.groups[scored.group.id] = scored
        self.rows += len(scored.rewards)

    def results(self, group: AnswerGroup) -> ScoredGroup:
        """The results of a group that has been added, in the order of its answers."""
        scored = self.groups[group.id]
        if not scored.partial:
            return scored
        places = {answer.id: i for i, answer in enumerate(scored.group.answers)}
        return scored.picked([places[answer.id] for answer in group.answers])


class Ledger:
    """The step under way of a reward that serves other processes.

    Scoring only computes. What it returns enters the step with `admit`, once the caller has written it to a journal; a
    replay of the journal admits the same groups again. Only whole groups are learned from.
    """

    def __init__(self, reward: CooperReward) -> None:
        self.reward = reward
        self.open_step: OpenStep | None = None
        """The step under way, if there is one."""

    @property
    def groups(self) -> dict[str, ScoredGroup]:
        """The groups of the step under way by id."""
        return {} if self.open_step is None else self.open_step.groups

    def score(self, calls: Sequence[Sequence[AnswerGroup]]) -> list[Scored]:
        """What `CooperReward.score(groups, train=False)` returns for the groups of every call, computed in one batch.

        The answers of a call are weighted together, as there, so a batch is more than one long call. Logits may differ
        in the last bits from those of separate calls.
        """
        together = self.reward.context([group for groups in calls for group in groups])
        _ = together.verdicts, together.logits if together.has_model else None
        places = iter(range(len(together.groups)))
        contexts = [StepContext.joined([(together, next(places)) for _ in groups]) for groups in calls]
        return [self.reward.pay(context) for context in contexts]

    def admit(self, step: int, groups: Sequence[ScoredGroup]) -> None:
        """Add new groups to the step. The assistant starts to write for whole ones."""
        opened = self.open_step = self.open_step or OpenStep(step)
        if whole := [scored_group for scored_group in groups if not scored_group.partial]:
            context = self._recalled(whole)
            rewards = Scores(Ragged.of([scored_group.rewards for scored_group in whole], torch.float32))
            scored = Scored.of(context, rewards, self.reward.version, opened.number)
            opened.calls.append(self.reward.begin_pairs(scored))
        for scored_group in groups:
            opened.add(scored_group)

    def close_groups(self) -> None:
        """No more answers come: the partial groups of the step become whole."""
        if partial := [self.groups[name].in_order() for name in sorted(self.groups) if self.groups[name].partial]:
            assert self.open_step is not None
            self.admit(self.open_step.number, [replace(scored_group, partial=False) for scored_group in partial])

    def update(self, step: int, keep: Collection[str] | None = None) -> Updated:
        """End the step: see `CooperReward.update`. It may have no answers."""
        calls = [] if self.open_step is None else self.open_step.calls
        updated = self.reward.update(calls, step=step, keep=keep)
        self.open_step = None
        return updated

    def metrics(self) -> Metrics:
        """Metrics of all answers of the step under way, as the alarm reads them: of rewards, verdicts, the reward
        model's scores, and `rollout/cut_off_rate`. Empty if nothing was scored."""
        groups = [scored_group.in_order() for _, scored_group in sorted(self.groups.items())]
        if not groups:
            return {}
        context = self._recalled(groups)
        parts = context.model_parts if context.has_model else {}
        scores = Scores(Ragged.of([scored_group.rewards for scored_group in groups], torch.float32), parts)
        cut_off = [not answer.stopped for scored_group in groups for answer in scored_group.group.answers]
        return answer_metrics(context, scores) | {"rollout/cut_off_rate": sum(cut_off) / len(cut_off)}

    def _recalled(self, groups: Sequence[ScoredGroup]) -> StepContext:
        """These groups with what was computed for them before."""
        context = self.reward.context([scored_group.group for scored_group in groups])
        logits = [scored_group.logits or [] for scored_group in groups] if context.has_model else None
        context.recall([scored_group.verdicts for scored_group in groups], logits)
        return context
