"""The verdict of the rule `maths` with Math-Verify, for worker processes: it may stall. No torch: they start fast."""

import re
from decimal import Decimal
from functools import lru_cache, partial

from math_verify import parse, verify

from cooper_rl.rules.fast_path import reference_kind, verdict_by
from cooper_rl.rules.number import CHANGES_NUMBER, any_number, as_decimal, plain_number
from cooper_rl.rules.plain_text import with_iso_dates
from cooper_rl.rules.rule import Verdict
from cooper_rl.rules.units import without_unit

_MATH_SEGMENT = re.compile(r"\$[^$]+\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
_CURRENCY = re.compile(r"\$\d[\d,.]*\s+[A-Za-z]")  # "$12 or $13" is not a formula
_WORD = re.compile(r"(?<!\\)\b[A-Za-z]{3,}")
_LISTED = re.compile(r"\d[^\d]*?(?:\b(?:or|and)\b|,\s|;)[^\d]*?[-$]?\d")
_INFINITY = re.compile(r"(?<!\\)\binfinity\b", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater|larger|smaller) than|up to|not)\s+\$?-?[\d.]", re.IGNORECASE
)
_DECIMALS = 6
_SIGNED_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+)?")


def _symbolic_verdict(reference: str, text: str, form: str) -> Verdict:
    """Math-Verify's verdict on one answer, a whole text (`free`), or the elements of one answer (`list`)."""
    gold = _gold(reference)
    if form == "list":
        found, decimals = _parse_box(text), _DECIMALS
    elif form == "free":
        found, decimals = _parse(text), _decimals(reference)
    else:
        found, decimals = _read(text, numeric=plain_number(reference) is not None), _decimals(reference, text)
    if not found and form != "list":
        return "unparsed"
    # Gold first: Math-Verify's comparison is not symmetric. An interval may be written as an inequality.
    same = verify(gold, found, float_rounding=decimals, timeout_seconds=None, allow_set_relation_comp=True)
    return "correct" if same else "wrong"


maths_verdict = partial(verdict_by, _symbolic_verdict)
"""`maths_verdict(answer, completion, expressions=False)`: as `fast_verdict`, but never None."""


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
    if CHANGES_NUMBER.search(text) and not re.search(r"percent|pct", text):
        return []  # "12 thousand" is not 12
    if _BOUND.search(text) or with_iso_dates(text) != text:
        return []  # "at least 5" is not 5, and neither is "May 5"
    return _parse(f"The answer is: {text}")


@lru_cache(maxsize=1024)
def _gold(reference: str) -> list:
    number = any_number(reference)
    if number is not None:
        return _parse_box(as_decimal(number))
    return _parse(reference) if _MATH_SEGMENT.search(reference) else _parse_box(without_unit(reference))


def _parse_box(text: str) -> list:
    return _parse(rf"\boxed{{{text}}}")


def _parse(text: str) -> list:
    # Math-Verify's own time-out is off: it uses signals, which sympy's C loops ignore. The parent process kills us.
    return parse(text, parsing_timeout=None)  # pyright: ignore[reportArgumentType]


def _decimals(*texts: str) -> int:
    """The decimals that Math-Verify compares: six by default, more for a number so small that those are all zero."""
    numbers = [Decimal(number) for text in texts if (number := plain_number(text)) and "/" not in number]
    return _DECIMALS + max((-number.adjusted() for number in numbers if number and number.adjusted() < -3), default=0)
