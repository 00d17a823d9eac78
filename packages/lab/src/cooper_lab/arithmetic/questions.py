"""Questions of the embedded arithmetic world: one or two operations, in words or symbols."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from cooper_lab.arithmetic.answers import UNITS, Form

NAMES = ("Amy", "Ben", "Cal", "Dee", "Eli", "Fay")


@dataclass(frozen=True)
class Draft:
    """A question and everything that is known about it.

    `work` is the reasoning before the answer, such as `12+7=19`. `unit` names what is counted, if anything. `form` is
    the surface form that the question asks for. `family` is the kind of question, a name in `FAMILIES`.
    """

    question: str
    work: str
    value: Fraction
    unit: str | None = None
    form: Form = "plain"
    family: str = ""


def draft_question(random: Random) -> Draft:
    """Draw a question from a random family, by the weights in `FAMILIES`."""
    (family,) = random.choices(list(FAMILIES), weights=list(FAMILIES.values()))
    return replace(family(random), family=family.__name__.removeprefix("_"))


def _ask(random: Random, symbols: str) -> str:
    """A calculation as a question."""
    return random.choice((f"{symbols} = ?", f"What is {symbols}?", f"Find {symbols}."))


def _sum(random: Random) -> Draft:
    a, b = random.randint(2, 20), random.randint(2, 12)
    return Draft(_ask(random, f"{a} + {b}"), f"{a}+{b}={a + b}", Fraction(a + b))


def _difference(random: Random) -> Draft:
    a, b = random.randint(2, 20), random.randint(2, 12)
    return Draft(_ask(random, f"{a} - {b}"), f"{a}-{b}={a - b}", Fraction(a - b))


def _product(random: Random) -> Draft:
    a, b = random.randint(2, 9), random.randint(2, 9)
    return Draft(_ask(random, f"{a} * {b}"), f"{a}*{b}={a * b}", Fraction(a * b))


def _two_steps(random: Random) -> Draft:
    a, b, c = random.randint(2, 12), random.randint(2, 9), random.randint(2, 9)
    work = f"{a}+{b}={a + b}, {a + b}-{c}={a + b - c}"
    return Draft(f"{a} + {b} - {c} = ?", work, Fraction(a + b - c))


def _number_word(random: Random) -> Draft:
    a, b = random.randint(2, 20), random.randint(2, 12)
    question = random.choice((f"{a} + {b} in words?", f"Say {a} + {b}."))
    return Draft(question, f"{a}+{b}={a + b}", Fraction(a + b), form="words")


def _fractions(random: Random) -> Draft:
    bottom = random.choice((2, 3, 4, 5))
    a, b = random.randint(1, 2 * bottom), random.randint(1, bottom)
    value = Fraction(a + b, bottom)
    return Draft(_ask(random, f"{a}/{bottom} + {b}/{bottom}"), f"{a}+{b}={a + b}, {a + b}/{bottom}", value)


def _decimals(random: Random) -> Draft:
    a, b = random.randint(1, 19), random.randint(1, 9)
    left, right, total = (f"{n / 10:g}" for n in (a, b, a + b))
    return Draft(_ask(random, f"{left} + {right}"), f"{left}+{right}={total}", Fraction(a + b, 10), form="decimal")


def _thousands(random: Random) -> Draft:
    a, b = random.randint(2, 20), random.randint(2, 12)
    value = Fraction(1000 * (a + b))
    return Draft(_ask(random, f"{a},000 + {b},000"), f"{a}+{b}={a + b}", value, form="thousands")


def _gain(random: Random) -> Draft:
    a, b, unit, name = random.randint(2, 20), random.randint(2, 12), random.choice(UNITS), random.choice(NAMES)
    question = f"{name} has {a} {unit} and gets {b}. How many?"
    return Draft(question, f"{a}+{b}={a + b}", Fraction(a + b), unit)


def _loss(random: Random) -> Draft:
    a, unit, name = random.randint(4, 20), random.choice(UNITS), random.choice(NAMES)
    b = random.randint(2, min(a, 12))
    return Draft(f"{name} has {a} {unit}, {b} are lost. How many?", f"{a}-{b}={a - b}", Fraction(a - b), unit)


def _bags(random: Random) -> Draft:
    a, b, unit = random.randint(2, 9), random.randint(2, 9), random.choice(UNITS)
    return Draft(f"{a} bags of {b} {unit}. How many {unit}?", f"{a}*{b}={a * b}", Fraction(a * b), unit)


def _share(random: Random) -> Draft:
    b, unit = random.randint(2, 9), random.choice(UNITS)
    a = random.randint(1, 2 * b) if random.random() < 0.5 else b * random.randint(2, 9)
    return Draft(f"{b} share {a} {unit}. How many each?", f"{a}/{b}", Fraction(a, b), unit)


FAMILIES: dict[Callable[[Random], Draft], float] = {
    _sum: 12,
    _difference: 14,
    _product: 8,
    _two_steps: 8,
    _number_word: 12,
    _fractions: 8,
    _decimals: 6,
    _thousands: 6,
    _gain: 8,
    _loss: 6,
    _bags: 6,
    _share: 6,
}
"""Relative frequency of each family of questions."""
