"""Verdicts without leaving the process: on text, on options, and on plain numbers, which most answers are.

The fast path gives a verdict only if the slow path (`maths_verdict`) provably gives the same one. That is so in three
cases: the reference is not mathematics; the completion gives no answer; or the reference is a plain number and either
all final answers are plain numbers equal to it, or one of them is plainly different.
"""

from cooper_rl.rewards.rule.choice import choice_verdict
from cooper_rl.rewards.rule.exact import exact_verdict
from cooper_rl.rewards.rule.extraction import extract_answer, reference_text
from cooper_rl.rewards.rule.plain_number import plain_number, same_number
from cooper_rl.rewards.rule.reference_kind import reference_kind
from cooper_rl.rewards.rule.stated_number import number_verdict
from cooper_rl.rewards.rule.text_answer import is_retracted
from cooper_rl.rewards.rule.units import are_measures, same_unit
from cooper_rl.rewards.rule.verdict import Verdict


def fast_verdict(answer: str, completion: str, expressions: bool = False) -> Verdict | None:
    """The verdict on a completion against the reference `answer`, or None if the slow path must decide.

    With `expressions`, `19 - 10` answers the reference 9.
    """
    reference = reference_text(answer)
    if (verdict := text_verdict(reference, completion)) is not None:
        return verdict
    final = extract_answer(completion, factorials="!" in reference)
    if not final.texts or not reference:
        return "unparsed"
    expected = plain_number(reference)
    if final.kind == "free" or expected is None:
        return None
    if any(are_measures(reference, text) for text in final.texts):
        return None
    found = [plain_number(text) for text in final.texts]
    same = [same_number(expected, number) if number is not None else None for number in found]
    if False in same:
        return "wrong"
    if not all(same):
        return None
    if is_retracted(final.after) or not all(same_unit(reference, text) for text in final.texts):
        return "wrong"
    return "correct" if expressions else number_verdict(reference, final)


def text_verdict(reference: str, completion: str) -> Verdict | None:
    """The verdict if the reference is text or an option; None if it is mathematics or empty."""
    kind = reference_kind(reference) if reference else "maths"
    if kind == "maths":
        return None
    return choice_verdict(reference, completion) if kind == "choice" else exact_verdict(reference, completion)
