"""What the text of a row ends in: the reference's words, a calculation of its value, a word that nothing explains."""

import ast
import re
from collections.abc import Sequence
from fractions import Fraction
from operator import add, mul, sub, truediv

from cooper_audit.rollouts.reading import short_hash

_WORD = re.compile(r"[^\W_]++(?>(?:[.,/:^-][^\W_]++)*)")
_MARKUP = re.compile(r"</?[A-Za-z][\w-]*+>|\\(?:begin|end)\{[A-Za-z*]*+\}|\\[A-Za-z]++")
"""Tags, and commands of LaTeX: what a form of answers closes with, and no words of the answer."""


def ends_in(text: str, reference: str, question: str = "") -> bool:
    """Whether a text ends in the words of a reference answer, behind which a word of the question, such as a unit, may
    stand, and markup.
    """
    parts = (_MARKUP.sub(" ", part[-400:]) for part in (text, reference))
    words, wanted = ([word.casefold() for word in _WORD.findall(part)] for part in parts)
    if not wanted or words[-len(wanted) :] == wanted:
        return bool(wanted)
    unit = words[-1:]
    return words[-len(wanted) - 1 : -1] == wanted and unit[0] in map(str.casefold, _WORD.findall(question))


_CALCULATION = re.compile(r"[\d(][\d\s.+*/()×÷-]*[\d)]")
_HUGE = re.compile(r"[eE][-+]?[\d_]{4}")
"""Powers of ten that would be computed for hours: `1e999999999`."""
_OPERATIONS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}


def equals(text: str, reference: str) -> bool:
    """Whether the last calculation that a text states, such as `3 * (4 - 1)`, has the value of a reference."""
    stated = _CALCULATION.findall(text[-400:].rstrip())
    if _HUGE.search(reference):
        return False
    try:
        wanted = Fraction(reference)
        tree = ast.parse(stated[-1].strip().replace("×", "*").replace("÷", "/"), mode="eval") if stated else None
        return tree is not None and isinstance(tree.body, ast.BinOp) and _value_of(tree.body) == wanted
    except (ArithmeticError, LookupError, SyntaxError, ValueError):  # words, or signs that are no calculation
        return False


def _value_of(node: ast.expr) -> Fraction:
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value_of(node.left), _value_of(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value_of(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    raise ValueError("no number")


_LETTERS = re.compile(r"[^\W\d_]++")


def unexplained(text: str, sources: Sequence[str]) -> str:
    """A hash of the word that a text ends in; empty if a source has the word, and in scripts without capital letters,
    some of which set no spaces between words.
    """
    words = [word.casefold() for word in _LETTERS.findall(text[-400:])]
    explained = {word.casefold() for source in sources for word in _LETTERS.findall(source)}
    return short_hash(words[-1]) if words and words[-1] not in explained and words[-1] != words[-1].upper() else ""
