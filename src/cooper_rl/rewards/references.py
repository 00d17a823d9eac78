"""Reference logits: what a reward model gives to answers that a group's answers are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cooper_rl.errors import InputError
from cooper_rl.rewards.collected import Collected

if TYPE_CHECKING:
    from cooper_rl.data.problem import Problem
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import Ragged

DECAY = 0.9
"""Decay per step of the running mean behind the source `accepted`."""

ReferenceSource = Literal["solution", "accepted", "group"] | float | Collected
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

    def __init__(self, model: str, source: ReferenceSource) -> None:
        self._model = model
        self._source = source
        self._collected = source.read() if isinstance(source, Collected) else {}
        self._accepted: float | None = None
        """Running mean of the groups' accepted means; None until a step has an accepted answer."""

    def of(self, context: StepContext) -> Ragged:
        """One group of reference logits for each group of the context. Raises InputError if a solution is missing."""
        if self._source == "solution":
            return context.solution_logits(self._model)
        logits = context.logits(self._model)
        if self._source == "group":
            return logits
        if isinstance(self._source, Collected):
            return context.logits_of(self._model, f"collected {self._source.file}", self._answers(context))
        if self._source != "accepted":
            return _one_each(logits, [float(self._source)] * len(logits.sizes))
        means = _accepted_means(context, self._model)
        usual = self._accepted if self._accepted is not None else _mean([mean for mean in means if mean is not None])
        own = logits.mean().tolist()
        absent = [usual if usual is not None else mean for mean in own]
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
        found = [mean for one in contexts for mean in _accepted_means(one, self._model) if mean is not None]
        if (now := _mean(found)) is not None:
            self._accepted = now if self._accepted is None else DECAY * self._accepted + (1 - DECAY) * now

    def state(self) -> float | None:
        """The running mean."""
        return self._accepted

    def restore(self, state: float | None) -> None:
        """Restore what `state` returned."""
        self._accepted = state


def check_solutions(parts: Sequence[Any], problems: Sequence[Problem]) -> None:
    """Raises InputError if a reward or shaping compares with solutions or collected answers that a problem lacks."""
    for part in parts:
        if isinstance(source := getattr(part, "references", None), Collected):
            source.check(problems)
    needing = [part for part in parts if getattr(part, "needs_solutions", False)]
    without = [problem.id for problem in problems if problem.solution is None]
    if needing and without:
        setting = "references" if hasattr(needing[0], "references") else "opponents"
        instead = "references: accepted" if setting == "references" else "opponents: group"
        raise InputError(
            f"{needing[0].kind} with {setting}: solution needs a solution for every problem, but {len(without)} of "
            f"{len(problems)} problems have none, the first is {without[0]}; name the field with problems.solution, "
            f"leave these problems out, or use {instead}"
        )


def _accepted_means(context: StepContext, model: str) -> list[float | None]:
    """The mean logit of each group's accepted answers; None where there is none. Non-finite logits stay out."""
    means = []
    for logits, correct in zip(context.logits(model).rows(), context.correct.rows(), strict=True):
        pairs = zip(logits, correct, strict=True)
        means.append(_mean([logit for logit, right in pairs if right and math.isfinite(logit)]))
    return means


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None  # fsum: the same sum in any order


def _one_each(logits: Ragged, values: Sequence[float]) -> Ragged:
    return type(logits)(logits.flat.new_tensor(values), (1,) * len(values))
