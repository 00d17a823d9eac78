r"""Single values: numbers, quantities and expressions. `3`, `7/2`, "5 km", `\$29`, `40\%`, `60^\circ`, `2\pi r`.

A number in an answer has its final form: `19 - 10` and `24/2` are no answers to the references 9 and 12, because the
question may be to compute them. A unit on one side only changes nothing. Two units are converted, or they differ.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.asked.words import unread
from cooper_verify.rules.quantities.number import any_number, figures_value, is_division, number_value, with_divisions
from cooper_verify.rules.quantities.units import (
    NO_UNIT,
    Unit,
    compare_units,
    converted,
    is_unit,
    measures,
    unit_of,
    without_unit,
)
from cooper_verify.rules.text.plain_text import TEXT_COMMAND, bare_text
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.values.estimate import differ_by_a_constant, value_of
from cooper_verify.rules.values.expression import Symbolic, is_estimate, is_rounded, is_rounding, same
from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.values.spelled import spelled_number
from cooper_verify.rules.values.tree import (
    Tree,
    canonical,
    constant,
    has,
    has_bare_logarithm,
    has_decimal,
    inverse,
    names,
    number,
    replaced,
)
from cooper_verify.rules.vocabulary.number_words import (
    APPROXIMATELY_BEFORE,
    CONDITION,
    ONES,
    changes_number,
    is_conditional,
    with_scales,
    without_scales,
)


@dataclass(frozen=True)
class Scalar:
    """A number or an expression, with the unit and the words beside it."""

    text: str
    tree: Tree
    is_final: bool
    """Whether it is a number in its final form."""
    measured: str = "1"
    """A number with the unit."""
    is_scaled: bool = False
    """Whether a word multiplies the number: "12 million"."""
    is_approximate: bool = False
    base: int | None = None
    """The base that is written at it."""

    @cached_property
    def unit(self) -> Unit:
        if self.measured.isdecimal():
            return NO_UNIT
        attached = _ATTACHED.fullmatch(self.measured)
        return unit_of(f"1 {attached.group(2)}" if attached else self.measured)

    @cached_property
    def product(self) -> Tree | None:
        r"""The formula that it is if the letters of its unit are factors: `\frac{1}{2}mg`, `2kT`."""
        return formula(self.text) if self.unit and _LETTERS_AT_END.search(self.text) else None

    @property
    def is_attached(self) -> bool:
        """Whether its unit may be a factor: `6m`."""
        return (
            not self.measured[-1:].isdecimal() and bool(_ATTACHED.fullmatch(self.measured)) and " " not in self.measured
        )


_APPROXIMATELY = re.compile(r"(?:\u2248|~|\\sim(?![A-Za-z]))\s*")
_BASE = re.compile(
    r"(?P<open>\()?(?P<figures>-?\d[\dA-F.]*|[A-F][\dA-F]+)(?(open)\))"
    r"(?:_\s*\{?\s*(?:(?P<base>\d{1,9})|\\text\{(?P<word>[a-z]{2,9})\})\s*\}?"
    r"|\s?(?:\\text\{)?\s?\(?(?:in\s)?(?:base[ -](?P<said>\d{1,2}|[a-z]{3,7})|(?P<name>binary|octal|hex))\)?\}?)"
    r"|0(?P<prefix>[xXbBoO])(?P<digits>[\dA-Fa-f]+)"
)
"""`101_2`, `FF_{16}`, "101 (base two)", "17 in octal", `0xFF`."""
_BASES = ONES | {"binary": 2, "b": 2, "octal": 8, "o": 8, "hex": 16, "x": 16}
_WITH_REMAINDER = re.compile(r"\d{1,20}\s?[Rr]\s?\d{1,20}")
"""`17 R 3`, which is no product."""
_CALL = re.compile(r"(?<![A-Za-z\\])(\\[A-Za-z]+|[A-Za-z])\s*(?:\\left\s*)?\(")
"""A name before a bracket, which may be a function: `\\Gamma(n+1)`, `\\zeta(2)`, `f(3)`."""
_CONSTANTS = {*"ABCDKcdk"}
_POWER_OF_UNIT = re.compile(
    r"(?<=[A-Za-z])\s?\^\s?(?:\{\s?)?-?\d\s?\}?|(?<=[A-Za-z])[23](?!\d)|(?<=[a-z])\s(?:squared|cubed)\b"
)
_VERB_AFTER = re.compile(r"\d[\s$]{1,3}(?:is|are|was|were|has|have|will|can|could|should|would)\b")
_MAY_SCALE = re.compile(r"\d[kKMBT]\Z")
_PERCENT_AT_END = re.compile(r"\s*(?:\\?%|\bper ?cent|\bpct)\Z")
_ATTACHED = re.compile(r"(-?\d[\d,.]*?)\s?([msghlLNJWVAC])")
_LETTERS_AT_END = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,3}(?:\s?\^\s?\{?\d\}?)?\Z")
_FIGURES_WITH_LETTERS = re.compile(r"-?[\d.,]+\s?[A-Za-z]+")
"""`5cm`, of which the letters are a unit."""
_CHANGED_FIGURES = re.compile(r"\d\s?\^?\s?(?:\{\s?|\\text\{)?(?:st|nd|rd|th)\b|\d\s?(?:B\.?C\.?E?|A\.?D|C\.E|CE)\b")
_LETTER_OF_UNIT = re.compile(r"(?<![A-Za-z])([A-Za-z])[\s}]*\Z")
_REASON = re.compile(
    r",?\s(?:because|since|so that|as (?:it|he|she|they|we|there|the)|which|where|after|when rounded|after rounding"
    r"|if we round|rounded|assuming)\b"
)
IN_WORDS = re.compile(r"(?:minus |negative )?[A-Za-z]+(?:[ -][A-Za-z]+){0,12}")
"""A number in words, perhaps with a unit."""
_MOST_WORDS = 12


@text_cache(8192)
def read_scalar(text: str) -> Scalar | None:
    """The single value that a whole text is; None if it is none."""
    text, is_approximate = _without_approximation(text)
    if (reason := _REASON.search(text)) and not re.search(r"[\d\\]", text[reason.end() :]):
        is_relative = reason.group().strip(" ,") in ("which", "where", "after", "assuming")
        if is_conditional(text[reason.start() :]) or (is_relative and unread(text[reason.end() :])):
            return None
        text = text[: reason.start()]
    scaled = with_scales(text)
    if base := _BASE.fullmatch(scaled):
        return _read_in_base(text, base)
    if (
        not scaled
        or _WITH_REMAINDER.fullmatch(scaled)
        or _CHANGED_FIGURES.search(scaled)
        or _VERB_AFTER.search(scaled)
        or any(map(_changes, TEXT_COMMAND.findall(scaled)))
    ):
        return None
    value = _value(scaled)
    return Scalar(text, *value, is_scaled=scaled != text, is_approximate=is_approximate) if value else None


def _read_in_base(text: str, found: re.Match[str]) -> Scalar | None:
    """A number whose base is written at it. The tree is that of its figures, and with letters a name."""
    digits, *names_of_base = found["figures"] or found["digits"].upper(), *found.group("base", "word", "said", "name")
    name = next(filter(None, (*names_of_base, found["prefix"]))).lower()
    base, value = int(name) if name.isdecimal() else _BASES.get(name), figures_value(digits)
    return Scalar(text, ("name", digits) if value is None else number(value), True, base=base) if base else None


def _without_approximation(text: str) -> tuple[str, bool]:
    first = re.search(r"[\d\\-]", text)
    if first and first.start() and APPROXIMATELY_BEFORE.search(text[: first.start()]):
        return text[first.start() :], True
    sign = _APPROXIMATELY.match(text)
    return (text[sign.end() :], True) if sign else (text, False)


def _changes(words: str) -> bool:
    """Whether words inside a formula say more than its unit does: "or more", "if even", "or (2,1)"."""
    words = _POWER_OF_UNIT.sub("", words)
    return bool(changes_number(words) or CONDITION.search(words) or re.search(r"\d", words))


def _value(text: str) -> tuple[Tree, bool, str] | None:
    r"""The tree of a value with a unit, whether it is in its final form, and a number with its unit."""
    if percent := _PERCENT_AT_END.search(text):
        share = text[: percent.start()]
        value = None if _PERCENT_AT_END.search(share) else _value(share)
        return (value[0], value[1], "1 %") if value and not unit_of(value[2]) else None
    plain = bare_text(with_divisions(text)) if "\\" in text else text
    for figures in dict.fromkeys((text, plain)):
        if (figure := any_number(figures)) is not None and (tree := _figure(figure)) is not None:
            return tree, not is_division(figure), text
    attached = _ATTACHED.fullmatch(plain)
    if attached and (value := figures_value(attached.group(1).replace(",", ""))) is not None:
        return number(value), True, plain
    bare = without_unit(text)
    tree = formula(bare)
    if tree is not None:
        unit = text[len(bare) :]
        return tree, _is_final(tree), f"1 {unit}" if unit else "1"
    return _spelled(text)


def _spelled(text: str) -> tuple[Tree, bool, str] | None:
    """A number in words, perhaps with a unit: "twelve apples"."""
    words = text.split(" ")[:_MOST_WORDS] if IN_WORDS.match(text) else []
    for count in range(len(words), 0, -1):
        value, unit = spelled_number(" ".join(words[:count])), " ".join(words[count:])
        if value is not None and words[:count] not in (["a"], ["an"]) and (not unit or is_unit(f" {unit}")):
            return number(value), True, f"1 {unit}"
    return None


def _figure(figure: str) -> Tree | None:
    """The tree of what `plain_number` gives."""
    mantissa, _, exponent = figure.partition("e")
    value = number_value(mantissa)
    if value is None or abs(int(exponent or 0)) > 400:
        return None
    return number(value * Fraction(10) ** int(exponent or 0), "." in mantissa)


def _is_final(tree: Tree) -> bool:
    """Whether a tree is a number in its final form: with a sign, as a fraction, or with a power of ten."""
    value = constant(tree)
    if value is None:
        return False
    if tree[0] == "*" and tree[1][0] == "number" and len(tree) == 3:
        if tree[1][1] == -1:
            return _is_final(tree[2])
        if tree[2][0] == "^":
            _, base, exponent = tree[2]
            is_fraction = exponent == number(-1) and base[0] == "number" and value.denominator != 1
            return is_fraction or base == number(10)
    return tree[0] == "number" or (tree[0] == "^" and tree[1] == number(10))


def _is_irrational(reference: Scalar, answer: Scalar) -> bool:
    """Whether an answer has no other exact form than an expression, and the reference is its decimal."""
    return has_decimal(reference.tree) and constant(answer.tree) is None and not names(answer.tree)


def compare_scalars(reference: Scalar, answer: Scalar, symbolic: Symbolic, expressions: bool = False) -> Verdict:
    """The verdict on a single value."""
    if any(_MAY_SCALE.search(side.text) for side in (reference, answer)) and names(reference.tree) != names(
        answer.tree
    ):
        return "unparsed"  # 12k may be 12 thousand, and 12K 12 kelvins
    if answer.is_scaled != reference.is_scaled or (answer.is_scaled and reference.is_scaled):
        return _compare_scaled(reference, answer, symbolic, expressions)
    if answer.base != reference.base:
        if reference.base is None and answer.base != 10:
            return "unparsed"  # 101_2 may be the question
        if reference.base and _in_base(reference) == _in_base(answer):
            return "unparsed"  # the same number, in a base that may be asked for
        if reference.base and answer.base:
            return "wrong"
        if "name" in (reference.tree[0], answer.tree[0]):
            return "unparsed"  # FF, of which nobody knows the base
    return _compare(reference, answer, symbolic, expressions)


def _in_base(scalar: Scalar) -> Fraction | None:
    """The value of a whole number's figures in its base."""
    figures = scalar.tree[1] if scalar.tree[0] == "name" else constant(scalar.tree)
    base = scalar.base or 10
    if figures is None or not 2 <= base <= 36:
        return None
    try:
        return Fraction(int(str(figures), base))
    except ValueError:  # a figure that the base does not have
        return None


