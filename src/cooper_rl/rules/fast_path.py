"""Verdicts without leaving the process, for the kinds of references that allow it: text, options and plain numbers.

The kind of a reference decides how answers are compared with it. Mathematics is compared by value, and in mathematics
`ab` is `ba`. A reference therefore counts as mathematics only if it consists entirely of numbers, signs, LaTeX and
single letters. Tokyo, 2024-01-05, 9 pm, H2O and A+ are text.

For mathematics, the fast path gives a verdict only if the slow path (`maths_verdict`) provably gives the same one. That
is so in three cases: the reference is not mathematics; the completion gives no answer; or the reference is a plain
number and either all final answers are plain numbers equal to it, or one of them is plainly different.
"""

import re
from functools import lru_cache
from typing import Literal

from cooper_rl.rules.extraction import extract_answer, is_retracted, reference_text
from cooper_rl.rules.kinds.choice import choice_verdict, reference_choice
from cooper_rl.rules.kinds.exact import exact_verdict
from cooper_rl.rules.number import has_changed_number, number_verdict, plain_number, same_number
from cooper_rl.rules.plain_text import bare_text, names_month
from cooper_rl.rules.rule import Verdict
from cooper_rl.rules.units import are_measures, measures, same_unit, unit_of

ReferenceKind = Literal["maths", "choice", "exact"]
TextPolicy = Literal["exact", "refuse"]
"""What to do with references of the kind `exact`: compare them as text, or refuse them."""

# Figures and signs whose meaning is lost when they are evaluated as arithmetic.
_FIGURES = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d+/\d+/\d+"  # 2024-01-05, 1/5/2024
    r"|\d+(?:\.\d+)?\s?-\s?\d+(?:\.\d+)?(?:\s?-\s?\d+)*"  # 10-12, 555-1234
    r"|\+\d+(?:[ -]\(?\d+\)?)+|#.*"  # +1 555 1234, #5
    r"|\d+(?:\.\d+){2,}"  # 1.2.3
    r"|\d+\s*(?:x|\\times|\u00d7)\s*\d+"  # 3x5 is a size
    r"|\d+'\s?(?:\d+\"?)?"  # 5'10"
)
# A+, N/A, p.m, (iv), A or B
_SIGNS = re.compile(r"[a-z]+\s?[+-]|n/a|[a-z](?:\.\s?[a-z])+\.?|\(?[ivx]{2,}\)?|(?:[A-J]\s+or\s+)+[A-J]", re.IGNORECASE)
_CLOCK = re.compile(r"\b\d{1,2}\s?:\s?[0-5]\d(?!\d)")
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b")
_NO_UNIT = re.compile(
    r"\d\s*[ap]\.?\s?m?\b\.?|o'clock|\b(?:noon|midnight|ad|bc|bce|ce)\b"
    r"|\b(?:north|south|east|west)(?:east|west|ern)?(?:ward)?s?\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\b(?:percent|percentage|pct|degrees?|times|points?|quarters?)\b", re.IGNORECASE)

_DOUBLED = re.compile(r"(?<!\\)\\\\(?=[A-Za-z])")  # LaTeX that went through JSON once too often
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{\w+\*?\}(?:\{[clr|]*\})?")
_SUBSCRIPT = re.compile(r"_\s*(?:\{[^{}]*\}|\w)")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?")
_NAMED_FIGURE = re.compile(r"\\(?:angle|overline|over(?:left)?rightarrow|triangle|widehat|measuredangle)\b")
_MATHEMATICAL_ALPHABETS = re.compile(r"[\u0370-\u03ff\u2100-\u214f\U0001d400-\U0001d7ff]")
_WORD = re.compile(r"[A-Za-z]{2,}")
_FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp sqrt max min gcd lcm mod det dim "
        "ker deg arg inf sup lim pi cis and or",
    )
)
_LONGEST_PRODUCT = 3
_SHORT_WORDS = frozenset(
    ["yes", "no", "not", "the", "is", "are", "to", "of", "if", "by", "in", "on", "at", "up", "all", "any"]
)
_NAME = re.compile(r"[A-Z][a-z]{2,}")
_OPERATOR = re.compile(r"[+*^=<>|(]|\\[A-Za-z]")
_LETTER_AND_FIGURE = re.compile(r"[A-Za-z]\d")


@lru_cache(maxsize=16384)
def reference_kind(reference: str) -> ReferenceKind:
    """The kind of `reference`, a text as `reference_text` gives it."""
    if reference_choice(reference) is not None:
        return "choice"
    text = bare_text(_DOUBLED.sub(r"\\", reference))
    if _is_figures_of_text(text):
        return "exact"
    is_maths = _is_quantity(text) if plain_number(reference) or unit_of(reference) else _is_formula(text)
    return "maths" if is_maths else "exact"


def _is_figures_of_text(text: str) -> bool:
    """Whether the text is a date, time, range, grade or other figure that is not a number to calculate with."""
    is_time = _CLOCK.search(text) is not None and "=" not in text
    return bool(
        is_time or _FIGURES.fullmatch(text) or _SIGNS.fullmatch(text) or _ORDINAL.search(text) or names_month(text)
    )


def _is_quantity(text: str) -> bool:
    """Whether a value followed by words is a value with a unit, unlike "12 thousand", "9 pm" or "10 Downing Street"."""
    words = _COMMAND.sub(" ", text)
    if has_changed_number(_COUNTED.sub("", words)) or _NO_UNIT.search(text):
        return False
    return all(word == word.lower() or measures(word) for word in _WORD.findall(words))


def _is_formula(text: str) -> bool:
    """Whether every letter is a variable or part of a function's name."""
    if not re.search(r"\w|\\[A-Za-z]", text) or _NAMED_FIGURE.search(text):
        return False
    if any(letter.isalpha() and not letter.isascii() for letter in _MATHEMATICAL_ALPHABETS.sub("", text)):
        return False
    symbols = _COMMAND.sub(" ", _SUBSCRIPT.sub(" ", _ENVIRONMENT.sub(" ", text)))
    if re.search(r"\w\.\s", text) or (_LETTER_AND_FIGURE.search(symbols) and not re.search(r"[\\^]", text)):
        return False  # "a. 3, b. 4"; H2O, but N2^{-N}
    if _WORD.fullmatch(text.strip("()[]{} ")):
        return text == "pi"
    words = [word for word in _WORD.findall(symbols) if word not in _FUNCTIONS]
    return all(_is_product(word, text, symbols) for word in words)


def _is_product(word: str, text: str, symbols: str) -> bool:
    """Whether letters in a row are a product of variables: next to an operator, or lower-case after a number (2xy)."""
    if len(word) > _LONGEST_PRODUCT or _NAME.fullmatch(word) or word in _SHORT_WORDS:
        return False
    return bool(_OPERATOR.search(text)) or (word.islower() and re.search(rf"\d{word}\b", symbols) is not None)


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
