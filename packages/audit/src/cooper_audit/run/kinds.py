"""What kinds a problem belongs to, without a label of its answers: its data set, its fields, the form of its reference,
its length, and the problems whose question is worded like it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import log2
from typing import Any

from cooper_verify.rules.quantities.number import any_number, number_value, plain_number, with_divisions
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.values.spelled import spelled_number

MOST_VALUES = 64
"""A field of `metadata` with more values than this is no kind: it says what a problem is, such as its working."""
LONGEST_VALUE = 60
"""A longer value is a text, not the name of a kind."""
CLUSTERS = 64
"""Most clusters of questions."""
ALIKE = 0.5
"""Questions are worded alike if they share this part of the words of both (Jaccard)."""
QUESTION_WORDS = 60
"""Words at the beginning of a question by which it is compared with others."""
OTHER_MAGNITUDE = 5
"""Numbers differ in magnitude if one is at least this many times the other."""

Kind = tuple[str, str]
"""An attribute of problems, and its value: `("family", "thousands")`."""
_WORD = re.compile(r"\d[\d.,]*+|\w++|[^\w\s]")
_FORMS = (
    ("an option", re.compile(r"\(?[A-Ja-j][).]?")),
    ("a number with thousands separators", re.compile(r"[-+]?\d{1,3}(?>(?:,\d{3})+)(?:\.\d++)?")),
    ("a whole number", re.compile(r"\+?\d++")),
    ("a negative number", re.compile(r"[-\u2212]\s?\d[\d.,]*+")),
    ("a decimal", re.compile(r"\d*+\.\d++")),
    ("a fraction", re.compile(r"-?\d++\s?/\s?\d++|-?\\[dt]?frac\{?-?\d++\}?\{?\d++\}?")),
    ("a percentage", re.compile(r"[-+]?\d[\d.,]*+\s?\\?%")),
    ("yes or no", re.compile(r"yes|no|true|false", re.IGNORECASE)),
)


class Kinds:
    """Names the kinds of each problem. Two readers of the same problems in the same order name the same kinds."""

    def __init__(self) -> None:
        self._clusters: list[tuple[str, frozenset[str]]] = []
        self._values: dict[str, set[str]] = {}
        """The values that each field of `metadata` has had, `MOST_VALUES` + 1 of them at most."""

    def of(self, group: Mapping[str, Any]) -> list[Kind]:
        """The kinds of a recorded problem (`question`, `answer`, perhaps `set` and `metadata`)."""
        return [*self._named(group), *self._worded(group)]

    def is_kind(self, kind: Kind) -> bool:
        """Whether the values of the kind's attribute are few enough to name kinds."""
        return len(self._values.get(kind[0], ())) <= MOST_VALUES

    def _named(self, group: Mapping[str, Any]) -> Iterator[Kind]:
        """Those that the data names."""
        fields = group.get("metadata")
        for name, value in (fields if isinstance(fields, Mapping) else {}).items():
            values = self._values.setdefault(name, set())
            if isinstance(value, str | bool | int) and 0 < len(str(value)) <= LONGEST_VALUE:
                if len(values) <= MOST_VALUES:
                    values.add(str(value))
                if len(values) <= MOST_VALUES:
                    yield name, str(value)
        if group.get("set"):
            yield "data set", str(group["set"])

    def _worded(self, group: Mapping[str, Any]) -> Iterator[Kind]:
        """Those that are read from its texts."""
        if (reference := str(group.get("answer") or "").strip()) or "answer" in group:
            yield "reference", form_of(reference)
            yield "size of the reference", size_of(reference)
        question = str(group.get("question", ""))
        words = _WORD.findall(question)
        yield "words of the question", _doubling(len(words))
        if (cluster := self._cluster_of(question, words[:QUESTION_WORDS])) is not None:
            yield "questions like", cluster

    def _cluster_of(self, question: str, words: Sequence[str]) -> str | None:
        """The first question that this one is worded like; itself, if there is none and room for one more.

        This is the leader algorithm (Hartigan 1975, chapter 3): one pass, no random start. Numbers count as one word.
        """
        masked = frozenset("0" if word[0].isdigit() else word.lower() for word in words)
        for leader, leading in self._clusters:
            if len(masked & leading) >= ALIKE * len(masked | leading):
                return leader
        if len(self._clusters) >= CLUSTERS:
            return None
        self._clusters.append((_short(question), masked))
        return self._clusters[-1][0]


def form_of(reference: str) -> str:
    """The form of a reference, in words: `a fraction`, `an option`, `text`."""
    text = reference.strip().removeprefix("$").removesuffix("$").strip()
    if not text:
        return "none"
    if named := next((name for name, form in _FORMS if form.fullmatch(text)), None):
        return named
    if plain_number(text) is not None:
        return "a number with a unit"
    if re.search(r"[\\=^{}]", text):
        return "a formula"
    return "a list" if re.search(r"[,;]", text) else "text"


def size_of(reference: str) -> str:
    """How large a number is, or how many words a text has."""
    if (value := number_in(reference)) is not None:
        digits = len(str(abs(int(value))))
        return f"{digits} digit{'s' * (digits > 1)}"
    return f"{_doubling(len(reference.split()))} words"


@text_cache(16384)
def number_in(text: str) -> Fraction | None:
    """The number that an answer is, in figures or words; None if it is none. `50%` is a half."""
    plain = with_divisions(text.strip().rstrip("%\\ "))
    if (number := any_number(plain)) is not None and "e" not in number:
        bottom = number.partition("/")[2]
        value = None if bottom and not int(bottom) else number_value(number)
    else:
        value = spelled_number(text)
    return value / 100 if value is not None and text.rstrip().endswith("%") else value


def is_of_magnitude(stated: Sequence[str], reference: Fraction) -> bool:
    """Whether one of the stated answers is a number of the reference's magnitude: neither 0 nor `OTHER_MAGNITUDE` times
    as large or as small, unless the reference is 0.
    """
    values = [abs(value) for text in stated if (value := number_in(text)) is not None]
    size = abs(reference)
    return any(value == size or value < OTHER_MAGNITUDE * size < OTHER_MAGNITUDE**2 * value for value in values)


def _doubling(count: int) -> str:
    """The count as a span between two powers of two: `8 to 15`."""
    low = 2 ** int(log2(count)) if count else 0
    return str(count) if count < 2 else f"{low} to {2 * low - 1}"


def _short(question: str) -> str:
    text = " ".join(question.split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 2] + " …"
