"""Ties: pairs of completions that should score the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from cooper_rl import MadePairs, Pair, PairSource, PairSourceConfig
from cooper_rl.reward.pairs.base import choose_positives

if TYPE_CHECKING:
    from cooper_rl import PairGroup, PairInputs, Problem, Rule


class TiePairs(PairSourceConfig):
    """The settings that sources of ties share."""

    metric_names: ClassVar[tuple[str, ...]] = ("pairs/ties_<origin>",)
    weight: float = Field(default=1.0, gt=0)
    """Weight of the mean loss of these ties relative to the mean loss of the pairs that are no ties."""


class TwoRightPairs(TiePairs):
    """Ties of two different completions of a problem that the rule accepts and that ended by themselves.

    What tells them apart is style, and style must not count: the neutrals of Crome (Srivastava et al. 2025, arXiv
    2506.16507).
    """

    def build(self, inputs: PairInputs) -> TwoRightSource:
        return TwoRightSource(inputs.config.pairs_per_problem, self.weight)


class TwoRightSource(PairSource):
    """Makes up to `count` ties of each group."""

    def __init__(self, count: int, weight: float) -> None:
        self._count, self._weight = count, weight

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        pairs: list[Pair] = []
        for group in groups:
            if group.positives:
                accepted = choose_positives(group, 2 * self._count, group.random("partners"))
                couples = zip(accepted[::2], accepted[1::2], strict=False)
                pairs += [_tie(group.problem, *couple, "two_right", self._weight) for couple in couples]
        return MadePairs(pairs, {"pairs/ties_two_right": float(len(set(pairs)))})


class IrrelevantQuestionPairs(TiePairs):
    """Ties of a right and a wrong completion under the question of another problem (Crome, arXiv 2506.16507).

    Neither answers that question, so neither should score higher.
    """

    def build(self, inputs: PairInputs) -> IrrelevantQuestionSource:
        return IrrelevantQuestionSource(inputs.rule, inputs.config.pairs_per_problem, self.weight)


class IrrelevantQuestionSource(PairSource):
    """Makes ties of up to `count` wrong texts of each group with a positive.

    A pair is left out if the rule accepts one of the two under the other problem, and so is a problem without any
    other.
    """

    def __init__(self, rule: Rule, count: int, weight: float) -> None:
        self._rule, self._count, self._weight = rule, count, weight

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        solved = [group for group in groups if group.positives]
        candidates: list[tuple[Problem, str, str]] = []
        for group in solved:
            random, texts = group.random("partners"), group.different("wrong", stopped=False)
            wrong = random.sample(texts, min(self._count, len(texts)))
            others = [other.problem for other in solved if other.problem.question != group.problem.question]
            for positive, negative in zip(group.positives, wrong, strict=False):
                if others:
                    candidates.append((random.choice(others), positive, negative))
        texts = [(problem, text) for problem, *both in candidates for text in both]
        verdicts = list(self._rule.verify_problems(texts))
        pairs = [
            _tie(*candidate, "irrelevant_question", self._weight)
            for candidate, *both in zip(candidates, verdicts[::2], verdicts[1::2], strict=True)
            if "correct" not in both
        ]
        return MadePairs(pairs, {"pairs/ties_irrelevant_question": float(len(set(pairs)))})


def _tie(problem: Problem, first: str, second: str, origin: str, weight: float) -> Pair:
    ids = (problem.id, problem.question, problem.answer)
    return Pair(*ids, first, second, "rollout", origin, label="tie", weight=weight)
