r"""Whole numbers by what they leave when divided: `x \equiv 3 \pmod 7`, `3 \pmod 7`, `x = 7k + 3`.

They are compared as sets of numbers: `x \equiv 3, 10 \pmod{14}` is `x \equiv 3 \pmod 7`.
"""

import re
from dataclasses import dataclass

from cooper_base.data.verdict import Verdict

_LARGEST = 10_000
"""Of a modulus that is compared."""
_MODULUS = (
    r"\s*\(?\s*(?:\\p?b?mod(?![A-Za-z])|\\text\{\s?\(?\s?mod\s?\}?|(?<![A-Za-z])mod(?![A-Za-z]))"
    r"\s*\{?\s*(\d{1,9})\s*\}?\s*\)*\}?"
)
_REST = r"(?:-|\\pm\s?|\u00b1\s?)?\d{1,9}"
_CONGRUENCE = re.compile(
    rf"(?:([A-Za-z])\s*(?:\\equiv|\u2261)\s*)?({_REST}(?:\s*(?:,|\bor\b|\band\b)\s*{_REST})*)(?:\s*,\s*)?{_MODULUS}"
)
_SEPARATOR, _FIGURES = re.compile(r",|\bor\b|\band\b"), re.compile(r"\d+")
_STEPS = re.compile(
    r"([A-Za-z])\s*=\s*(?:(\d{1,9})\s*([klmnt])\s*([+-]\s*\d{1,9})|(-?\d{1,9})\s*\+\s*(\d{1,9})\s*([klmnt]))"
    r"(?:\s*[,;]?\s*\(?\s*[klmnt]\s*(?:\\in|\u2208)\s*\\mathbb\s*\{?\s*Z\s*\}?\s*\)?)?"
)
"""`x = 7k + 3`."""


@dataclass(frozen=True)
class Congruence:
    """Numbers that leave one of some rests."""

    name: str
    """Empty if none is written."""
    rests: frozenset[int]
    modulus: int
    is_exact: bool = True
    """Whether the sign of a congruence shows that every such number is meant."""


def read_congruence(text: str) -> Congruence | None:
    found = _CONGRUENCE.fullmatch(text)
    if found is None:
        return None
    name, rests, modulus = found.groups()
    signed = [(rest, int(_FIGURES.search(rest).group())) for rest in _SEPARATOR.split(rests)]  # pyright: ignore
    numbers = [value if sign > 0 else -value for rest, value in signed for sign in _signs(rest)]
    return _congruence(name or "", numbers, int(modulus))


def _signs(rest: str) -> tuple[int, ...]:
    if "pm" in rest or "\u00b1" in rest:
        return (1, -1)
    return (-1,) if "-" in rest else (1,)


def read_steps(text: str) -> Congruence | None:
    """The numbers that `x = 7k + 3` may mean."""
    if (steps := _STEPS.fullmatch(text)) and (steps[3] or steps[7]) != steps[1]:
        rest = (steps[4] or steps[5]).replace(" ", "")
        return _congruence(steps[1], [int(rest)], int(steps[2] or steps[6]), is_exact=False)
    return None


def _congruence(name: str, rests: list[int], modulus: int, is_exact: bool = True) -> Congruence | None:
    if not 1 < modulus <= _LARGEST:
        return None
    return Congruence(name, frozenset(rest % modulus for rest in rests), modulus, is_exact)


def compare_congruences(reference: Congruence, answer: Congruence) -> Verdict:
    """The verdict on sets of whole numbers. What `x = 7k + 3` says of k is not known: it is never `wrong` beside a
    congruence, and two such are compared as formulas alone."""
    if not (reference.is_exact or answer.is_exact):
        return "wrong"
    if reference.name and answer.name and reference.name != answer.name:
        return "unparsed"
    if reference.modulus * answer.modulus > _LARGEST:
        return "unparsed"
    sides = [
        {rest + side.modulus * count for rest in side.rests for count in range(other.modulus)}
        for side, other in ((reference, answer), (answer, reference))
    ]
    if sides[0] == sides[1]:
        return "correct"
    return "wrong" if reference.is_exact and answer.is_exact else "unparsed"
