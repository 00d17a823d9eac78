"""Reads an answer in a form that a check does not read: to say that a form changed, never that an answer is right."""

import ast
import re
from collections.abc import Sequence
from fractions import Fraction
from operator import add, mul, sub, truediv

TAIL = 400
"""Characters at the end of a text that are read."""
_WORD = re.compile(r"[^\W_]++(?>(?:[.,/:^-][^\W_]++)*)")
_MARKUP = re.compile(r"</?[A-Za-z][\w-]*+>|\\(?:begin|end)\{[A-Za-z*]*+\}|\\[A-Za-z]++")
"""Tags, and commands of LaTeX: what a form of answers closes with, and no words of the answer."""
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_SLOT = re.compile(r"(?:<answer>|(?<=>))([^<>]*+)</answer>|\\boxed\{([^{}]*+)\}")
_NUMBER = re.compile(r"\d[\d.,]*+")
_NEGATIVE = re.compile(r"[-−]\d")
_OPEN = re.compile(r"<(think|reasoning)>")
_THOUGHT_ENDS = re.compile(r"</(?:think|reasoning)>")
MOST_BEHIND = 20
"""Words behind a sentence, with more of which the text goes on and it is no last word: a policy that reconsiders its
answer, or that is cut off."""
_ALTERNATIVES = re.compile(r"\b(?:or|either|one of|oder|ou)\b|\d\s*+[,;|]\s*+[\d.]++\s*+[,;|]", re.IGNORECASE)
"""Of a list of answers."""
FEWEST_ITEMS, LONGEST_ITEM = 4, 3
"""So many items of at most so many words, one of them the reference, are a list of answers."""
_NAMED = re.compile(r"\banswer\s*+(?:is|:)", re.IGNORECASE)
_NAMED_NUMBER = re.compile(_NAMED.pattern + r"\W*+(\d++)\W*\Z", re.IGNORECASE)
_FIGURES = re.compile(r"\d++(?>(?:[.,]\d++)*)")
_LABELLED = re.compile(
    rf"(?:([^\W\d_]++)(?:\s*+:|(?<=answer)\s++is\b)|(<answer>|####|\\boxed\{{))\W*+({_FIGURES.pattern})", re.IGNORECASE
)
"""A number behind a label, as in `Total: 12` or `answer is 12`, or in or behind a mark of final answers."""
_OPEN_SLOT = re.compile(r"\\boxed\{[^{}]*+\Z|<answer>[^<]*+\Z")
_ESTIMATE = re.compile(r"[≈≃~]|\\(?:approx|simeq|sim)\b")
"""Signs of an estimate, which a check of exact answers rejects."""


_ROUNDED = re.compile(r"(-?\d++\.(\d{2,}+))[^\d]*+\Z")
"""The last number of a sentence, with decimals enough to tell the values of fractions apart."""
_FRACTION = re.compile(r"\\[dt]?frac\{(\d++)\}\{(\d++)\}")


def is_estimate(text: str, references: Sequence[str]) -> bool:
    """Whether the last sentence with a number states a reference behind the sign of an estimate, as in `x ≈ 64`, or
    ends in a rounding of it."""
    estimate = _ESTIMATE.split(_last_sentence(text, _NUMBER))[1:]
    is_signed = estimate and any(_words(estimate[-1]) == _words(reference) for reference in references)
    return bool(is_signed) or _is_rounded(text, references)


def _is_rounded(text: str, references: Sequence[str]) -> bool:
    """Whether the last sentence with a number ends in a rounding of a reference, as in 0.143 for 1/7."""
    sentence = _last_sentence(text, _NUMBER)
    rounded = _ROUNDED.search(_MARKUP.sub(" ", sentence))
    if rounded is None or _ALTERNATIVES.search(sentence):
        return False
    return any(_rounds(reference, *rounded.groups()) for reference in references)


