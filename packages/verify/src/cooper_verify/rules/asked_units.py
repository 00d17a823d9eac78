"""Units and things of an answer, and whether a question may ask for them: "12 minutes", "12 boys"."""

import re

from cooper_verify.rules.counted_nouns import is_counted
from cooper_verify.rules.everyday_words import is_time
from cooper_verify.rules.question import WORDS, asks_once, says
from cooper_verify.rules.unit_table import measure_of
from cooper_verify.rules.units import Unit
from cooper_verify.rules.word_forms import form_of

_SYMBOL = r"[km]g|[ckm]m|ml|ft"
_ASKED_UNIT = re.compile(
    rf"\bhow many\s+(?:[a-z]+\s)??([a-z]{{3,}}|(?:{_SYMBOL})\b)"
    rf"|\bin\s\$?(?:\\(?:text|mathrm)\{{)?([a-z]{{3,}}|{_SYMBOL}|[gm])\b"
)
_HOW_MANY = re.compile(r"\bhow many\s+([a-z]{3,}+)(?!\sper\b)")
_SO_MANY = re.compile(r"\b\d[\d,]*\s(?:[a-z-]+\s)?[a-z]+")
"""Things whose number the question gives."""
_ASKED_THING = re.compile(r"\bhow many\s+((?:[a-z-]+\s){1,4})")


def measure_said(unit: Unit) -> list[str]:
    """The measure in which a value is, if it is one alone."""
    return [*unit.names] if len(unit.names) == 1 and not unit.words else []


def thing_said(unit: Unit) -> list[str]:
    """The things that a value counts."""
    return [unit.words[-1].casefold()] if unit.words and is_counted(unit.words[-1]) else []


def may_be_in(measure: str, asked: str) -> bool:
    """Whether a question may ask for a value in this unit: it names no other unit of the same dimension."""
    own = measure_of(measure)
    if "how old" in asked and measure != "year" and is_time(measure):
        return says(asked, measure)
    words = [next(filter(None, found.groups())) for found in _ASKED_UNIT.finditer(asked)]
    others = [other for other in map(measure_of, words) if own and other and other.powers == own.powers]
    if (
        own
        and asks_once(asked)
        and any((other := measure_of(word)) and other.powers != own.powers for word in _HOW_MANY.findall(asked))
    ):
        return False  # kilometers for "how many litres"
    return not others or any(other.size == own.size for other in others if own)


def may_count(thing: str, asked: str, question: str) -> bool:
    """Whether a question may ask for so many things: not for girls where the answer counts boys, of whom it tells."""
    counted = [word for found in _ASKED_THING.findall(asked) for word in found.split() if is_counted(word)]
    own = form_of(thing)
    if not counted or own not in map(form_of, WORDS.findall(question)):
        return True
    others = WORDS.findall(_SO_MANY.sub(" ", asked))
    return any(own.endswith(form_of(word)) for word in (*counted, *others))  # "watermelons"
