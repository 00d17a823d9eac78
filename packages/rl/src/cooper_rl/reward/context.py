"""Everything that is known about a step's answers, computed once and kept."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from cooper_base.config.user_functions import load_function
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_rl.engines.base import RewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.records import Ragged
from cooper_rl.reward.base import Reward, Scores
from cooper_verify.rules.rule import Rule

T = TypeVar("T")
Logits = dict[tuple[int, ...], float]
"""The logits of some inputs under the reward model as it is."""


def logits_of_inputs(
    learner: RewardModelLearner, inputs: Sequence[list[int]], known: Logits
) -> Float[Tensor, " inputs"]:
    """Logits of the inputs. Equal inputs are scored once, and those that are `known` not again; it keeps the new."""
    rows = [tuple(row) for row in inputs]
    new = [row for row in dict.fromkeys(rows) if row not in known]
    if new:
        known |= zip(new, learner.score([list(row) for row in new]).tolist(), strict=True)
    return torch.tensor([known[row] for row in rows])


@dataclass(frozen=True)
class RewardModel:
    """A reward model with its input format."""

    learner: RewardModelLearner
    encoder: RewardModelInput

    def logits(self, groups: Sequence[AnswerGroup], known: Logits | None = None) -> Ragged:
        """The logit of every answer under the current weights, of which some may be `known`: it keeps the new ones. The
        order of the groups does not matter.
        """
        order = sorted(range(len(groups)), key=lambda p: groups[p].id)  # batching can change last bits
        ordered = [groups[p] for p in order]
        asked = [
            (group.problem.question, group.problem.answer, answer.transcript)
            for group in ordered
            for answer in group.answers
        ]
        logits = logits_of_inputs(self.learner, self.encoder.encode_all(asked), {} if known is None else known)
        rows = logits.split([len(group.answers) for group in ordered])
        of_group = dict(zip(order, rows, strict=True))
        return Ragged.of([of_group[p] for p in range(len(groups))], torch.float32)


class StepContext:
    """The answers of a step with the rule's verdicts, the reward model's scores and the gold labels.

    Each value is computed on first use and then kept: nothing is verified or scored twice, and the recorded verdict is
    the one the reward was based on. `gold` is the path `package.module:function` of a function that knows whether a
    completion is truly right.
    """

    def __init__(
        self,
        groups: Sequence[AnswerGroup],
        rule: Rule,
        model: RewardModel | None = None,
        gold: str | None = None,
    ) -> None:
        self.groups = list(groups)
        self.sizes = tuple(len(group.answers) for group in groups)
        self.others_of_step: Sequence[Self] = ()
        """Answers of the same step that were scored in other calls, as far as they are known."""
        self.steps_before = 0
        """Steps of the run before this one."""
        self.planned_steps: int | None = None
        """Steps of the whole run, if that is known."""
        self.learns_from_solutions = False
        """Whether the reward model learns from the reference solutions of problems."""
        self.known_logits: Logits = {}
        """What the reward model has been asked, under these references and others."""
        self._rule = rule
        self._model = model
        self._gold = gold
        self._verdicts: list[list[Verdict]] | None = None
        self._columns: dict[str, Ragged] = {}
        self._found: dict[Any, Any] = {}
        self._scores: dict[Reward, Scores] = {}

    def ragged(self, flat: Any) -> Ragged:
        """One number per answer, group by group, from a flat sequence."""
        return Ragged(torch.as_tensor(flat), self.sizes)

    @property
    def verdicts(self) -> list[list[Verdict]]:
        """The verdict on every answer: its own if it brought one, else the rule's."""
        if self._verdicts is None:
            self._verdicts = self._rule.verify_groups(self.groups)
        return self._verdicts

    @property
    def rule_names(self) -> list[str]:
        """For each group, the name of the rule that checks its problem."""
        return [self._rule.rule_name(group.problem) for group in self.groups]

    @property
    def correct(self) -> Ragged:
        """1.0 where the verdict is `correct`, NaN (no opinion) where it is `silent`, else 0.0."""
        flat = [math.nan if verdict == "silent" else float(verdict == "correct") for verdict in self._flat_verdicts]
        return _kept(self._columns, "correct", lambda: self.ragged(flat))

    @property
    def silent(self) -> Ragged:
        """Where the rule is silent."""
        silent = [verdict == "silent" for verdict in self._flat_verdicts]
        return self.ragged(torch.tensor(silent, dtype=torch.bool))

    @property
    def passed_over(self) -> Ragged:
        """Where the rule is silent on an answer, though it judges another of its group."""
        silent = self.silent
        judges = silent.expand(silent.like(silent.flat.float()).amin() < 1)
        return silent.like(silent.flat & judges)

    @property
    def _flat_verdicts(self) -> list[Verdict]:
        return [verdict for row in self.verdicts for verdict in row]

    @property
    def has_model(self) -> bool:
        """Whether there is a reward model."""
        return self._model is not None

    @property
    def model_reads_reference(self) -> bool:
        """Whether there is a reward model, and the reference answer is part of its input."""
        return self._model is not None and self._model.encoder.reads_reference

    @property
    def logits(self) -> Ragged:
        """The reward model's logits. Raises InputError if there is none."""
        return _kept(self._columns, "logit", lambda: self.model.logits(self.groups, self.known_logits))

    @property
    def model(self) -> RewardModel:
        """The reward model. Raises InputError if there is none."""
        if self._model is None:
            raise InputError(
                "a reward or shaping reads the reward model, but none is loaded; set reward_model, and in the settings "
                "of a part of your own `reads_model: ClassVar[bool] = True`"
            )
        return self._model

    def logits_of(self, what: str, texts: Sequence[Sequence[str]], references: Sequence[str] | None = None) -> Ragged:
        """The reward model's logits of other answers, such as `what` says: one row of texts per group.

        `references` are reference answers in the place of the problems' own.
        """
        given = references or [group.problem.answer for group in self.groups]
        groups = [
            AnswerGroup(group.id, replace(group.problem, answer=answer), [Answer(text) for text in own])
            for group, own, answer in zip(self.groups, texts, given, strict=True)
        ]
        return _kept(self._columns, f"{what} logit", lambda: self.model.logits(groups, self.known_logits))

    @property
    def probabilities(self) -> Ragged:
        """sigmoid(logit) of the reward model."""
        return _kept(self._columns, "reward_model", lambda: self.ragged(self.logits.flat.sigmoid()))

    @property
    def model_parts(self) -> dict[str, Ragged]:
        """The parts `reward_model` and `logit`."""
        return {"reward_model": self.probabilities, "logit": self.logits}

    @property
    def computed(self) -> dict[str, Ragged]:
        """The parts that any reward may pass on, under the names of the record, as far as they are computed."""
        names = {"rule": "correct", "reward_model": "reward_model", "logit": "logit"}
        return {part: self._columns[column] for part, column in names.items() if column in self._columns}

    @property
    def gold(self) -> Ragged | None:
        """Whether each answer is truly right; None if the run has no gold function."""
        path = self._gold
        return None if path is None else _kept(self._columns, "gold", lambda: gold_labels(self.groups, path))

    @property
    def lengths(self) -> Ragged:
        """Number of tokens of each answer. Raises InputError naming the group if an answer has no `tokens`."""
        for group in self.groups:
            if any(answer.tokens is None for answer in group.answers):
                raise InputError(f"group {group.id}: the reward depends on lengths; give every Answer its `tokens`")
        tokens = [answer.tokens for group in self.groups for answer in group.answers]
        return _kept(self._columns, "lengths", lambda: self.ragged(tokens))

    def once(self, reward: Any, compute: Callable[[], T]) -> T:
        """A reward's result that needs no reward model, computed on first use. `afresh` keeps it, so a reward that
        costs money or time is asked once."""
        return _kept(self._found, reward, compute)

    def scores(self, reward: Reward) -> Scores:
        """What a reward gives to these answers, computed on first use. A shaping that reads a reward asks here."""
        return _kept(self._scores, reward, lambda: reward.score(self))

    def recall(self, verdicts: list[list[Verdict]], logits: Sequence[Sequence[float]] | None) -> None:
        """Take over earlier results: a row per group, and no logits if there is no reward model."""
        self._verdicts = verdicts
        if logits is not None:
            self._columns["logit"] = Ragged.of(logits, torch.float32)

    @classmethod
    def joined(cls, picks: Sequence[tuple[Self, int]]) -> Self:
        """A context made of groups from other contexts, with every value that all of those have already computed.

        A pick is a context and the index of one of its groups.
        """
        first = picks[0][0]
        joined = cls([context.groups[p] for context, p in picks], first._rule, first._model, first._gold)
        joined.learns_from_solutions = first.learns_from_solutions
        if all(context._verdicts is not None for context, _ in picks):
            joined._verdicts = [context.verdicts[p] for context, p in picks]
        for name in first._columns:
            if all(name in context._columns for context, _ in picks):
                joined._columns[name] = Ragged.picked([(context._columns[name], p) for context, p in picks])
        return joined

    def afresh(self) -> Self:
        """A context of the same answers with all that no reward model's weights change: verdicts, gold labels, what
        rewards have kept with `once`."""
        fresh = type(self)(self.groups, self._rule, self._model, self._gold)
        fresh._verdicts, fresh._found = self._verdicts, self._found
        fresh.learns_from_solutions = self.learns_from_solutions
        fresh.steps_before, fresh.planned_steps = self.steps_before, self.planned_steps
        fresh._columns = {
            name: column for name, column in self._columns.items() if name in ("correct", "gold", "lengths")
        }
        return fresh


def _kept(kept: dict[Any, T], key: Any, compute: Callable[[], T]) -> T:
    if key not in kept:
        kept[key] = compute()
    return kept[key]


def gold_labels(groups: Sequence[AnswerGroup], function: str) -> Ragged:
    """Whether each completion is truly right, by the function at `package.module:function`. Never for training.

    It is called with (problem, completion text). Raises InputError naming the problem if it returns anything but True
    or False.
    """
    is_right = load_function(function, ("problem", "completion_text"))

    def label(problem: Problem, text: str) -> bool:
        found = is_right(problem, text)
        if not isinstance(found, bool):
            raise InputError(f"{function}: returned {found!r} for problem {problem.id}; return True or False")
        return found

    return Ragged.of([[label(group.problem, answer.text) for answer in group.answers] for group in groups], torch.bool)