def _rounds(reference: str, number: str, decimals: str) -> bool:
    """Whether a number with these decimals is a rounding of a reference that is a fraction, or has more decimals."""
    try:
        value = None if _HUGE.search(reference) else Fraction(_FRACTION.sub(r"\1/\2", reference.strip(" $")))
    except (ValueError, ZeroDivisionError):  # words, or another formula
        return False
    half = Fraction(1, 2 * 10 ** len(decimals))
    return value is not None and 0 < abs(value - Fraction(number)) <= half


def otherwise(text: str, references: Sequence[str], question: str = "", is_cut: bool = False) -> bool | None:
    """Whether a text, in which a check finds no answer, states one right answer in another form. None if it holds the
    right one somewhere and does not state it, so that nobody knows; False if it does not hold it, or in a list, or if
    another number stands in the last box or tag, or behind the last `answer:`.

    An only box or tag states what it holds, unless a number follows it. Else the last sentence with a
    number, or with words, states an answer if the reference is all that it can mean: one number, behind the last `=` or
    `answer:`; or its last words. A list, guesses of which another number has the same label, an expression that is not
    worked out, a question, be it the one that was asked, a thought and a text that `is_cut` or goes on for long state
    none. A calculation states its value where it is all that stands in a box or
    a tag.
    """
    if not is_cut and (_is_rounded(text, references) or any(_states(text, one, question) for one in references)):
        return True
    if any(_is_listed(text, reference) or _is_another_number(text, reference) for reference in references):
        return False
    words = _words(text)
    return None if any(_holds(words, _words(reference)) for reference in references) else False


def _is_listed(text: str, reference: str) -> bool:
    """Whether the sentence that would state the reference has it among alternatives, or as one of many short items, of
    a calculation its value."""
    wanted, sentence = _words(reference), _last_sentence(text, _NUMBER if _NUMBER.search(reference) else _WORD)
    items = [_words(item.rpartition("=")[2]) for item in re.split("[,;|]", sentence)]
    short = [item for item in items if 0 < len(item) <= LONGEST_ITEM]
    is_item = len(short) >= FEWEST_ITEMS and wanted in short
    return is_item or (_ALTERNATIVES.search(sentence) is not None and _holds(_words(sentence), wanted))


def _is_another_number(text: str, reference: str) -> bool:
    """Whether the last box or tag holds a whole number, or one ends the text behind `answer:`, and the reference is
    another.
    """
    wanted = reference.strip()
    if named := _NAMED_NUMBER.search(text[-TAIL:]):
        stated = named[1]
    else:
        stated = "" if _OPEN_SLOT.search(text) else _last_slot(text) or ""
    return stated.isdecimal() and wanted.isdecimal() and stated.lstrip("0") != wanted.lstrip("0")


def _states(text: str, reference: str, question: str) -> bool:
    if equals(text, reference):
        return True
    thoughts = list(_OPEN.finditer(text))
    is_open = thoughts and f"</{thoughts[-1][1]}>" not in text[thoughts[-1].start() :]
    numeric = _NUMBER.search(reference) is not None
    sentence = _statement(_THOUGHT_ENDS.split(text)[-1], _NUMBER if numeric else _WORD)
    is_asked = sentence.strip() in question and sentence.strip() != reference.strip()
    if is_open or _OPEN_SLOT.search(text) or is_asked or sentence.rstrip().endswith("?"):
        return False
    if numeric and _is_one_of_several(text, sentence):
        return False
    stated = _NAMED.split(sentence.rpartition("=")[2])[-1]
    if _ALTERNATIVES.search(stated):
        return False
    if numeric:
        marks = [(len(_NUMBER.findall(part)), bool(_NEGATIVE.search(part))) for part in (stated, reference)]
        return marks[0] == marks[1] and _holds(_words(stated), _words(reference))
    return ends_in(stated, reference, question)


def _is_one_of_several(text: str, sentence: str) -> bool:
    """Whether a text has other numbers than a sentence of it behind the same label, or behind `answer`: guesses."""
    labels = {label for label, _ in _labelled(sentence)} | {"answer"}
    others = {number for label, number in _labelled(text[-TAIL:]) if label in labels}
    return not others <= set(_FIGURES.findall(sentence))


