r"""Letters that stand for any number: for whole turns, `x = \frac{\pi}{4} + k\pi`, and for constants of integration."""

import math
import re
from collections.abc import Iterable

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.values.estimate import value_of
from cooper_verify.rules.values.expression import Symbolic, same
from cooper_verify.rules.values.tree import Tree, canonical, has, names, number, replaced

WHOLE = r"\whole"
"""In place of a letter of which a text says that it is any whole number."""
_WHOLE_LETTERS, _CONSTANTS = {*"klmn", WHOLE}, {*"CKc"}
MAY_BE_ANY = _WHOLE_LETTERS | _CONSTANTS


def has_letter(question: str, letters: Iterable[str]) -> bool:
    """Whether a question has one of these letters by itself, so that it stands for what the question says of it."""
    said = rf"(?<![A-Za-z\\])(?:{'|'.join(map(re.escape, letters))})(?![A-Za-z])"
    return re.search(said, question) is not None


def compare_turns(reference: Tree, answer: Tree, are_free: bool, is_part: bool) -> Verdict | None:
    """The verdict on formulas whose letter counts turns; None for others. Only if `are_free`, letters are known to be
    any whole number, so that another first value gives the same values: `-\\frac{\\pi}{2} + k\\pi`."""
    one, other = _turns(reference), _turns(answer)
    if one is None or other is None:
        return None
    if all(map(math.isclose, one, other)):
        return "correct"
    if not are_free:
        return None
    if not math.isclose(abs(one[1]), abs(other[1])):
        return "unparsed"  # a part of several
    count = (one[0] - other[0]) / one[1]
    if not math.isclose(count, round(count), abs_tol=1e-9):
        return "wrong"
    return "unparsed" if is_part else "correct"  # the parts of a pair have the same letter


def _turns(tree: Tree) -> tuple[float, float] | None:
    """The value of a formula for no turn, and how far apart its values are."""
    letters = names(tree)
    if len(letters) != 1 or not letters <= _WHOLE_LETTERS or not has(tree, "pi"):
        return None
    first, second, third = (value_of(replaced(tree, ("name", *letters), number(count))) for count in range(3))
    if first is None or second is None or third is None or not math.isclose(third - second, second - first):
        return None
    return first, second - first


def has_other_constant(reference: Tree, answer: Tree, symbolic: Symbolic) -> bool:
    """Whether the answer is the reference with another letter for a constant of integration: `x^2 + K`, `x^2 + C`."""
    one, other, terms = names(reference) - names(answer), names(answer) - names(reference), canonical(reference)
    if (
        len(one) != 1
        or len(other) != 1
        or not one | other <= _CONSTANTS
        or terms[0] != "+"
        or ("name", *one) not in terms
    ):
        return False
    return same(reference, replaced(answer, ("name", *other), ("name", *one)), symbolic)


def has_other_letter(reference: Tree, answer: Tree, question: str) -> bool:
    """Whether the answer is the reference with another letter, of which the question has neither: `cx` and `ax`."""
    one, other = names(reference) - names(answer), names(answer) - names(reference)
    if not question or len(one) != 1 or len(other) != 1 or not all(len(name) == 1 for name in one | other):
        return False
    if has_letter(question, one | other):
        return False
    return canonical(replaced(answer, ("name", *other), ("name", *one))) == canonical(reference)