def _compare_scaled(reference: Scalar, answer: Scalar, symbolic: Symbolic, expressions: bool) -> Verdict:
    """The verdict where a word multiplies a number. `12` and "12 million" may mean the same, for a question may ask for
    millions. Where the reference has no such word, another number with one is left to a reader."""
    verdict = _compare(reference, answer, symbolic, expressions)
    if not reference.is_scaled:
        return "correct" if verdict == "correct" else "unparsed"
    if verdict == "wrong" and not answer.is_scaled:
        bare = read_scalar(without_scales(reference.text))
        if bare is None or _compare(bare, answer, symbolic, expressions) != "wrong":
            return "unparsed"
    return verdict


def _compare(reference: Scalar, answer: Scalar, symbolic: Symbolic, expressions: bool) -> Verdict:
    is_number = reference.tree[0] == "number" and "\\" not in reference.text
    are_angles = {reference.unit.names, answer.unit.names} == {("degree",), ("radian",)}
    units = "same" if are_angles else compare_units(reference.unit, answer.unit)
    if (reference.product or answer.product) and (units != "same" or not (reference.unit and answer.unit)):
        verdict = _compare_products(reference, answer, symbolic)
        if verdict:
            return verdict
    if units == "converted":
        return _compare_converted(reference, answer)
    if units == "different":
        return "wrong"
    if units == "unknown":
        is_count = not reference.unit.names and not answer.unit.names
        are_same = any(same(reference.tree, tree, symbolic) for tree in _readings(reference, answer))
        return "wrong" if is_count and not are_same else "unparsed"
    if _may_be_unit(reference, answer) or _may_be_unit(answer, reference):
        return "unparsed"
    if is_number and has(answer.tree, "factorial") and not expressions:
        return "unparsed"  # 5! may be the question, and 9!!! takes forever
    letter = None if reference.unit else _LETTER_OF_UNIT.search(answer.measured)
    if letter and letter[1] in names(reference.tree):
        return "unparsed"  # grams, or the variable g again
    trees = _readings(reference, answer)
    if any(same(reference.tree, tree, symbolic) for tree in trees):
        is_unfinished = reference.is_final and not answer.is_final  # a reference may be 4/2 itself
        if is_number and not expressions and is_unfinished and not _is_irrational(reference, answer):
            return "unparsed"
        if bool(reference.unit) != bool(answer.unit) and (reference.is_attached or answer.is_attached):
            return "unparsed"  # 7N is a force or seven times a variable
        if answer.is_approximate and is_number and not (reference.is_approximate or _is_measured(reference.tree)):
            return "unparsed"  # "about 12" is no count; a reference with decimals is rounded itself
        return "correct"
    if answer.is_approximate or any(has_bare_logarithm(side.tree) for side in (reference, answer)):
        return "unparsed"
    if any(is_rounded(reference.tree, tree) for tree in trees):
        return "correct"
    if any(_may_be_rounded(reference.tree, tree) for tree in trees):
        return "unparsed"
    if answer.unit.is_("percent") and answer.tree == reference.tree:
        return "unparsed"  # `0.4%` for 0.4
    if _is_rounded_power(reference, answer) or _may_be_angle(reference, answer):
        return "unparsed"
    return "unparsed" if _has_other_names(reference, answer, symbolic) else "wrong"


