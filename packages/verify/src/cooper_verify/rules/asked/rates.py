"""Rates and spans of time in an answer, and whether a question asks for them: "12 a day", "12 in a week"."""

import re
from collections.abc import Sequence

from cooper_verify.rules.asked.everyday_words import is_time
from cooper_verify.rules.vocabulary.counted_nouns import is_counted
from cooper_verify.rules.vocabulary.number_words import ONES
from cooper_verify.rules.vocabulary.unit_table import MEASURES, measure_of

_TIME_NOUN = "second|minute|hour|day|week|month|year|decade"
_ADVERB = r"\b(?P<adverb>hourly|daily|weekly|monthly|yearly|annually|nightly)"
_ALONE = r"\b(?P<alone>each|apiece)\b"
_NO_SPAN = "".join(rf"(?<!\b{word} )" for word in ("in", "for", "of", "after", "within", "over"))
_OPENS_TEXT = r"(?:\\(?:text|mathrm)\{\s?)?"
_RATE_IN_UNIT = re.compile(
    rf"\bper\s+(?:\d+\s+)?{_OPENS_TEXT}(?P<per>[a-z]+)|(?:/\s?{_OPENS_TEXT}|\b(?:each|every|an?)\s+)(?P<noun>[a-z]+)"
    rf"|\\[dt]?frac\s?\{{[^{{}}]*+(?:\{{[^{{}}]*+\}})?\s?\}}\s?\{{{_OPENS_TEXT}(?P<under>[a-z]+)"
    rf"|(?<![A-Za-z\\])(?P<inverse>[a-z]{{1,4}})\}}?\s?\^\s?\{{?-1|(?<![a-z])(?P<symbol>mph|kmh|kph)\b|{_ADVERB}\b|{_ALONE}"
)
_RATE_AROUND = re.compile(
    rf"(?i)(?<![a-z])(?:per\s+(?:\d+\s+)?(?P<per>[a-z]+)|(?:each|every)\s+(?:\d+\s+)?(?!of\b)(?P<noun>[a-z]+))"
    rf"|{_NO_SPAN}\ban?\s+(?P<time>[a-z]+)|{_ADVERB}(?=\s*(?:[.,;]|\Z))|{_ALONE}"
)
TIMES_OF_ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year"}
TIMES_OF_ADVERBS |= {"annually": "year", "annual": "year", "nightly": "night"}
_TIMES = TIMES_OF_ADVERBS | {"mph": "hour", "kmh": "hour", "kph": "hour"}
_ASKS_RATE = re.compile(r"\b(?:rates?|speeds?|velocit\w+|fast|pace|densit\w+|wages?|hourly|acceleration|slope)\b")
_ASKS_SHARE = re.compile(r"\b(?:each|every|per|apiece|one|1|single|(?<!in )an?)\b")
_SHARES = re.compile(rf"\b(?:each|every\w*|per|apiece)\b(?!\s(?:{_TIME_NOUN})\b)")
_ONE = r"(?:\b(?:an?|one|1|per|each|every|single|the|this|that|his|her|their|its)\s+(?:\w+\s)?|[/-])"
_COUNT = rf"(?P<count>an?|per|each|every|\d{{1,4}}|{'|'.join(ONES)})"
_SPAN_AROUND = re.compile(
    rf"(?i)\b(?:in|for|over|within|during)\s(?:the\s)?(?:(?:next|first|last|past)\s)?{_COUNT}\s(?P<time>{_TIME_NOUN})s?\b"
)
_SPAN_ASKED = re.compile(rf"\b{_COUNT}[\s-](?P<time>{_TIME_NOUN})s?\b")


def rates(units: Sequence[str], around: Sequence[str]) -> list[str]:
    """For each of which times or things a value is: "day", and an empty text for "each". `units`: its unit's texts."""
    found = [rate for unit in units for rate in _RATE_IN_UNIT.finditer(unit)]
    found += [rate for text in around for rate in _RATE_AROUND.finditer(text)]
    return [noun for rate in found if (noun := _noun(rate)) is not None]


def _noun(found: re.Match[str]) -> str | None:
    kind, written = found.lastgroup or "", found[found.lastgroup or 0].casefold()
    measure = measure_of(written)
    word = _TIMES.get(written, measure.name if measure and is_time(measure.name) else written)
    if kind == "alone":
        return ""
    if kind in ("time", "inverse") and not is_time(word):
        return None
    if kind in ("noun", "under") and not (is_time(word) or is_counted(word, may_be_one=True)):
        return None
    return word


def spans(text: str) -> list[str]:
    """For how long a value is: "time 86400" of "in a day"."""
    return [*map(_length, _SPAN_AROUND.finditer(text))]


def asks_span(asked: str, span: str) -> bool:
    """Whether a value for such a time may be asked for: the question names no other, and does not ask for now."""
    times = [*map(_length, _SPAN_ASKED.finditer(asked))]
    return span in times or not (times or re.search(r"\bnow\b", asked))


def _length(found: re.Match[str]) -> str:
    """So many seconds or months, as "time 86400" and "calendar 1"."""
    count = found["count"].casefold()
    measure = MEASURES[found["time"].casefold()]
    size = measure.size * (int(count) if count.isdecimal() else ONES.get(count, 1))
    return f"{measure.powers[0][0]} {size}"


def asks_rate(asked: str, noun: str) -> bool:
    """Whether a rate is asked for: for each of what `noun` says, which is empty for "each"."""
    if _ASKS_RATE.search(asked) or names_rate(asked, noun):
        return True
    return not is_time(noun) and bool((_SHARES if noun else _ASKS_SHARE).search(asked))


def names_rate(asked: str, noun: str) -> bool:
    """Whether a question says for which time or thing it asks: "per week", "weekly"."""
    adverbs = "|".join(word for word, time in _TIMES.items() if time == noun and word != noun) or "(?!)"
    return bool(noun) and re.search(rf"{_ONE}{noun}s?\b|\b(?:{adverbs})\b", asked) is not None
