"""Quantities in several units of one kind: "5 ft 6 in", "one hour and thirty minutes", `45^\\circ 30'`."""

import re
from fractions import Fraction

from cooper_verify.rules.quantities.units import NO_UNIT, converted
from cooper_verify.rules.text.plain_text import TEXT_COMMAND
from cooper_verify.rules.values.scalar import IN_WORDS, Scalar, read_scalar
from cooper_verify.rules.values.tree import constant, number

_PART = re.compile(r"\\?[$\u20ac\u00a3]\s?\d[\d,.]*|\d[\d,.]*\s?(?:[A-Za-z\u00b0]+|'|\"|\u00a2)")
_FEET = re.compile(r"(?<!\d)(\d++)'\s?(\d+(?:\.\d+)?)\s?(?:\\?\"|'')")
"""`5'6"`."""
_HOURS = re.compile(r"(?<!\d)(\d++)\s?h\s?(\d+)\s?m(?:in)?(?![A-Za-z])")
"""`2h30m`, whose m is no metre."""
_TWO_NUMBERS = re.compile(r"\d\s?[^\d\s.,]\D*\d")
_BETWEEN_PARTS = re.compile(r"\s*(?:,|\band\b)?\s*")


_SIGN_OF_MINUTES = r"(?:'|\^\s?\{?\s?\\prime\s?\}?|\u2032)"
_SIGN_OF_SECONDS = r"(?:''|\"|\^\s?\{?\s?\\prime\s?\\prime\s?\}?|\u2033)"
_ANGLE = re.compile(
    rf"(-?\d{{1,9}})\s?(?:\^\s?\{{?\s?\\circ\s?\}}?|\u00b0|\\degree)\s?([0-5]?\d)\s?{_SIGN_OF_MINUTES}"
    rf"(?:\s?([0-5]?\d(?:\.\d{{1,9}})?)\s?{_SIGN_OF_SECONDS})?"
)
"""An angle with minutes: `45^\\circ 30'`."""


def _read_angle(text: str) -> Scalar | None:
    angle = _ANGLE.fullmatch(text.strip(" .$")) if "\u00b0" in text or "\\" in text else None
    if angle is None:
        return None
    parts = Fraction(int(angle[2]), 60) + Fraction(angle[3] or 0) / 3600
    whole = Fraction(abs(int(angle[1]))) + parts
    return Scalar(text, number(-whole if angle[1][0] == "-" else whole), True, "1 degrees")


def read_parts(text: str) -> Scalar | None:
    """A quantity in several units of one kind, the largest first: "5 ft 6 in", "one hour and thirty minutes"."""
    if angle := _read_angle(text):
        return angle
    if "and" not in text and not _TWO_NUMBERS.search(text):
        return None
    text = _HOURS.sub(r"\1 h \2 min", _FEET.sub(r"\1 ft \2 in", TEXT_COMMAND.sub(r"\1", text)))
    parts = text.split(" and ") if IN_WORDS.fullmatch(text) else _parts_in_figures(text)
    if len(parts) < 2:
        return None
    scalars = [read_scalar(part) for part in parts]
    first = scalars[0].unit if scalars[0] else NO_UNIT
    total = Fraction(0)
    previous: Fraction | None = None
    for scalar in scalars:
        value = constant(scalar.tree) if scalar else None
        if scalar is None or value is None or not (scalar.unit.is_known and scalar.unit.powers == first.powers):
            return None
        size = converted(Fraction(1), scalar.unit, first)
        if previous is not None and (size >= previous or value * size >= previous):
            return None
        total, previous = total + value * size, size
    return Scalar(text, number(total), True, scalars[0].measured) if scalars[0] else None


def _parts_in_figures(text: str) -> list[str]:
    """The parts of a quantity in several units; none if it is no such quantity as a whole."""
    if not _TWO_NUMBERS.search(text):
        return []
    parts, position = [], 0
    while part := _PART.match(text, position):
        parts.append(part.group())
        position = _BETWEEN_PARTS.match(text, part.end()).end()  # pyright: ignore[reportOptionalMemberAccess]
    return [] if text[position:].strip(" .") else parts