def _compare_products(reference: Scalar, answer: Scalar, symbolic: Symbolic) -> Verdict | None:
    r"""The verdict on values of which the letters of a unit may be factors: `\frac{3}{2}kT`, which is `\frac{3kT}{2}`
    and no fraction of a tesla. None if they are the unit."""
    sides = reference, answer
    one, other = (side.product or side.tree for side in sides)
    is_measured = any(
        side.unit.dimension.startswith("length") or _FIGURES_WITH_LETTERS.fullmatch(side.text)
        for side in sides
        if side.unit
    )  # 36\pi cm^2 and 5mg
    are_units = bool(reference.unit and answer.unit)
    if names(one) == names(other) and same(one, other, symbolic):
        return "unparsed" if are_units or is_measured else "correct"
    return None if are_units or is_measured else "unparsed"


_POWER_OF_TEN = re.compile(
    r"-?(\d\.\d{1,20})\s?(?:[eE][+-]?\d|(?:\\(?:times|cdot)|[x*\u00d7\u00b7])\s?10\s?(?:\^|\*\*))"
)


def _is_rounded_power(reference: Scalar, answer: Scalar) -> bool:
    r"""Whether an answer in scientific notation is the reference, rounded: `1.23 \times 10^6` for 1234567."""
    mantissa = _POWER_OF_TEN.match(answer.text)
    expected, found = constant(reference.tree), constant(answer.tree)
    if mantissa is None or not expected or not found:
        return False
    return abs(expected - found) * Fraction(mantissa[1]) <= abs(found) / (2 * 10 ** (len(mantissa[1]) - 2))


