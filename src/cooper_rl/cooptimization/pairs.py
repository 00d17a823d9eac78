"""Pairs, and the choice of their positives."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from cooper_rl.cooptimization.config import NegativeOrigin, PositiveOrigin
from cooper_rl.data.text import has_content, normalise
from cooper_rl.rollouts.answers import AnswerGroup


@dataclass(frozen=True)
class Pair:
    """A right and a wrong completion of one problem, both normalised. Logits are the reward model's, if known."""

    problem_id: str
    question: str
    answer: str
    positive: str
    negative: str
    positive_origin: PositiveOrigin
    negative_origin: NegativeOrigin
    positive_logit_before: float | None = None
    negative_logit_before: float | None = None
    positive_logit_after: float | None = None
    negative_logit_after: float | None = None


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
