"""What serves as a right answer in a pair: completions that the rule accepts, and the data set's solutions."""

from collections.abc import Sequence
from random import Random

from cooper_base.data.text import has_content, normalise
from cooper_rl.reward.pairs.base import Judged, PairGroup
from cooper_verify.rules.rule import Rule


def choose_positives(judged: Judged, count: int, rng: Random) -> list[str]:
    """Up to `count` different rule-accepted completions of a group, drawn at random.

    A completion that was cut at the length limit is never a positive, even if the rule found the answer in it.
    Texts are normalised before they are compared and kept in order of appearance, so equal seeds give equal choices.
    """
    candidates = judged.different("correct", stopped=True)
    return rng.sample(candidates, min(count, len(candidates)))


def take_solutions(groups: Sequence[PairGroup], rule: Rule) -> None:
    """Use reference solutions as positives, if the rule accepts them or is silent on the problem."""
    texts = [(group, normalise(text)) for group in groups if (text := group.problem.solution) and has_content(text)]
    verdicts = rule.verify_problems([(group.problem, text) for group, text in texts])
    for (group, text), verdict in zip(texts, verdicts, strict=True):
        if verdict in ("correct", "silent"):
            group.positives, group.origin = [text], "reference_solution"