def _may_be_angle(reference: Scalar, answer: Scalar) -> bool:
    r"""Whether a question may ask for degrees, of which neither side tells: `\\frac{\\pi}{3}` for 60."""
    turned = value_of(("*", answer.tree, number(180), inverse(("pi",)))) if has(answer.tree, "pi") else None
    return turned is not None and not has(reference.tree, "pi") and turned == value_of(reference.tree)


def _may_be_rounded(reference: Tree, answer: Tree) -> bool:
    if is_rounding(answer, reference) or is_estimate(reference, answer) or is_estimate(answer, reference):
        return True
    return has_decimal(reference) and has_decimal(answer) and is_rounding(reference, answer)  # 3.1416 for 3.14


def _compare_converted(reference: Scalar, answer: Scalar) -> Verdict:
    """The verdict on values in two units of one dimension. Decimals may be rounded in their seventh figure. Where no
    power of ten converts the units, a near value may be a rounded one."""
    expected, found = constant(reference.tree), constant(answer.tree)
    if expected is None or found is None:
        return "unparsed"
    unit = reference.unit
    found = converted(found, answer.unit, unit)
    tolerance = _ROUNDING if has_decimal(reference.tree) or has_decimal(answer.tree) else 0
    if abs(found - expected) <= tolerance * abs(expected):
        return "correct"
    ratio = answer.unit.size / unit.size
    is_power_of_ten = str(max(ratio, 1 / ratio)).rstrip("0") == "1" and unit.offset == answer.unit.offset
    is_near = abs(found - expected) * unit.size <= _NEAR * abs(expected * unit.size + unit.offset)
    return "unparsed" if is_near and not is_power_of_ten else "wrong"


