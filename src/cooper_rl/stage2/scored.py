"""A step's scored answers: what scoring returns, the step under way, what its update returns, and metrics of health.

Importing this module does not import torch, because the reward's clients use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self

from cooper_rl.data.problem import Problem
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import Scores, metrics_of_calls, reward_metrics
from cooper_rl.rollouts import Answer, AnswerGroup, Ragged
from cooper_rl.rules.rule import Verdict
from cooper_rl.stage2.pairs import Pair
from cooper_rl.stage2.signs import signs_without_verdict

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rewards.input import RewardModelInput
    from cooper_rl.stage2.stage2 import Stage2


@dataclass(frozen=True)
class Scored:
    """The result of a `score` call, in this process or by the service: one list per group, one entry per answer.

    `rewards` are the final rewards, after shaping. `logits` come from the reward model that learns, else from the first
    one used in a reward; they are None if there is no reward model. `version` is the version of the model that scored.
    `step` is the step that the groups belong to, None if they are not trained on. The service sends NaN for infinity.
    """

    rewards: list[list[float]]
    logits: list[list[float]] | None
    verdicts: list[list[Verdict]]
    version: int
    metrics: Metrics
    step: int | None = None
    breakdown: tuple[StepContext, Scores] | None = field(default=None, repr=False, compare=False)
    """`context` and `scores`; the service does not send them."""

    @classmethod
    def of(cls, context: StepContext, scores: Scores, version: int, step: int | None = None) -> Self:
        """The answers of `context` with their rewards and metrics."""
        logits = context.logits(context.model_names[0]).rows() if context.model_names else None
        metrics = answer_metrics(context, scores)
        return cls(scores.rewards.rows(), logits, context.verdicts, version, metrics, step, (context, scores))

    @property
    def context(self) -> StepContext:
        """Verdicts, scores and gold labels of the answers. Raises InputError for answers that the service scored."""
        return self._whole_breakdown[0]

    @property
    def scores(self) -> Scores:
        """The same rewards with all their parts. Raises InputError for answers that the service scored."""
        return self._whole_breakdown[1]

    def by_group(self, models: Sequence[str] = (), partial: Collection[str] = ()) -> list[ScoredGroup]:
        """Each group with its own results, and with the logits of these models. Groups in `partial` may grow."""
        logits = {name: self.context.logits(name).rows() for name in models}
        rows = zip(self.context.groups, self.verdicts, self.rewards, strict=True)
        return [
            ScoredGroup(group, group.id in partial, verdicts, rewards, {name: logits[name][p] for name in logits})
            for p, (group, verdicts, rewards) in enumerate(rows)
        ]

    @property
    def _whole_breakdown(self) -> tuple[StepContext, Scores]:
        if self.breakdown is None:
            raise InputError("the service sends rewards, logits and verdicts only; score in this process for the rest")
        return self.breakdown


@dataclass(frozen=True)
class Updated:
    """The result of an update: the step's pairs, with their logits before and after it.

    The service also has steps whose `state` is `open`, `updating` or `failed`, the last with an `error`.
    """

    step: int
    version: int
    pairs: list[Pair] = field(default_factory=list)
    metrics: Metrics = field(default_factory=dict)
    state: Literal["open", "updating", "done", "failed"] = "done"
    error: str | None = None


@dataclass(frozen=True)
class ScoredGroup:
    """A group with one verdict, reward and logit per answer; logits are by the model's name."""

    group: AnswerGroup
    partial: bool
    """Whether further answers may come."""
    verdicts: list[Verdict]
    rewards: list[float]
    logits: dict[str, list[float]]

    def picked(self, places: Sequence[int]) -> Self:
        """The answers at these places, in this order."""
        return replace(
            self,
            group=replace(self.group, answers=[self.group.answers[i] for i in places]),
            verdicts=[self.verdicts[i] for i in places],
            rewards=[self.rewards[i] for i in places],
            logits={name: [row[i] for i in places] for name, row in self.logits.items()},
        )

    def extended(self, other: ScoredGroup) -> Self:
        return replace(
            self,
            group=replace(self.group, answers=[*self.group.answers, *other.group.answers]),
            verdicts=self.verdicts + other.verdicts,
            rewards=self.rewards + other.rewards,
            logits={name: row + other.logits[name] for name, row in self.logits.items()},
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

    def __init__(self, group: str, step: int) -> None:
        super().__init__(
            f"group {group}: step {step} has already scored a group with this id but other content; "
            "give every group of a step its own id"
        )
        self.group = group


@dataclass
class OpenStep:
    """The step under way: every answer scored in it, once.

    A partial group is in no call until it is added again as a whole.
    """

    number: int
    groups: dict[str, ScoredGroup] = field(default_factory=dict)
    """Every group by its id."""
    calls: list[Scored] = field(default_factory=list)
    """The same answers, as they were scored together."""
    stage2: list[Stage2] = field(default_factory=list)
    journaled: bool = True
    """Whether the caller has written down all groups."""
    rows: int = 0
    """Answers in all groups."""
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def unseen(self, groups: Sequence[AnswerGroup], partial: Collection[str] = ()) -> list[AnswerGroup]:
        """The groups, and of those with an id in `partial` the answers, that are new in this step.

        Raises OtherContentError for a group that contradicts what is known.
        """
        new: dict[str, AnswerGroup] = {}
        for group in groups:
            found = self.groups.get(group.id)
            before = found.group if found is not None else new.get(group.id)
            if before is None:
                new[group.id] = group
                continue
            more = group.id in partial
            known = {answer.id: answer for answer in before.answers}
            same = before.problem == group.problem and (found is None or found.partial == more)
            if more:
                same = same and all(known.get(answer.id, answer) == answer for answer in group.answers)
                if left := [answer for answer in group.answers if answer.id not in known]:
                    new[group.id] = replace(group, answers=left)
            else:
                same = same and list(before.answers) == list(group.answers)
            if not same:
                raise OtherContentError(group.id, self.number)
        return list(new.values())

    def add_group(self, scored: ScoredGroup) -> None:
        """Add a group or more answers of a partial group, or replace a partial group by the whole."""
        if (known := self.groups.get(scored.group.id)) is not None:
            scored = known.extended(scored) if scored.partial else scored
            self.rows -= len(known.rewards)
        self.groups[scored.group.id] = scored
        self.rows += len(scored.rewards)

    def add_call(self, scored: Scored) -> None:
        """Add whole groups that were scored together."""
        self._places |= {group.id: (len(self.calls), p) for p, group in enumerate(scored.context.groups)}
        self.calls.append(scored)

    def found(self, group: AnswerGroup) -> ScoredGroup:
        """The results of a group that has been added, in the order of its answers."""
        known = self.groups[group.id]
        if not known.partial:
            return known
        places = {answer.id: i for i, answer in enumerate(known.group.answers)}
        return known.picked([places[answer.id] for answer in group.answers])

    def scored(self, groups: Sequence[AnswerGroup]) -> Scored:
        """The results of these groups, all of which have been added in calls."""
        places = [self._places[group.id] for group in groups]
        for call, one in enumerate(self.calls):
            if places == [(call, p) for p in range(len(one.context.groups))]:
                return one
        picks = [(self.calls[call], p) for call, p in places]
        context = type(picks[0][0].context).joined([(one.context, p) for one, p in picks])
        answers = Counter[int]()
        for call, p in places:
            answers[call] += self.calls[call].context.sizes[p]
        metrics = metrics_of_calls([(self.calls[call].scores, count) for call, count in answers.items()])

        def joined(name: str | None) -> Ragged:
            columns = [one.scores.rewards if name is None else one.scores.parts[name] for one, _ in picks]
            return Ragged.of([column.groups()[p] for column, (_, p) in zip(columns, picks, strict=True)])

        names = [name for name in picks[0][0].scores.parts if all(name in one.scores.parts for one, _ in picks)]
        scores = Scores(joined(None), {name: joined(name) for name in names}, metrics)
        return Scored.of(context, scores, picks[0][0].version, self.number)

    @property
    def answered(self) -> list[AnswerGroup]:
        """The groups of all calls, in the order in which they were added."""
        return [group for call in self.calls for group in call.context.groups]


PROBES = 64


def answer_metrics(context: StepContext, scores: Scores) -> Metrics:
    """All metrics of these answers and of what they were paid."""
    metrics = reward_metrics(scores) | scores.metrics | step_health(context, scores)
    return metrics | signs_without_verdict(context)


def step_health(context: StepContext, scores: Scores) -> Metrics:
    """Metrics of the rule's verdicts, of every reward model in the parts and, if there are gold labels, of gold.

    Metrics of the first reward model begin with `reward_model/`, those of any other with `reward_model_<name>/`. If the
    rule is silent on some answers, means are also given over what it judges (`_heard`) and the rest (`_silent`).
    """
    metrics, gold = verdict_metrics(context.verdicts) | _by_rule(context.rule_names, context.verdicts), context.gold
    means = {"reward/mean": scores.parts.get("unshaped", scores.rewards)}
    for name, part in scores.parts.items():
        if name == "reward_model" or name.startswith("reward_model_"):
            means[f"{name}/mean"] = part
            metrics |= {f"{name}/mean": part.flat.mean().item(), f"{name}/std": part.flat.std(correction=0).item()}
            metrics |= {f"{name}/{key}": value for key, value in _agreement(part, context.verdicts).items()}
            if gold is not None:
                metrics[f"gold/{name}_accuracy"] = ((part.flat > 0.5) == gold.flat).float().mean().item()
    if gold is not None:
        means["gold/accuracy"] = gold
        metrics["gold/accuracy"] = gold.flat.float().mean().item()
    silent = [verdict == "silent" for row in context.verdicts for verdict in row]
    for where in ("silent", "heard") if any(silent) else ():
        for name, part in means.items():
            values = [
                value
                for value, is_silent in zip(part.flat.tolist(), silent, strict=True)
                if is_silent == (where == "silent") and isfinite(value)
            ]
            metrics |= {f"{name}_{where}": sum(values) / len(values)} if values else {}
    return metrics


def _by_rule(rules: Sequence[str], verdicts: Sequence[Sequence[str]]) -> Metrics:
    """`rule/<name>_accuracy`, `_unparsed` and `_share` of each rule, if the groups of a step use more than one.

    `rules[p]` is the rule of group p. A `_share` is relative to all completions of the step.
    """
    total, metrics = sum(map(len, verdicts)), {}
    for name in sorted(set(rules)) if len(set(rules)) > 1 else ():
        flat = [verdict for rule, row in zip(rules, verdicts, strict=True) if rule == name for verdict in row]
        if heard := len(flat) - flat.count("silent"):
            metrics[f"rule/{name}_accuracy"] = flat.count("correct") / heard
            metrics[f"rule/{name}_unparsed"] = flat.count("unparsed") / heard
        metrics[f"rule/{name}_share"] = len(flat) / total
    return metrics


def verdict_metrics(verdicts: Sequence[Sequence[str]]) -> Metrics:
    """The share of each verdict among the answers that the rule judges, and `rule/heard`, the share of these."""
    flat = [verdict for row in verdicts for verdict in row]
    heard = [verdict for verdict in flat if verdict != "silent"]
    names = {"correct": "rule/accuracy", "wrong": "rule/wrong", "unparsed": "rule/unparsed", "timeout": "rule/timeout"}
    metrics = {name: heard.count(verdict) / len(heard) for verdict, name in names.items()} if heard else {}
    return metrics | ({"rule/heard": len(heard) / len(flat)} if len(heard) < len(flat) else {})


def _agreement(scores: Ragged, verdicts: Sequence[Sequence[str]]) -> Metrics:
    """How the reward model's yes (a score above 1/2) agrees with the rule's verdicts `correct` and `wrong`.

    `false_accept_rate` is the share of yes among rule-wrong completions, which is what a policy exploits when it hacks
    the reward. `true_accept_rate` is the share of yes among rule-correct completions.
    """
    said = list(zip(scores.flat.tolist(), [verdict for row in verdicts for verdict in row], strict=True))
    right, wrong = ([score > 0.5 for score, verdict in said if verdict == one] for one in ("correct", "wrong"))
    found = {
        "rule_agreement": [*right, *(not yes for yes in wrong)],
        "false_accept_rate": wrong,
        "true_accept_rate": right,
    }
    return {name: sum(rows) / len(rows) for name, rows in found.items() if rows}


@dataclass
class ProbeSet:
    """Completions of the first step, scored again at every step. Only the reward model can change their scores."""

    texts: list[tuple[str, str, str]] = field(default_factory=list)
    """(question, reference answer, completion)."""
    first_scores: list[float] = field(default_factory=list)

    def measure(self, learner: RewardModelLearner, encoder: RewardModelInput, groups: Sequence[AnswerGroup]) -> Metrics:
        """The mean absolute change (in [0, 1]) and the mean signed change of the scores since the first step."""
        if not self.texts:
            ordered = sorted(groups, key=lambda group: (group.problem.id, group.id))  # not by arrival
            rows = ((group.problem, answer) for group in ordered for answer in group.answers[:2])
            self.texts = [(problem.question, problem.answer, answer.transcript) for problem, answer in rows][:PROBES]
        if not self.texts:
            return {}
        scores = learner.score(encoder.encode_all(self.texts)).double().sigmoid()
        self.first_scores = self.first_scores or scores.tolist()
        change = scores - scores.new_tensor(self.first_scores)
        drift, shift = change.abs().mean().item(), change.mean().item()
        return {"reward_model/probe_drift": drift, "reward_model/probe_shift": shift}

    def state(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def restore(self, state: dict[str, Any]) -> None:
        self.texts = [(question, answer, text) for question, answer, text in state["texts"]]
        self.first_scores = state["first_scores"]
