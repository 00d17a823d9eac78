"""Verdicts on plain numbers without leaving the process: most of them in arithmetic and word problems.

Gives a verdict only where the slow path (`rule_judge.judge`) provably gives the same one: nothing was answered, or
there is one final answer, it and the reference are plain numbers, and they are equal or plainly different.
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
    if final.kind == "free" or len(final.texts) > 1:
        return None
    expected, found = plain_number(reference), plain_number(final.texts[0])
    if expected is None or found is None:
        return None
    same = same_number(expected, found)
    if same is None:
        return None
    return "correct" if same else "wrong"
