"""Negatives that differ from their positive in the reference answer only.

Contrast Instructions (Shen et al. 2023, arXiv 2309.16155) swaps the instruction under a response. A reference-based
reward model reads a reference too, and a model that reads the text alone cannot tell these pairs apart.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from cooper_rl.cooptimization.pairs import Pair, Solved
from cooper_rl.rules.rule import Rule

OTHERS = 3
"""References of other problems that are tried for one pair, after the nearby numbers."""


def swapped_pairs(items: Sequence[tuple[Solved, Random]], verifier: Rule, count: int) -> list[Pair]:
    """Up to `count` pairs per problem, one for each positive.

    The negative is the positive under another reference: a number close to the true one where that is a whole number,
    else the reference of another of these problems. A reference is used only if the rule says that the positive is
    `wrong` under it, so it is never another form of the true answer.
    """
    answers = list(dict.fromkeys(solved.problem.answer for solved, _ in items))
    wanted: list[tuple[Solved, str, list[str]]] = []
    for solved, random in items:
        for positive in solved.positives[:count]:
            others = [answer for answer in answers if answer != solved.problem.answer]
            picked = random.sample(others, min(OTHERS, len(others)))
            wanted.append((solved, positive, nearby(solved.problem.answer, random) + picked))
    asked = [
        (replace(solved.problem, answer=answer), positive)
        for solved, positive, candidates in wanted
        for answer in candidates
    ]
    verdicts = iter(verifier.verify_problems(asked))
    pairs: list[Pair] = []
    for solved, positive, candidates in wanted:
        wrong = [answer for answer in candidates if next(verdicts) == "wrong"]
        if wrong:
            pair = solved.pair(positive, positive, "swapped_reference")
            pairs.append(replace(pair, negative_answer=wrong[0], negative_logit_before=None))
    return pairs


def nearby(answer: str, random: Random) -> list[str]:
    """Numbers that a reader could take for this one, in random order: off by one or ten, ten times, the other sign.

    Empty unless the answer is a whole number of at most 15 figures.
    """
    text = answer.strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 15:
        return []
    value = int(text)
    numbers = [value + 1, value - 1, value + 10, value - 10, value * 10, -value]
    near = [str(number) for number in dict.fromkeys(numbers) if number != value]
    random.shuffle(near)
    return near[:OTHERS]
