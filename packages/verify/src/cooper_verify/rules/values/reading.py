"""All readings of a text as a value: each reader takes the whole text, or gives nothing.

A text may have several readings: `(1,3)` is a pair and an interval, `1,22` a list and a decimal. It is what the other
side says it is.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from cooper_verify.rules.number import figures_value
from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.unit_table import CURRENCY_SIGNS
from cooper_verify.rules.values.collection import (
    Several,
    Tuple,
    both_signs,
    items,
    read_bracket,
    read_determinant,
    read_division,
    read_list,
    read_ratio,
    with_both_signs,
)
from cooper_verify.rules.values.congruence import read_congruence, read_steps
from cooper_verify.rules.values.estimate import value_of
from cooper_verify.rules.values.integers import read_integers
from cooper_verify.rules.values.none import read_none
from cooper_verify.rules.values.notation import CASES_OPEN, SET_OPEN, depth, prepared, split
from cooper_verify.rules.values.parts import read_parts
from cooper_verify.rules.values.piecewise import Piecewise, read_piecewise
from cooper_verify.rules.values.region import (
    Region,
    point,
    read_condition,
    read_inequality,
    read_member,
    read_region,
    united,
)
from cooper_verify.rules.values.relation import Named, System, label, read_chain, read_equation
from cooper_verify.rules.values.scalar import Scalar, read_scalar
from cooper_verify.rules.values.tree import has, number

_LONGEST = 8000
_DEEPEST = 30
"""Brackets in brackets."""
_SIZES = re.compile(r"[<>\u2264\u2265\u2260]")
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d+|\d+,(?!\d{3}\Z)\d+)")
_ONLY_DECIMAL = re.compile(r"-?(?:0,\d{2,20}|\d{1,9},(?!\d{3}\Z)0\d{1,19})")
"""`0,25` and `2,05`, which are hardly lists."""
_POINTS_IN_THOUSANDS = re.compile(r"-?\d{1,3}(?:\.\d{3})+,\d+")
_MONEY_WITH_POINT = re.compile(
    rf"(?:[{CURRENCY_SIGNS.replace('£', '')}]|R\\?\$)\s?\d{{1,3}}(?:\.\d{{3}})+"
    rf"|\d{{1,3}}(?:\.\d{{3}})+\s?(?:[{CURRENCY_SIGNS.replace('£', '')}]|euros?\b|EUR\b|BRL\b|reais\b)"
)
"""`€1.200`, which is 1200 in most countries with euros."""
_MIXED = re.compile(r"(\d{1,9}) and ((?:\\[dt]?frac\s?)?(?:\{?\d{1,9}\}?){2}|\d{1,9}/\d{1,9})(?!\d)([^\d]*)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){1,9}")
_LAKHS = re.compile(r"[1-9]\d?(?:,\d{2}){1,6},\d{3}")
"""Groups as in India: `12,34,567`."""
_OTHER_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[.'_]\d{3}){1,9}(?!\d)")
_COMMA_IN_NUMBER = re.compile(r"(?<=\d),(?=\d)(?!\d{3}(?!\d))")
_DECIMAL_OR_LIST = re.compile(
    r"-?\d{1,9},\d{1,2}\s?(?!and\b|or\b|\d)[^\s\d,;.)\]}][^\d,;]*"
    rf"|-?(?:[{CURRENCY_SIGNS}]|\\?\$)\s?\d{{1,9}},\d{{1,2}}"
)
"""`2,5 km`, which is 2.5 km in many countries, or 2 and 5 km."""
_MIXED_WITH_HYPHEN = re.compile(r"\d{1,9}-\d{1,9}/\d{1,9}")


@text_cache(8192)
def readings(text: str) -> tuple[Any, ...]:
    """The values that a text may be, as a whole; none if it cannot be read."""
    if len(text) > _LONGEST or depth(text) > _DEEPEST:
        return ()
    return tuple(_read(prepared(text)))


def is_piecewise(text: str) -> bool:
    r"""Whether a text is values by cases, perhaps with a name."""
    return r"\begin{cases}" in text and "&" in text and any(_has_cases(value) for value in readings(text))


def _has_cases(value: Any) -> bool:
    return isinstance(value, Piecewise) or (isinstance(value, Named) and isinstance(value.value[0], Piecewise))


def answer_readings(text: str) -> tuple[Any, ...]:
    """The readings of an answer, in which `1,22` and `1,22 m` may be 1.22 too, and `1,200` a list. In a reference,
    `1,22` is two numbers and `1,200` one."""
    comma = [_figures(text, text.replace(",", "."))] if _DECIMAL_COMMA.fullmatch(text) else []
    if _DECIMAL_OR_LIST.fullmatch(plain := prepared(text)):
        comma = [read_scalar(plain.replace(",", ".", 1)), read_list(plain.split(","), _read, "list")]
    listed = [read_list(text.split(","), _read, "thousands")] if _THOUSANDS.fullmatch(text) else []
    lakhs = [_figures(text, text.replace(",", ""))] if _LAKHS.fullmatch(text) else []
    return (*readings(text), *filter(None, (*comma, *listed, *lakhs)))


def doubtful_readings(text: str) -> tuple[Any, ...]:
    """What a text may be where its writer's country or habit is not known: 1000 for `1.000` and `1'000`, 2.5 km for
    `2,5 km`, a list for `1,234`, and 3/2 for `1-1/2`. Nobody can say that such a text differs from this value, nor
    that it is it."""
    listed = [read_list(text.split(","), _read, "list")] if _THOUSANDS.fullmatch(text) else []
    mixed = [read_scalar(text.replace("-", " "))] if _MIXED_WITH_HYPHEN.fullmatch(text) else []
    whole = _OTHER_THOUSANDS.sub(lambda figures: re.sub(r"\D", "", figures.group()), text)
    others = [whole] if whole != text else []
    if "," in whole and (";" in whole or whole[0] not in "([{\\"):
        decimal = _COMMA_IN_NUMBER.sub(".", whole)
        others += [] if "," in decimal else [decimal.replace(";", ",")]
    return (
        *answer_readings(text),
        *filter(None, (*listed, *mixed)),
        *(value for text in others for value in readings(text)),
    )


def _figures(text: str, figures: str) -> Scalar | None:
    value = figures_value(figures)
    return None if value is None else Scalar(text, number(value, "." in figures), True)


def ratio_readings(text: str) -> tuple[Any, ...]:
    """The readings of a text, of which `3:11` is a ratio and "three fifths" a number."""
    return readings(text) or tuple(filter(None, [read_ratio(text), read_scalar(text)]))


def _read(text: str) -> list[Any]:
    if (none := read_none(text)) is not None:
        return [none]
    if _MONEY_WITH_POINT.fullmatch(text):
        return []
    if _POINTS_IN_THOUSANDS.fullmatch(text) or _DECIMAL_OR_LIST.fullmatch(text):
        return []  # `1.234,5`, as many countries write 1234.5, or two numbers
    if division := read_division(text) or ("mod" in text and read_congruence(text)):
        return [division]
    if ")" in text and (labelled := _labelled(text)):
        return [labelled]
    alternatives = split(text, " or ")
    if len(alternatives) > 1:
        return _alternatives([part.strip(" ,;") for part in alternatives])
    parts = items(text)
    found: list[Any] = []
    if len(parts) == 1:
        found = _single(text)
    else:
        found = _listed(parts, text)
        mixed = _MIXED.fullmatch(text)  # "2 and 1/3"
        found += filter(
            None, [read_scalar(text), read_parts(text), mixed and read_scalar(" ".join(mixed.groups()).strip())]
        )
    if "Z" in text and (integers := read_integers(text)):
        return [integers]
    if steps := read_steps(text):
        found.append(steps)
    if _ONLY_DECIMAL.fullmatch(text):
        found.append(Scalar(text, number(Fraction(text.replace(",", ".")), True), True))
    return found


_PART_LABEL = re.compile(r"(?:\A|(?<=[\s,;.}]))(?:\\text\s?\{\s?)?\(?([a-h])\)\s?\}?(?=[\s\\$-]*[\w\\$.-])")
"""`(a) 12, (b) 14`."""


def _labelled(text: str) -> System | None:
    """Values of the parts of a question, by their labels; None for what has not all labels from (a) on."""
    labels = [*_PART_LABEL.finditer(text)]
    if len(labels) < 2 or labels[0].start() or sorted(mark[1] for mark in labels) != [*"abcdefgh"][: len(labels)]:
        return None
    ends = [mark.start() for mark in labels[1:]] + [len(text)]
    values = [_read(text[mark.end() : end].strip(" ,;.")) for mark, end in zip(labels, ends, strict=True)]
    if not all(values):
        return None
    return System(tuple(Named(f"({mark[1]})", (), value) for mark, value in zip(labels, values, strict=True)))


def _alternatives(parts: Sequence[str]) -> list[Any]:
    """What parts between "or" are together: a union of conditions, the values of one name, or different solutions."""
    regions = [_region(part) for part in parts]
    if any(_SIZES.search(part) or "\u222a" in part for part in parts):
        whole = united(regions)
        return [whole] if whole else []
    named = _of_one_name(parts)
    flat = [item for part in parts for item in items(part)]  # "43, 21 or 7"
    if not named and len(flat) > len(parts) and all(map(read_scalar, flat)):
        parts = flat
    return named or [*filter(None, [read_list(parts, _read, "alternatives")])]


def _region(text: str) -> Region | None:
    """A condition, an interval, or a variable's only value as a condition."""
    if condition := read_condition(text) or read_region(text):
        return condition
    for value in _single(text):
        if isinstance(value, Named) and isinstance(value.value[0], Scalar):
            return Region((point(value.value[0].tree),), name=value.name)
    return None


def _of_one_name(parts: Sequence[str]) -> list[Any]:
    """The values of one name: `x = 1`, `x = 3`, or the name once: `x = 1`, `3`."""
    elements = [_read(part) for part in parts]
    named = [element[0] for element in elements if element and isinstance(element[0], Named)]
    if not named or not all(elements) or len({value.name for value in named}) > 1 or elements[0][0] is not named[0]:
        return []
    values = [
        value for element in elements for value in _flat(element[0].value if isinstance(element[0], Named) else element)
    ]
    return [Named(named[0].name, named[0].parameters, [Several(tuple(values), "list")])]


def _flat(value: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The values of a list that a name has: "x = 1, 2 or 3"."""
    is_list = isinstance(value[0], Several) and value[0].form == "list"
    return value[0].elements if is_list else [value]


def _listed(parts: Sequence[str], text: str) -> list[Any]:
    """What several parts are together: conditions that all hold, named values, or a list."""
    if any(_SIZES.search(part) for part in parts) and (condition := read_condition(text)):
        return [condition]
    groups = [part for part in split(text, ";") if part]
    if len(groups) > 1 and any("," in group for group in groups):
        return [*filter(None, [read_list(groups, _read, "list")])]
    elements = [_read(part) for part in parts]
    if not all(elements):
        return []
    named = [element[0] for element in elements if isinstance(element[0], Named)]
    if len(named) == len(parts):
        names = [value.name for value in named]
        if len({*names}) == len(names):
            return [System(tuple(named))]
        if len({*names}) > 1:
            return _repeated_systems(named)
    if named:
        return _of_one_name(parts)
    found = read_list(parts, _read, "list")
    return [with_both_signs(found)] if found else []


def _repeated_systems(named: Sequence[Named]) -> list[Any]:
    """`p=5, q=2, p=7, q=2`: as many solutions as the first name occurs."""
    starts = [place for place, value in enumerate(named) if value.name == named[0].name]
    groups = [named[start:end] for start, end in zip(starts, [*starts[1:], len(named)], strict=True)]
    if len({tuple(value.name for value in group) for group in groups}) > 1:
        return []
    return [Several(tuple((System(tuple(group)),) for group in groups), "list")]


def _is_near(exact: str, rounded: str) -> bool:
    """Whether one number may be the other, rounded; what is no number may be."""
    scalars = read_scalar(exact), read_scalar(rounded)
    if None in scalars:
        return scalars[1] is not None
    sizes = [value_of(scalar.tree) for scalar in scalars if scalar]
    return None in sizes or abs(sizes[0] - sizes[1]) <= _ROUNDED * abs(sizes[0])  # pyright: ignore


_ROUNDED = 0.05


_NEIGHBOURS = re.compile(
    r"\(\s?(?:x\s?,\s?y(?:\s?,\s?z)?|a\s?,\s?b(?:\s?,\s?c)?|m\s?,\s?n|p\s?,\s?q(?:\s?,\s?r)?)\s?\)"
)
"""Names in the order in which nobody would say them otherwise: `(x,y,z)`."""
_POINT = re.compile(r"([A-Z](?:'|_\w)?)\s?(\(.*\))")
"""`C(3,-4)`, a point and its name."""


def _read_point(text: str) -> Named | None:
    found = _POINT.fullmatch(text)
    values = [value for value in read_bracket(found[2], _read) if isinstance(value, Tuple)] if found else []
    return Named(found[1], (), values) if found and values else None


def _single(text: str) -> list[Any]:
    if text.startswith(CASES_OPEN):
        return [*filter(None, [read_piecewise(text, _read)])]
    outside = text.partition(CASES_OPEN)[0]
    sizes = any(sign in outside for sign in "<>\u2264\u2265\u2260") and not text.startswith(SET_OPEN)
    sides = split(text, "=")
    if len(sides) > 1:
        return [] if sizes or "\u2208" in text else read_equation(sides, _read)
    exact, *rounded = split(text, "\u2248")
    if rounded and exact:
        symbol = label(exact) if len(rounded) == 1 else None
        named = [Named(*symbol, value)] if symbol and (value := _single(f"\u2248{rounded[0]}")) else []
        return named + (_read(exact) if all(_is_near(exact, part) for part in rounded) else [])
    if sizes:
        return [*filter(None, [read_inequality(text) or read_chain(text)])]
    name, *of = split(text, "\u2208")
    if of:
        members = read_bracket(of[0], _read) if len(of) == 1 and of[0].startswith(SET_OPEN) else []
        if members and _NEIGHBOURS.fullmatch(name):
            return [*members]
        symbol = label(name) if members else None
        return [*filter(None, [read_member(name, of), symbol and Named(*symbol, members)])]
    if len(split(text, ":")) > 1:
        return [*filter(None, [read_ratio(text)])]
    if text[:1].isupper() and (named_point := _read_point(text)):
        return [named_point]
    scalar = read_parts(text) or read_scalar(text) or read_determinant(text)
    if scalar is not None and has(scalar.tree, "+-"):
        return [*filter(None, [both_signs(scalar)])]
    if scalar is not None:
        return [scalar]
    return [*filter(None, [*read_bracket(text, _read), read_region(text), read_parts(text)])]
