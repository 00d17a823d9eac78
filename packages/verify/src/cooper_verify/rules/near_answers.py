"""The wrong answers nearest to an answer: what a grader that reads its reference must tell from it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from typing import NamedTuple

from cooper_verify.rules.answer.extraction import extract_answer
from cooper_verify.rules.other_answers import differ
from cooper_verify.rules.processes.guard import guarded
from cooper_verify.rules.vocabulary.number_words import NUMBER_OF_WORD

_LONGEST = 200
"""Characters of the longest answer that is changed."""
_PLACES = 3
"""Numbers, signs and words of an answer that are changed: the first ones, each by itself."""
_FIGURES = 15
"""Figures of the longest number that is changed."""

_NUMBER = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?>(?:(?:,|\{,\})\d{3})+)(?![\d{])|\d++)(?:\.\d++)?"
    r"|(?<![\w.])\.\d++"
    r"|(?<=[A-Za-z^_])\d++(?![\d.,])",
    re.ASCII,
)
_SEPARATOR = re.compile(r",|\{,\}")
_SIGN = re.compile(r"(\\?\$)?(?:(-\s?|\u2212|minus\s|negative\s))?(?=[\\\d.(A-Za-z$])")
_RATIO = re.compile(r"(\d++)(\s?(?:/|over|:)\s?)(\d++)", re.ASCII)
_LATEX_RATIO = re.compile(r"(frac\s?)(\{[^{}]*+\})(\{[^{}]*+\})")
_UNIT = re.compile(r"(?<=[\d}])(?:\s|\\[,; ])?(?:%|\u00b0|[A-Za-z][A-Za-z ./]*+)\Z")
_ITEM = re.compile(r"[,;](?!\d{3}(?!\d))\s?|\s(?:and|or)\s")
_LIST = re.compile(r"([(\[{\\]*+)(.*?)([)\]}\\]*)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]++")
_OPPOSITES = r"+ - | < > | \le \ge | \leq \geq | <= >= | [ ( | ] ) | yes no | true false | \cup \cap | sin cos"
_OPPOSITE = {one: other for pair in _OPPOSITES.split(" | ") for one, other in permutations(pair.split())}
_TURNED = re.compile(r"<=|>=|[-+<>\[\]()]|\\(?:leq?|geq?|cup|cap)(?![A-Za-z])|\b(?:yes|no|true|false|sin|cos)\b", re.I)
_TERM = re.compile(r"[\w)\]}]\s?\Z")
"""What stands before a sign between two terms."""
_WORD_OF_NUMBER = {number: word for word, number in reversed(NUMBER_OF_WORD.items())}


def near_answers(answers: Sequence[str]) -> list[list[str]]:
    """For each answer, its smallest changes that make it another one for sure (`are_different`), in a fixed order.

    Of numbers, wherever they stand: ten times as much, one more and one less in the last place, a digit lost, doubled
    or exchanged with the next; of a number alone, with or without a unit, also a tenth, a thousand times and a
    thousandth. Of the whole: the other sign, numerator and denominator exchanged, the unit dropped, an item of a list
    dropped or exchanged with the next, a sign or word such as `<`, `[` or `yes` turned into its opposite, a number word
    or a single letter replaced by its neighbour, a word left out. A number alone of 1,000 or more is there
    with separators and without: a reward model that was shown `260,000` beside `26,000`, and never `2600`, took that
    for it. A number within other text keeps its way of writing.

    Empty where nothing near is different for sure, and of answers of over 200 characters.
    """
    return guarded(_near, [(answer,) for answer in answers], [])


def stated_with_near(completions: Sequence[str]) -> list[list[str]]:
    """For each completion, the answer that it states, as it is written there, and the answers near to that; empty if it
    states none or several."""
    return guarded(_stated_with_near, [(completion,) for completion in completions], [])


def _stated_with_near(completion: str) -> list[str]:
    answer = extract_answer(completion)
    return [*answer.texts, *_near(answer.texts[0])] if answer.kind != "unmarked" and len(answer.texts) == 1 else []


def _near(answer: str) -> list[str]:
    answer = answer.strip()
    if len(answer) > _LONGEST:
        return []
    texts = dict.fromkeys(text.strip() for change in _CHANGES for text in change(answer))
    return [text for text in texts if text and text != answer and differ(answer, text)]


class _Number(NamedTuple):
    figures: str
    """Without separators and point."""
    decimals: int
    """How many of them stand behind the point."""

    @property
    def value(self) -> Fraction:
        return Fraction(int(self.figures or "0"), 10**self.decimals)

    def written(self, separator: str) -> str:
        """The number as text, with this separator of thousands."""
        figures = self.figures.rjust(self.decimals + 1, "0")
        whole, decimals = figures[: len(figures) - self.decimals], figures[len(figures) - self.decimals :]
        return f"{int(whole):,}".replace(",", separator) + (f".{decimals}" if decimals else "")


def _with_other_numbers(answer: str) -> Iterator[str]:
    found = [*_NUMBER.finditer(answer)]
    for place in found[:_PLACES]:
        separator = _SEPARATOR.search(place[0])
        whole, _, decimals = _SEPARATOR.sub("", place[0]).partition(".")
        number = _Number(whole + decimals, len(decimals))
        if len(number.figures) > _FIGURES:
            continue
        alone = len(found) == 1
        own = separator[0] if separator else ""
        separators = (own or ",", "") if alone else (own,)  # whoever writes 2,600 also writes 2600
        for other in _near_numbers(number, scaled=alone or separator is not None):
            for written in separators:
                yield answer[: place.start()] + other.written(written) + answer[place.end() :]


def _near_numbers(number: _Number, scaled: bool) -> Iterator[_Number]:
    if scaled:
        yield _times(number, 3)
        yield _times(number, -3)
        yield _times(number, -1)
    yield _times(number, 1)
    for step in (1, -1):
        if int(number.figures) + step >= 0:
            yield _Number(str(int(number.figures) + step), number.decimals)
    for figures in _other_figures(number.figures):
        yield _Number(figures, number.decimals)


def _times(number: _Number, power: int) -> _Number:
    """The number times ten to the power, without needless decimals."""
    figures, decimals = number.figures, number.decimals - power
    if decimals < 0:
        return _Number(figures + "0" * -decimals, 0)
    while decimals and figures.endswith("0"):
        figures, decimals = figures[:-1], decimals - 1
    return _Number(figures, decimals)


def _other_figures(figures: str) -> Iterator[str]:
    """The last digit lost, the first one doubled, the first two different ones exchanged."""
    if len(figures) > 1:
        yield figures[:-1]
    yield figures[:1] + figures
    at = next((place for place, (one, other) in enumerate(pairwise(figures)) if one != other), None)
    if at is not None:
        yield figures[:at] + figures[at + 1] + figures[at] + figures[at + 2 :]


def _with_other_sign(answer: str) -> Iterator[str]:
    if sign := _SIGN.match(answer):
        yield (sign[1] or "") + ("" if sign[2] else "-") + answer[sign.end() :]


def _inverted(answer: str) -> Iterator[str]:
    yield _RATIO.sub(r"\3\2\1", answer, count=1)
    yield _LATEX_RATIO.sub(r"\1\3\2", answer, count=1)


def _without_unit(answer: str) -> Iterator[str]:
    yield _UNIT.sub("", answer, count=1)


def _with_other_items(answer: str) -> Iterator[str]:
    """A list without its last item, and one with its first two items exchanged."""
    start, text, end = _LIST.fullmatch(answer).groups()  # type: ignore[union-attr] - it matches any text
    if cuts := [*_ITEM.finditer(text)]:
        first, second = cuts[0], cuts[1].start() if len(cuts) > 1 else len(text)
        yield start + text[: cuts[-1].start()] + end
        yield start + text[first.end() : second] + first[0] + text[: first.start()] + text[second:] + end


def _turned(answer: str) -> Iterator[str]:
    signs = [sign for sign in _TURNED.finditer(answer) if sign[0] not in "+-" or _TERM.search(answer[: sign.start()])]
    for sign in signs[:_PLACES]:
        yield answer[: sign.start()] + _in_case_of(sign[0], _OPPOSITE[sign[0].lower()]) + answer[sign.end() :]


def _with_other_words(answer: str) -> Iterator[str]:
    words = [*_WORD.finditer(answer)]
    for word in words[:_PLACES]:
        text, number = word[0], NUMBER_OF_WORD.get(word[0].lower())
        others: list[str | None] = []
        if answer.strip("()[]{}.: ") == text and len(text) == 1:
            others = [chr(ord(text) + step) for step in (1, -1) if chr(ord(text) + step).isalpha()]
        elif number is not None:
            steps = (10, -10) if number >= 20 else (1, -1)
            others = [_WORD_OF_NUMBER.get(number + step) for step in steps]
        elif len(words) > 1 and len(text) > 1 and text not in ("and", "or"):
            others = [""]
        for other in others:
            if other is not None:
                yield answer[: word.start()] + _in_case_of(text, other) + answer[word.end() :]


def _in_case_of(word: str, other: str) -> str:
    """The other word in capitals as this one."""
    return other.capitalize() if word.istitle() and len(word) > 1 else other


_CHANGES: tuple[Callable[[str], Iterable[str]], ...] = (
    _with_other_numbers,
    _with_other_sign,
    _inverted,
    _without_unit,
    _with_other_items,
    _turned,
    _with_other_words,
)
