"""The teacher's answers above the policy's: a reward model that tells the two apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_base.data.problem import location
from cooper_base.data.text import has_content, normalise
from cooper_base.errors import InputError
from cooper_rl.reward.pairs.base import (
    PAIRS,
    MadePairs,
    PairGroup,
    PairInputs,
    PairSource,
    PairSourceConfig,
    valid_rate,
)

if TYPE_CHECKING:
    from cooper_base.data.problem import Problem
    from cooper_rl.reward.context import StepContext


@PAIRS.register
class TeacherPairs(PairSourceConfig):
    """Pairs of the problem's solution, which a teacher wrote, and every completion of the policy, right or wrong.

    No verdict and no reference is needed. The reward model becomes the discriminator of Generative Adversarial
    Distillation (GAD, Ye et al. 2025, arXiv 2511.10643): it learns to tell the teacher's answers from the policy's,
    which are paid for looking like the teacher's. `kind: gad` has the other settings that go with it."""

    writes_wrong_answers: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    kind: Literal["teacher"] = "teacher"

    def build(self, inputs: PairInputs) -> TeacherSource:
        return TeacherSource(self.kind, inputs.config.pairs_per_problem)

    def check_problems(self, problems: Sequence[Problem]) -> None:
        """Raises InputError for a problem without a teacher's answer."""
        for problem in problems:
            _check_answered(problem, location(problem), self.kind)


class TeacherSource(PairSource):
    """Makes up to `count` pairs of each group. A completion that was drawn several times counts so often.

    `kind` names the source in messages and pairs.
    """

    def __init__(self, kind: str, count: int) -> None:
        self._kind, self._count = kind, count

    def start(self, groups: Sequence[PairGroup], context: StepContext) -> None:
        """Raises InputError for a group whose problem has no teacher's answer."""
        for group in groups:
            _check_answered(group.problem, f"group {group.id}", self._kind)

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        pairs = []
        for group in groups:
            teachers = normalise(group.problem.solution or "")
            drawn = Counter(text for text in group.texts if text != teachers)
            texts = group.random("pairs").sample([*drawn], min(self._count, len(drawn)))
            made = [group.pair(teachers, text, self._kind, "reference_solution") for text in texts]
            pairs += [replace(pair, weight=float(drawn[pair.negative])) for pair in made]
        return MadePairs(pairs, valid_rate(self._kind, pairs, groups, self._count))


def _check_answered(problem: Problem, where: str, kind: str) -> None:
    """Raises InputError for a problem whose solution says nothing."""
    if not has_content(normalise(problem.solution or "")):
        raise InputError(
            f"{where}: has no solution, and the source of pairs `{kind}` needs one; name its field "
            "(problems.solution), or leave the row out"
        )
