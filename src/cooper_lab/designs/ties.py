"""Ties: pairs of completions that should score the same, and their loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from cooper_rl import Pair, PairLoss, RewardLossOutputs, choose_positives

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl import Contribution, Problem, Rule

    Numbers = Float[Tensor, " P"]

Made = Callable[["Rule"], list[Pair]]
"""The second half of making ties: first all random choices inside a group are made, then those between groups."""


class TieLoss(PairLoss):
    """Both completions of each pair should score the same."""

    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """sum_i w_i [ -log sigmoid(d_i) - log sigmoid(-d_i) ] / 2, with d_i the difference of the two logits.

        It is least, log 2, for equal logits (Crome, arXiv 2506.16507; its printed equation has the opposite sign).
        Metric: `gap`, the mean of |d_i|.
        """
        from torch.nn.functional import softplus  # noqa: PLC0415 - a configuration is read without torch

        gaps = positive_logits - negative_logits
        loss = (weights * (softplus(-gaps) + softplus(gaps)) / 2).sum()
        return RewardLossOutputs(loss, {"gap": gaps.detach().abs().sum()})


def two_right(solved: Sequence[Contribution], count: int) -> Made:
    """Up to `count` ties a problem of two different completions that the rule accepts and that ended by themselves.

    What tells them apart is style, and style must not count: the neutrals of Crome (Srivastava et al. 2025, arXiv
    2506.16507).
    """
    pairs: list[Pair] = []
    for one in solved:
        accepted = choose_positives(one.judged, 2 * count, one.partners)
        couples = zip(accepted[::2], accepted[1::2], strict=False)
        pairs += [_tie(one.problem, *couple, "two_right") for couple in couples]
    return lambda rule: pairs


def irrelevant_question(solved: Sequence[Contribution], count: int) -> Made:
    """For each problem and up to `count` of its wrong texts, the pair (positive, wrong text) under another problem's
    question.

    Neither answers that question, so neither should score higher. A pair is left out if the rule accepts one of the two
    under the other problem, and so is a problem without any other.
    """
    texts_of = [one.judged.different("wrong", stopped=False) for one in solved]
    wrong = [one.partners.sample(own, min(count, len(own))) for one, own in zip(solved, texts_of, strict=True)]

    def made(rule: Rule) -> list[Pair]:
        asked: list[tuple[Problem, str, str]] = []
        for one, own in zip(solved, wrong, strict=True):
            others = [other.problem for other in solved if other.problem.question != one.problem.question]
            for positive, negative in zip(one.positives, own, strict=False):
                if others:
                    asked.append((one.partners.choice(others), positive, negative))
        verdicts = list(rule.verify_problems([(problem, text) for problem, *texts in asked for text in texts]))
        return [
            _tie(*one, "irrelevant_question")
            for one, *both in zip(asked, verdicts[::2], verdicts[1::2], strict=True)
            if "correct" not in both
        ]

    return made


def _tie(problem: Problem, first: str, second: str, origin: Literal["two_right", "irrelevant_question"]) -> Pair:
    return Pair(problem.id, problem.question, problem.answer, first, second, "rollout", origin, label="tie")
