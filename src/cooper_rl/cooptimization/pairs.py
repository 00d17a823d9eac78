"""Pairs, the choice of their positives, and the weights of pairs in an update."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Literal

from cooper_rl.cooptimization.config import NegativeOrigin, PositiveOrigin, TieOrigin, Weighting
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content, normalise
from cooper_rl.rollouts import AnswerGroup


@dataclass(frozen=True)
class Pair:
    """A right and a wrong completion of one problem, both normalised. Logits are the reward model's, if known.

    If the label is `tie`, the two completions should score the same, and only the names of the fields call one of them
    positive. The negative is read with the reference `negative_answer` if that is not None, else with `answer`.
    """

    problem_id: str
    question: str
    answer: str
    positive: str
    negative: str
    positive_origin: PositiveOrigin
    negative_origin: NegativeOrigin | TieOrigin
    positive_logit_before: float | None = None
    negative_logit_before: float | None = None
    positive_logit_after: float | None = None
    negative_logit_after: float | None = None
    label: Literal["better", "tie"] = "better"
    negative_answer: str | None = None

    @property
    def answer_of_negative(self) -> str:
        """The reference answer with which the negative is read."""
        return self.answer if self.negative_answer is None else self.negative_answer


@dataclass(frozen=True)
class Solved:
    """A problem with at least one positive. All its positives have the same origin."""

    problem: Problem
    positives: list[str]
    origin: PositiveOrigin
    logits: dict[str, float]
    """The reward model's logit of each of the group's normalised completions, before any update of the step."""

    def pair(self, positive: str, negative: str, negative_origin: NegativeOrigin) -> Pair:
        """A pair of this problem, with its logits before the update where they are known."""
        return Pair(
            self.problem.id,
            self.problem.question,
            self.problem.answer,
            positive,
            negative,
            self.origin,
            negative_origin,
            positive_logit_before=self.logits.get(positive),
            negative_logit_before=self.logits.get(negative),
        )


def choose_positives(group: AnswerGroup, verdicts: Sequence[str], count: int, rng: Random) -> list[str]:
    """Up to `count` different rule-accepted completions of a group, drawn at random.

    A completion that was cut at the length limit is never a positive, even if the rule found the answer in it.
    Texts are normalised before they are compared and kept in order of appearance, so equal seeds give equal choices.
    """
    accepted = [
        normalise(completion.text)
        for completion, verdict in zip(group.answers, verdicts, strict=True)
        if verdict == "correct" and completion.stopped
    ]
    candidates = [text for text in dict.fromkeys(accepted) if has_content(text)]
    return rng.sample(candidates, min(count, len(candidates)))


def pair_weights(pairs: Sequence[Pair], weighting: Weighting) -> list[float]:
    """Weights with mean 1 from the pairs' logits before their update; see `CooptimizationConfig.weighting`.

    A pair that has no such logits weighs as one whose logits are 0. All weights are 1 if the unscaled ones are all 0.
    """
    if weighting == "equal":
        return [1.0] * len(pairs)
    raw = []
    for pair in pairs:
        positive, negative = pair.positive_logit_before or 0.0, pair.negative_logit_before or 0.0
        wrong = negative - positive if weighting == "misranked" else negative
        raw.append(1 / (1 + exp(min(700.0, -wrong))))
    mean = sum(raw) / len(raw) if raw else 0.0
    return [value / mean for value in raw] if mean > 0 else [1.0] * len(raw)