def states_several(text: str) -> bool:
    """Whether a text has several numbers behind one mark of final answers: guesses, or an answer that it corrected."""
    marked = [(label, number) for label, number in _labelled(text) if label == "answer" or not label.isalpha()]
    return len(set(marked)) > len(dict(marked))


def _labelled(text: str) -> list[tuple[str, str]]:
    return [(label.casefold() or mark.casefold(), number) for label, mark, number in _LABELLED.findall(text)]


def _statement(text: str, pattern: re.Pattern[str]) -> str:
    """The part of a text that states its answer: its only box or tag, if nothing behind it has the pattern; or else the
    last sentence that has it, if the text does not go on for long. Empty if there is none.
    """
    end = text[-TAIL:]
    slots = list(_SLOT.finditer(end))
    if len(slots) == 1 and not pattern.search(_MARKUP.sub(" ", end[slots[0].end() :])):
        return slots[0][1] or slots[0][2] or ""
    sentence = _last_sentence(text, pattern)
    return sentence if len(_words(end[end.rfind(sentence) + len(sentence) :])) <= MOST_BEHIND else ""


def _last_sentence(text: str, pattern: re.Pattern[str]) -> str:
    """The last one in which a pattern is found; empty if there is none."""
    return next((part for part in reversed(_SENTENCE.split(text[-TAIL:])) if pattern.search(part)), "")


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_MARKUP.sub(" ", text))]


def _holds(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the wanted words stand in a row."""
    length = len(wanted)
    return length > 0 and any(words[at : at + length] == wanted for at in range(len(words) - length + 1))


def ends_in(text: str, reference: str, question: str = "") -> bool:
    """Whether a text ends in the words of a reference answer, behind which a word of the question, such as a unit, may
    stand, and markup.
    """
    words, wanted = _words(text[-TAIL:]), _words(reference)
    if not wanted or words[-len(wanted) :] == wanted:
        return bool(wanted)
    unit = words[-1:]
    return words[-len(wanted) - 1 : -1] == wanted and unit[0] in map(str.casefold, _WORD.findall(question))


_LETTERS = re.compile(r"[^\W\d_]++")


def unexplained(text: str, sources: Sequence[str]) -> str:
    """The word that a text ends in; empty if a source has the word, and in scripts without capital letters, some of
    which set no spaces between words.
    """
    words = [word.casefold() for word in _LETTERS.findall(text[-TAIL:])]
    explained = {word.casefold() for source in sources for word in _LETTERS.findall(source)}
    return words[-1] if words and words[-1] not in explained and words[-1] != words[-1].upper() else ""


_CALCULATION = re.compile(r"[\d(][\d\s.+*/()×÷-]*[\d)]")
_HUGE = re.compile(r"[eE][-+]?[\d_]{4}")
"""Powers of ten that would be computed for hours: `1e999999999`."""
_OPERATIONS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}


def equals(text: str, reference: str) -> bool:
    """Whether a calculation such as `3 * (4 - 1)`, which is all that the last box or tag holds, or else the whole text,
    has the value of a reference.
    """
    slot = _last_slot(text)
    stated = text[-TAIL:].strip() if slot is None else slot
    if not _CALCULATION.fullmatch(stated) or _HUGE.search(reference):
        return False
    try:
        wanted = Fraction(reference)
        tree = ast.parse(stated.replace("×", "*").replace("÷", "/"), mode="eval")
        return isinstance(tree.body, ast.BinOp) and _value_of(tree.body) == wanted
    except (ArithmeticError, LookupError, SyntaxError, ValueError):  # words, or signs that are no calculation
        return False


def _last_slot(text: str) -> str | None:
    """What the last closed box or tag holds; None without one."""
    slots = list(_SLOT.finditer(text[-TAIL:]))
    return (slots[-1][1] or slots[-1][2] or "").strip() if slots else None


def _value_of(node: ast.expr) -> Fraction:
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value_of(node.left), _value_of(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value_of(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    raise ValueError("no number")
