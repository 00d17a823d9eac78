"""Reference logits: what a reward model gives to answers that a group's answers are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_base.data.labelled import text_field
from cooper_base.data.readers import read_file
from cooper_rl import Config, InputError

if TYPE_CHECKING:
    from cooper_rl import Problem, Ragged, StepContext

FIELDS = ("question", "completion")
DECAY = 0.9
"""Decay per step of the running mean behind the source `accepted`."""


class CollectedAnswers(Config):
    """References from a file of completions."""

    file: str
    """A table with the fields `question` and `completion`, such as `cooper verifyrm collect` writes with the start
    policy as its only model. Several rows per question are several references."""
    most: int = Field(default=10, ge=1)
    """Most references of a problem; each is one more row per group to score."""

    def read(self) -> dict[str, list[str]]:
        """The completions of each question. Raises InputError for a missing file or a row without these fields."""
        texts: dict[str, list[str]] = {}
        for row in read_file(Path(self.file)):
            missing = [name for name in FIELDS if name not in row.fields]
            if missing:
                raise InputError(f"{row.location}: no field {missing[0]!r}; each row needs {' and '.join(FIELDS)}")
            texts_of_question = texts.setdefault(text_field(row, "question"), [])
            if len(texts_of_question) < self.most:
                texts_of_question.append(text_field(row, "completion"))
        return texts

    def check(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if the file has no completion of a problem."""
        texts_by_question = self.read()
        without = [problem.id for problem in problems if problem.question.strip() not in texts_by_question]
        if without:
            raise InputError(
                f"{self.file}: holds no completion for {len(without)} of {len(problems)} problems, the first is "
                f"{without[0]}; collect completions for all of the run's problems, or use other references"
            )


ReferenceSource = Literal["solution", "accepted", "group"] | float | CollectedAnswers
"""Where reference logits come from. A number is itself the reference logit; `{file: …}` are collected answers."""


class References:
    """The reference logits of each group, at least one. They come from the reward model as it is in this step.

    - `solution`: the logit of the data set's solution, one more row per group to score.
    - `accepted`: the mean logit of the group's answers that the rule accepts. A group without any gets the running
      mean of finished steps; before there is one, the mean of all such groups of this call; failing that, the mean
      logit of the group itself.
    - `group`: the logits of all answers of the group.
    - a number: this logit.
    - collected answers: the logits of these answers to the problem, `most` more rows per group to score.

    Raises InputError if the file of collected answers cannot be read.
    """

    def __init__(self, source: ReferenceSource) -> None:
        self._source = source
        self._collected = source.read() if isinstance(source, CollectedAnswers) else {}
        self._accepted: float | None = None
        """Running mean of the groups' accepted means; None until a step has an accepted answer."""

    def logits(self, context: StepContext) -> Ragged:
        """One group of reference logits for each group of the context. Raises InputError if a solution is missing."""
        if self._source == "solution":
            return solution_logits(context)
        logits = context.logits
        if self._source == "group":
            return logits
        if isinstance(self._source, CollectedAnswers):
            return context.logits_of(f"collected {self._source.file}", self._answers(context))
        if self._source != "accepted":
            return _one_each(logits, [float(self._source)] * len(logits.sizes))
        means = _accepted_means(context)
        usual = self._accepted if self._accepted is not None else _mean([mean for mean in means if mean is not None])
        of_all_answers = logits.mean().tolist()
        absent = [usual if usual is not None else mean for mean in of_all_answers]
        return _one_each(logits, [b if a is None else a for a, b in zip(means, absent, strict=True)])

    def _answers(self, context: StepContext) -> list[list[str]]:
        """The collected answers to each group's problem."""
        for group in context.groups:
            if group.problem.question.strip() not in self._collected:
                raise InputError(f"group {group.id}: no collected answer to problem {group.problem.id}; see references")
        return [self._collected[group.problem.question.strip()] for group in context.groups]

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Move the running mean by one step, however many calls scored that step."""
        if self._source != "accepted":
            return
        means = [mean for context in contexts for mean in _accepted_means(context) if mean is not None]
        if (now := _mean(means)) is not None:
            self._accepted = now if self._accepted is None else DECAY * self._accepted + (1 - DECAY) * now

    def state(self) -> float | None:
        """The running mean."""
        return self._accepted

    def restore(self, state: float | None) -> None:
        self._accepted = state


def check_solutions(kind: str, setting: str, instead: str, problems: Sequence[Problem]) -> None:
    """Raises InputError if a problem has no solution, with which `setting: solution` of a part compares."""
    without = [problem.id for problem in problems if problem.solution is None]
    if without:
        raise InputError(
            f"{kind} with {setting}: solution needs a solution for every problem, but {len(without)} of "
            f"{len(problems)} problems have none, the first is {without[0]}; name the field with problems.solution, "
            f"leave these problems out, or use {setting}: {instead}"
        )


def solution_logits(context: StepContext) -> Ragged:
    """The reward model's logit of each problem's reference solution: one number per group.

    Raises InputError naming the group if its problem has no solution.
    """
    for group in context.groups:
        if group.problem.solution is None:
            raise InputError(
                f"group {group.id}: the shaping compares with the solution of problem "
                f"{group.problem.id}, which has none; set `solution`, or use references: accepted"
            )
    return context.logits_of("solution", [[group.problem.solution or ""] for group in context.groups])


def _accepted_means(context: StepContext) -> list[float | None]:
    """The mean logit of each group's accepted answers; None where there is none. Non-finite logits stay out."""
    means = []
    for logits, correct in zip(context.logits.rows(), context.correct.rows(), strict=True):
        pairs = zip(logits, correct, strict=True)
        means.append(_mean([logit for logit, right in pairs if right == 1 and math.isfinite(logit)]))
    return means


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None  # fsum: the same sum in any order


def _one_each(logits: Ragged, values: Sequence[float]) -> Ragged:
    return type(logits)(logits.flat.new_tensor(values), (1,) * len(values))
