"""The verdict on one completion, with Math-Verify for mathematics.

This module runs only in the verifier processes, because Math-Verify may stall or run out of memory. It imports neither
torch nor transformers, so that a replacement process is ready in a fraction of a second.
"""

import re
from decimal import Decimal
from functools import lru_cache

from math_verify import parse, verify

from cooper_rl.rewards.rule.extraction import FinalAnswer, extract_answer, reference_text
from cooper_rl.rewards.rule.fast_path import text_verdict
from cooper_rl.rewards.rule.plain_number import (
    as_decimal,
    has_changed_number,
    mixed_number,
    number_value,
    plain_number,
    same_number,
)
from cooper_rl.rewards.rule.reference_kind import reference_kind
from cooper_rl.rewards.rule.stated_number import first_number, number_verdict
from cooper_rl.rewards.rule.text_answer import is_retracted
from cooper_rl.rewards.rule.units import are_measures, same_quantity, same_unit, without_unit
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rewards.rule.written_date import with_iso_dates

_MATH_SEGMENT = re.compile(r"\$[^$]+\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
_CURRENCY = re.compile(r"\$\d[\d,.]*\s+[A-Za-z]")  # "$12 or $13" is not a formula
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textrm)\s*\{([^{}]*)\}")
_PERCENTAGE = re.compile(r"\$?(-?\d+(?:\.\d+)?)\s*\\?%\$?")
_WORD = re.compile(r"(?<!\\)\b[A-Za-z]{3,}")
_LISTED = re.compile(r"\d[^\d]*?(?:\b(?:or|and)\b|,\s|;)[^\d]*?[-$]?\d")
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d+|\d+,(?!\d{3}\Z)\d+)")
_BASE = re.compile(r"(?<=\d)_\{?(\d+)\}?\Z")
_NO_NUMBER = re.compile(r"\d\s*(?:\^\s*)?\{?(?:\\(?:text|mathrm)\s*\{)?\s*(?:st|nd|rd|th)\b|\\overline")  # 8th
_INFINITY = re.compile(r"(?<!\\)\binfinity\b", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater|larger|smaller) than|up to|not)\s+\$?-?[\d.]", re.IGNORECASE
)
_DECIMALS = 6
_SIGNED_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+)?")


def maths_verdict(answer: str, completion: str, expressions: bool = False) -> Verdict:
    """The verdict on `completion` against the reference `answer`.

    With `expressions`, `19 - 10` answers the reference 9, as it does to Math-Verify; without, it is `unparsed`.
    """
    reference = reference_text(answer)
    if (verdict := text_verdict(reference, completion)) is not None:
        return verdict
    final = extract_answer(completion, factorials="!" in reference)
    if not final.texts or not reference:
        return "unparsed"
    verdict = _value_verdict(reference, final, expressions)
    if verdict == "correct" and is_retracted(final.after):
        return "wrong"
    asks_for_number = plain_number(reference) is not None and not expressions
    return number_verdict(reference, final) if verdict == "correct" and asks_for_number else verdict


def _value_verdict(reference: str, final: FinalAnswer, expressions: bool) -> Verdict:
    """The verdict on the value of a completion's final answer, however it is written."""
    gold, expected = _gold(reference), plain_number(reference)
    texts = list(final.texts)
    if expected is not None and not expressions:
        texts = [_without_factorials(text, final.kind) for text in texts]
    if final.kind == "free":
        found = _parse(texts[0])
        return _compare(gold, found, _decimals(reference)) if found else "unparsed"
    verdicts = [_text_verdict(text, reference, gold) for text in texts]
    read = [verdict for verdict in verdicts if verdict != "unparsed"]
    if not read:
        return "unparsed"
    if all(verdict == "correct" for verdict in read):
        return "correct"
    if len(texts) == 1 or expected is not None:
        return "wrong"
    # Several boxes may be the elements of one answer: \boxed{1} and \boxed{2} for the reference 1, 2.
    return _compare(gold, _parse_box(", ".join(texts)))


def _without_factorials(text: str, kind: str) -> str:
    """The text without what is no answer to a number and may take forever: of `5! = 120`, the side without a mark."""
    if "!" not in text:
        return text
    if kind == "free":
        return text.replace("!", " ")
    return next((side for side in reversed(text.split("=")) if "!" not in side), "")


