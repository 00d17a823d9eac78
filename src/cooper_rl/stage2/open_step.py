"""The step under way and what scoring and updating return."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from cooper_rl.engines.base import Metrics
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.context import StepContext
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts import AnswerGroup, Ragged
from cooper_rl.stage2.pairs import Pair
from cooper_rl.stage2.stage2 import Stage2


@dataclass(frozen=True)
class Scored:
    """The result of `CooperReward.score`: one list per group, one entry per answer.

    `rewards` are the final rewards, after shaping. `logits` come from the reward model that learns, else from the first
    one used in a reward; they are None if there is no reward model. `version` is the version of the model that scored.
    """

    rewards: list[list[float]]
    logits: list[list[float]] | None
    verdicts: list[list[Verdict]]
    version: int
    metrics: Metrics
    scores: Scores = field(repr=False, compare=False)
    """The same rewards with all their parts."""
    context: StepContext = field(repr=False, compare=False)
    """Verdicts, scores and gold labels of the answers."""


@dataclass(frozen=True)
class Updated:
    """The result of `CooperReward.update`: the step's pairs, with their logits before and after the update."""

    step: int
    version: int
    pairs: list[Pair]
    metrics: Metrics


@dataclass(frozen=True)
class Evaluated:
    """Verdicts, scores and rewards of some groups."""

    context: StepContext
    scores: Scores


@dataclass
class OpenStep:
    """The groups of one step, stored call by call."""

    number: int
    calls: list[Evaluated] = field(default_factory=list)
    stage2: list[Stage2] = field(default_factory=list)
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def unseen(self, groups: Sequence[AnswerGroup]) -> list[AnswerGroup]:
        """The groups that are new in this step. Raises InputError if an id comes back with other content."""
        new: dict[str, AnswerGroup] = {}
        for group in groups:
            before = self._group(group.id) or new.get(group.id)
            if before is None:
                new[group.id] = group
            elif (before.problem, list(before.answers)) != (group.problem, list(group.answers)):
                raise InputError(
                    f"group {group.id}: step {self.number} has already scored a group with this id but other content; "
                    "give every group of a step its own id"
                )
        return list(new.values())

    def add(self, evaluated: Evaluated) -> None:
        """Store the groups of a call."""
        call = len(self.calls)
        self.calls.append(evaluated)
        self._places |= {group.id: (call, p) for p, group in enumerate(evaluated.context.groups)}

    def evaluated(self, groups: Sequence[AnswerGroup]) -> Evaluated:
        """The stored results for these groups, all of which have been added."""
        places = [self._places[group.id] for group in groups]
        for call, found in enumerate(self.calls):
            if places == [(call, p) for p in range(len(found.context.groups))]:
                return found
        picks = [(self.calls[call], p) for call, p in places]
        context = StepContext.joined([(one.context, p) for one, p in picks])
        metrics: Metrics = {}
        for call in dict.fromkeys(call for call, _ in places):
            metrics |= self.calls[call].scores.metrics

        def joined(name: str | None) -> Ragged:
            columns = [one.scores.rewards if name is None else one.scores.parts[name] for one, _ in picks]
            return Ragged.of([column.groups()[p] for column, (_, p) in zip(columns, picks, strict=True)])

        names = [name for name in picks[0][0].scores.parts if all(name in one.scores.parts for one, _ in picks)]
        return Evaluated(context, Scores(joined(None), {name: joined(name) for name in names}, metrics))

    def paid_again(self, pay: Callable[[StepContext], Evaluated]) -> Self:
        """The same step with every answer paid again by the models as they are now. Verdicts and gold labels stay."""
        return replace(self, calls=[pay(call.context.afresh()) for call in self.calls])

    def check_ids(self, ids: Sequence[str]) -> None:
        """Raises InputError if no group of the step has one of these ids."""
        unknown = [name for name in ids if name not in self._places]
        if unknown:
            raise InputError(f"step {self.number}: keep names groups that were not scored: {', '.join(unknown[:5])}")

    @property
    def groups(self) -> list[AnswerGroup]:
        """All groups, in the order in which they were added."""
        return [group for call in self.calls for group in call.context.groups]

    def _group(self, name: str) -> AnswerGroup | None:
        if name not in self._places:
            return None
        call, place = self._places[name]
        return self.calls[call].context.groups[place]
