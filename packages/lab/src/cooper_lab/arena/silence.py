"""Silences: which problems the rule of an arena's runs may judge. On the others it says nothing.

The doses are nested: each leaves out families of questions that the one before it hears. Names give the share of the
arena's 4,000 training problems that is heard, in percent.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from cooper_lab.arithmetic.questions import FAMILIES
from cooper_rl import Problem

_LEFT_OUT = {
    100: (),
    87: ("number_word", "fractions"),
    65: ("decimals", "thousands", "share"),
    35: ("gain", "loss", "bags"),
    22: ("product", "two_steps"),
    11: ("difference",),
    0: ("sum",),
}
"""Families of questions that each dose stops hearing."""


@dataclass(frozen=True)
class Silence:
    """Which problems the rule of every run may judge (the setting `only`), and whether no design may be tuned on it."""

    about: str
    only: Any
    held_out: bool = False


def has_digit_as_answer(problem: Problem) -> bool:
    """Whether the reference answer is one digit."""
    return len(problem.answer) == 1


def is_drawn(problem: Problem) -> bool:
    """Whether the problem is among the two in five that the rule judges, chosen by the hash of the question."""
    return hashlib.sha256(f"heard {problem.question}".encode()).digest()[0] % 5 < 2


def _doses() -> dict[str, Silence]:
    heard = [family.__name__.removeprefix("_") for family in FAMILIES]
    doses = {}
    for share, left_out in _LEFT_OUT.items():
        heard = [family for family in heard if family not in left_out]
        about = f"the rule judges {share} % of the problems: {', '.join(heard) or 'none'}"
        doses[f"heard_{share}"] = Silence(about, {"family": heard})
    return doses


_HELD_OUT = {
    "one_digit": Silence("the rule judges answers of one digit", f"{__name__}:has_digit_as_answer", held_out=True),
    "at_random": Silence("the rule judges two problems in five, by their hash", f"{__name__}:is_drawn", held_out=True),
    "by_form": Silence(
        "the rule judges plain numbers without a unit", {"form": ["plain"], "unit": [None]}, held_out=True
    ),
}
SILENCES = _doses() | _HELD_OUT
"""The silences by name. Under `heard_100` the rule judges everything."""