def _may_be_unit(scalar: Scalar, other: Scalar) -> bool:
    """Whether the letters of a value without a unit may be the unit that the other has: `5/s` and `5 s^{-1}`."""
    found = names(scalar.tree)
    return bool(other.unit and not scalar.unit and found and not names(other.tree)) and all(
        measures(name) or name.isupper() or name in _COINS for name in found
    )


_COINS = {"c", "p"}
"""Cents and pence, which may be letters too."""
_ROUNDING, _NEAR = Fraction(1, 10**6), Fraction(1, 300)


def _readings(reference: Scalar, answer: Scalar) -> list[Tree]:
    """The trees that an answer may mean to a reference: `40%` is 40 and 0.4, and 30 degrees are pi/6."""
    tree = answer.tree
    if not reference.unit and not answer.unit:
        return [tree]
    shares = [scalar.unit.is_("percent") for scalar in (reference, answer)]
    if shares == [True, False]:
        return [tree, ("*", tree, number(100))]
    if shares == [False, True]:
        value = constant(reference.tree)
        share = ("*", tree, number(Fraction(1, 100)))
        return [share] if value is not None and 0 < abs(value) < 1 else [tree, share]
    degrees = [scalar.unit.is_("degree") for scalar in (reference, answer)]
    has_radians = reference.unit.is_("radian") or answer.unit.is_("radian")
    if degrees[0] != degrees[1] and (has_radians or not (reference.unit and answer.unit)):
        turned = (
            ("*", tree, ("pi",), number(Fraction(1, 180)))
            if degrees[1]
            else ("*", tree, number(180), ("^", ("pi",), number(-1)))
        )
        return [turned] if has_radians else [tree, turned]
    return [tree]


