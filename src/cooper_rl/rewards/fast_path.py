"""Verdicts on plain numbers without leaving the process: most of them in arithmetic and word problems.

Gives a verdict only where the slow path (`rule_judge.judge`) provably gives the same one: nothing was answered, or
the reference is a plain number and either all final answers are plain numbers equal to it, or one is plainly different.
"""

from cooper_rl.rewards.extraction import extract_answer, reference_text
from cooper_rl.rewards.plain_number import plain_number, same_number
from cooper_rl.rewards.verdict import Verdict


def fast_verdict(answer: str, completion: str) -> Verdict | None:
    """The verdict on a completion against the reference `answer`, or None where the slow path must decide."""
    reference = reference_text(answer)
    final = extract_answer(completion)
    if not final.texts or not reference:
        return "unparsed"
    expected = plain_number(reference)
    if final.kind == "free" or expected is None:
        return None
    found = [plain_number(text) for text in final.texts]
    same = [same_number(expected, number) if number is not None else None for number in found]
    if False in same:
        return "wrong"
    return "correct" if all(same) else None
