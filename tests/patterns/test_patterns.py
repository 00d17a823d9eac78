"""No regular expression of the packages takes more than linear time on any text that its loops suggest.

A completion, a reference, a reply or a request may hold any text. On a pattern that backtracks, a few dozen characters
stall the process for ever (exponential) and a long text for minutes (quadratic).
"""

import re
from collections.abc import Callable
from functools import cache

import pytest
from collect import Found, patterns
from pumps import Search, endless_text, possessive_groups, slow_text

from slow_members import first_fast

pytestmark = pytest.mark.xdist_group("sources")

EXPONENTIAL = {
    "decoration": (r"(?:[\s.,;:]*(?:!+|~|(?<=\s)[:;]-?[)D](?!\w)))+\s*\Z", "search"),
    "unit": (r"(?:[A-Za-z .,'()/{}%-]|\^\s*\{?\s*[23]|(?<=[A-Za-z])[23])+", "fullmatch"),
    "nested": (r"(?:a+)+b", "match"),
    "one or two": (r"(?:\w\w?)*:", "match"),
}
QUADRATIC = {
    "blanks before the end": (r"\s+\Z", "search"),
    "tags": (r"<answer>(.*?)</answer>", "search"),
    "two loops": (r"\s*\{?\s*x", "match"),
    "digits": (r"\d+/", "search"),
    "lines": (r"(?m)^\s*A:", "search"),
    "an optional sign": (r"_\s*-?\s*x", "search"),
    "a tool's call": (r"(?s)<tool_call>\s*(\{.*?\})\s*</tool_call>", "findall"),
}
LINEAR = {
    "possessive": (r"(?:a++)++b", "match"),
    "start of a run": (r"(?:(?<!\s)\s++)?x", "search"),
    "whole runs": (r"(?:<\|\w++\|>)++\s*+", "findall"),
    "atomic": (r"\d(?>\D*?(?:or|;))\D*+\d", "search"),
    "bounded": (r"answer[^.]{0,80}?is", "search"),
}


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_an_exponential_pattern_is_found(name: str):
    assert endless_text(*_asked(*EXPONENTIAL[name]))


@pytest.mark.parametrize("name", first_fast(QUADRATIC, 2))
def test_a_quadratic_pattern_is_found(name: str):
    assert endless_text(*_asked(*QUADRATIC[name])) is None
    assert slow_text(*_asked(*QUADRATIC[name]))


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_pattern_passes(name: str):
    assert endless_text(*_asked(*LINEAR[name])) is None
    assert slow_text(*_asked(*LINEAR[name])) is None


def _asked(pattern: str, method: str) -> tuple[str, int, Search]:
    return pattern, 0, getattr(re.compile(pattern), method)


def test_no_text_stalls_a_pattern_of_the_package():
    assert _found_by(endless_text) == {}


@pytest.mark.slow
def test_every_pattern_of_the_package_takes_linear_time():
    assert _found_by(endless_text) == {}
    assert _found_by(slow_text) == {}


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [(r"(?:ab)*+", 1), (r"(a|(?:b)++)?+", 1), (r"(?>(?:ab)*)c*+[de]++.?+", 0), (r"(?=(?:a\d)++)", 1)],
)
def test_a_possessive_loop_over_a_group_is_found(pattern: str, groups: int):
    assert possessive_groups(pattern, 0) == groups


def test_every_pattern_means_the_same_on_each_python_3_11():
    assert [one.place for one in _distinct() if possessive_groups(one.pattern, one.flags)] == []


def _found_by(generate: Callable[[str, int, Search], str | None]) -> dict[str, str]:
    texts = {one.place: generate(one.pattern, one.flags, one.search()) for one in _distinct()}
    return {place: text for place, text in texts.items() if text is not None}


def test_patterns_of_every_room_are_found():
    places = {one.place for one in _distinct()}
    assert {
        "cooper_verify.rules.answer.extraction.SENTENCE_END",
        "cooper_verify.rules.quantities.units._PIECE",
    } <= places
    assert any(place.startswith("cooper_verify.rules.text.plain_text:") for place in places)  # in a call
    assert any("[" in place for place in places)  # in a table
    assert len(places) > 150


@cache
def _distinct() -> list[Found]:
    return list({(one.pattern, one.flags, one.method): one for one in reversed(patterns())}.values())
