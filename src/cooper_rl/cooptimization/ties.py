"""Pairs that should score the same, after the neutrals of Crome (Srivastava et al. 2025, arXiv 2506.16507)."""

from collections.abc import Sequence
from random import Random

from cooper_rl.cooptimization.negatives.rewriting import AnswerVerifier
from cooper_rl.cooptimization.pairs import Pair, Solved, choose_positives
from cooper_rl.data.text import has_content, normalise
from cooper_rl.rollouts import AnswerGroup


def two_right(group: AnswerGroup, verdicts: Sequence[str], count: int, random: Random) -> list[Pair]:
    """Up to `count` pairs of two different completions of a group that the rule accepts and that ended by themselves.

    What tells them apart is style, and style must not count.
    """
    accepted = choose_positives(group, verdicts, 2 * count, random)
    problem = group.problem
    return [
        Pair(problem.id, problem.question, problem.answer, first, second, "rollout", "two_right", label="tie")
        for first, second in zip(accepted[::2], accepted[1::2], strict=False)
    ]


def wrong_texts(group: AnswerGroup, verdicts: Sequence[str], count: int, random: Random) -> list[str]:
    """Up to `count` different completions that the rule calls wrong, normalised."""
    texts = [
        normalise(answer.text) for answer, verdict in zip(group.answers, verdicts, strict=True) if verdict == "wrong"
    ]
    candidates = [text for text in dict.fromkeys(texts) if has_content(text)]
    return random.sample(candidates, min(count, len(candidates)))


def irrelevant_questions(items: Sequence[tuple[Solved, Sequence[str], Random]], verifier: AnswerVerifier) -> list[Pair]:
    """For each problem and each of its wrong texts, the pair (positive, wrong text) under another problem's question.

    Neither answers that question, so neither should score higher. A pair is left out if the rule accepts one of the two
    under the other problem, and so is a problem without any other.
    """
    asked: list[tuple[Solved, str, str]] = []
    for solved, wrong, random in items:
        others = [other for other, _, _ in items if other.problem.question != solved.problem.question]
        for positive, negative in zip(solved.positives, wrong, strict=False):
            if others:
                asked.append((random.choice(others), positive, negative))
    texts = [(other.problem, text) for other, positive, negative in asked for text in (positive, negative)]
    verdicts = list(verifier.verify_problems(texts))
    pairs = []
    for (other, positive, negative), first, second in zip(asked, verdicts[::2], verdicts[1::2], strict=True):
        if "correct" not in (first, second):
            problem = other.problem
            ids = (problem.id, problem.question, problem.answer)
            pairs.append(Pair(*ids, positive, negative, "rollout", "irrelevant_question", label="tie"))
    return pairs