def _text_verdict(text: str, reference: str, gold: list) -> Verdict:
    if _same_text(text, reference):
        return "correct"
    if are_measures(reference, text):
        same = _same_measure(reference, text)
        return "unparsed" if same is None else "correct" if same else "wrong"
    expected, number = plain_number(reference), plain_number(text)
    if expected is not None and _NO_NUMBER.search(text):
        return "unparsed"
    if expected is not None and (base := _BASE.search(text)):
        if base.group(1) != "10":
            return "unparsed"  # 101_2 may be the question
        text = text[: base.start()]
        number = plain_number(text)
    same = same_number(expected, number) if expected is not None and number is not None else None
    if same is False:
        return "wrong"
    if not same and not _same_percentage(text, expected) and not _same_with_comma(text, expected):
        found = _read(text, numeric=expected is not None)
        verdict = _compare(gold, found, _decimals(reference, text)) if found else "unparsed"
        if verdict != "correct":
            return verdict
    return "correct" if same_unit(reference, text) else "wrong"


def _same_measure(reference: str, text: str) -> bool | None:
    """Whether two answers with different units are the same: 90 minutes and 1.5 hours. None if that is unknown."""
    expected, found = (first_number(one) for one in (reference, text))
    sizes = number_value(expected or "0/0"), number_value(found or "0/0")
    return None if sizes[0] is None or sizes[1] is None else same_quantity(reference, sizes[0], text, sizes[1])


def _read(text: str, numeric: bool) -> list:
    """Math-Verify's reading of one candidate answer; empty if it cannot be read without guessing."""
    number = plain_number(text)
    if number is not None:
        return _parse_box(as_decimal(number))
    text = without_unit(_INFINITY.sub(r"\\infty", text))
    segments = _MATH_SEGMENT.findall(text)
    if segments and not any(_CURRENCY.match(segment) for segment in segments):
        return _parse(f"The answer is: {text}")
    if "\\" in text:
        return _parse_box(text)
    text = text.replace("$", "")
    if re.search(r"\d\s+\d", text) or re.match(r"(?:minus|negative)\b", text, re.IGNORECASE):
        return []  # "1 1/2" is not a product, "minus 12" is not 12
    if not _WORD.search(text):
        return _parse_box(text)
    if not re.search(r"\d", text):
        return [] if numeric or reference_kind(text) != "maths" else _parse_box(text)
    if _LISTED.search(text):
        return _parse_box(", ".join(_SIGNED_NUMBER.findall(text)))
    if has_changed_number(text) and not re.search(r"percent|pct", text):
        return []  # "12 thousand" is not 12
    if _BOUND.search(text) or with_iso_dates(text) != text:
        return []  # "at least 5" is not 5, and neither is "May 5"
    return _parse(f"The answer is: {text}")


@lru_cache(maxsize=1024)
def _gold(reference: str) -> list:
    number = plain_number(reference) or mixed_number(reference)
    if number is not None:
        return _parse_box(as_decimal(number))
    return _parse(reference) if _MATH_SEGMENT.search(reference) else _parse_box(without_unit(reference))


def _parse_box(text: str) -> list:
    return _parse(rf"\boxed{{{text}}}")


def _parse(text: str) -> list:
    # Math-Verify's own time-out is off: it uses signals, which sympy's C loops ignore. The parent process kills us.
    return parse(text, parsing_timeout=None)  # pyright: ignore[reportArgumentType]


def _compare(gold: list, found: list, decimals: int = _DECIMALS) -> Verdict:
    # Gold first: Math-Verify's comparison is not symmetric.
    # An interval may be written as an inequality.
    same = verify(gold, found, float_rounding=decimals, timeout_seconds=None, allow_set_relation_comp=True)
    return "correct" if same else "wrong"


def _decimals(*texts: str) -> int:
    """The decimals that Math-Verify compares: six by default, more for a number so small that those are all zero."""
    numbers = [Decimal(number) for text in texts if (number := plain_number(text)) and "/" not in number]
    return _DECIMALS + max((-number.adjusted() for number in numbers if number and number.adjusted() < -3), default=0)


def _same_percentage(text: str, expected: str | None) -> bool:
    """Whether `40%` answers the reference 40: the question may ask for a percentage.

    Math-Verify would read it as 0.4, so this check comes first.
    """
    percentage = _PERCENTAGE.fullmatch(text)
    return percentage is not None and expected is not None and same_number(percentage.group(1), expected) is True


def _same_with_comma(text: str, expected: str | None) -> bool:
    """Whether `1,22` answers the reference 1.22. In a reference, `1,22` is two numbers, 1 and 22."""
    with_comma = _DECIMAL_COMMA.fullmatch(text)
    return with_comma is not None and expected is not None and expected == text.replace(",", ".")


def _same_text(one: str, other: str) -> bool:
    return _normal(one) == _normal(other)


@lru_cache(maxsize=1024)
def _normal(text: str) -> str:
    text = re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", _TEXT_COMMAND.sub(r"\1", text))
    if re.fullmatch(r"\([A-Za-z]\)", text):
        text = text[1:-1]
    return text.casefold() if text.isalpha() else text