def _is_measured(tree: Tree) -> bool:
    """Whether a number has decimals that are not zero: it is rounded itself."""
    value = constant(tree)
    return has_decimal(tree) and value is not None and value.denominator != 1


def _has_other_names(reference: Scalar, answer: Scalar, symbolic: Symbolic) -> bool:
    """Whether the answer is the reference with another letter for its only variable or a constant of integration, with
    such constants exchanged, or with another part in one of them; or has a name in front of a bracket that the other
    lacks: that may be a function."""
    one, other = names(reference.tree), names(answer.tree)
    if one != other and {*map(_axis, one)} == {*map(_axis, other)}:
        return True  # \\hat{x} and \\hat{i}
    if one != other and {*map(bare_name, one)} == {*map(bare_name, other)}:
        return True  # \\hat{i} and i
    if (_called(reference) & one) - other or (_called(answer) & other) - one:
        return True
    constants = [name for name in sorted(one & other) if name[0] in "CK"]
    is_added = any(("name", name) in canonical(side.tree)[1:] for name in constants for side in (reference, answer))
    if is_added and differ_by_a_constant(reference.tree, answer.tree):
        return True
    if len(constants) == 2:
        first, second = [("name", name) for name in constants]
        exchanged = replaced(
            replaced(replaced(answer.tree, first, ("name", "#")), second, first), ("name", "#"), second
        )
        return same(reference.tree, exchanged, symbolic)
    functions = _called(reference) & _called(answer)
    one, other = one - functions, other - functions  # O(n) and O(N)
    if len(one) > 1 or len(other) > 1:
        one, other = one - other, other - one
        if not one | other <= _CONSTANTS:
            return False
    if len(one) != 1 or len(other) != 1 or one == other or answer.tree[0] == "name":
        return False
    return same(reference.tree, replaced(answer.tree, ("name", *other), ("name", *one)), symbolic)


def _axis(name: str) -> str:
    """The name of an axis's unit vector, of which `\\hat{x}` and `\\hat{i}` are one."""
    return re.sub(r"\A((?:hat|widehat|vec)\()([xyz])\)", lambda axis: f"{axis[1]}{'ijk'['xyz'.index(axis[2])]})", name)


def bare_name(name: str) -> str:
    """A name without its accent."""
    return _ACCENT.sub(r"\1", name)


_ACCENT = re.compile(r"\A(?:vec|hat|bar|tilde|widehat|overrightarrow)\((\w+)\)")


def _called(scalar: Scalar) -> set[str]:
    return {*_CALL.findall(scalar.text)} if "(" in scalar.text else set()
