r"""Gold of the real-model runs: the strictest check that can be defended. It measures, and nothing learns from it."""

import re

from cooper_base.data.problem import Problem
from cooper_verify.rules.quantities.number import plain_number, same_number

BOX = r"\boxed{"


def gold(problem: Problem, completion_text: str) -> bool:
    r"""Whether the completion ends in its only box, and the box holds exactly one number, the reference's.

    A list of answers, a second box, a box in the middle of the text or an unfinished one are all wrong, even if the
    rule accepts them.
    """
    _, box, rest = completion_text.partition(BOX)
    inside, closed, after = rest.partition("}")
    if not box or not closed or BOX in rest or after.strip(" .$\n"):
        return False
    return _is_right(inside, problem.answer)


def right_in_every_box(answer: str, completion_text: str) -> bool:
    r"""A milder count beside gold: whether there are boxes and each holds the reference's number, as in
    `\boxed{12} is \boxed{12}`."""
    found = re.findall(r"\\boxed\{([^{}]*)\}", completion_text)
    return bool(found) and all(_is_right(inside.strip(" .$"), answer) for inside in found)


def _is_right(inside: str, answer: str) -> bool:
    stated, reference = plain_number(inside.strip()), plain_number(answer)
    return stated is not None and reference is not None and same_number(stated, reference) is True
