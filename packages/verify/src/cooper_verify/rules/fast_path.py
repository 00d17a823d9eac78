"""The verdict of the rule `maths`. Math-Verify is asked only where nothing else can tell; it is not imported here.

The kind of a reference decides how answers are compared with it. In mathematics `ab` is `ba`, so a reference is that
only if it is all numbers, signs, LaTeX and single letters, or nothing but x, y and z. Tokyo, 2024-01-05, 9 pm, H2O and
A+ are text.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, NoReturn

from cooper_base.data.thoughts import without_thoughts
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.extraction import TAIL_CHARS, FinalAnswer, extract_answer, is_retracted, reference_text
from cooper_verify.rules.kinds.choice import choice_verdict, reference_choice
from cooper_verify.rules.kinds.exact import exact_verdict
from cooper_verify.rules.number import as_decimal, first_number, number_value, number_verdict, plain_number, same_number
from cooper_verify.rules.number_words import (
    CHANGES_BEFORE,
    CHANGES_NUMBER,
    CONDITION,
    changes_after,
    changes_number,
    is_conditional,
    with_scales,
    without_scales,
)
from cooper_verify.rules.plain_text import MONTH, TEXT_COMMAND, bare_text, with_iso_dates
from cooper_verify.rules.reply import reply_of
from cooper_verify.rules.rule import copies_question
from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.units import (
    are_measures,
    measures,
    same_quantity,
    same_unit,
    unit_of,
    with_kelvins,
    without_unit,
)

TextPolicy = Literal["exact", "refuse"]
"""What to do with references of the kind `exact`: compare them as text, or refuse them."""
Symbolic = Callable[[str, str, Literal["answer", "free", "list"]], Verdict]
"""Math-Verify's verdict, given a reference and one answer, a whole text, or the elements of one answer."""

# Dates, ranges, sizes and other figures that are not numbers to calculate with.
_FIGURES = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d+/\d+/\d+"  # 2024-01-05, 1/5/2024
    r"|\d+(?:\.\d+)?\s?-\s?\d+(?:\.\d+)?(?:\s?-\s?\d+)*"  # 10-12, 555-1234
    r"|\+\d+(?:[ -]\(?\d+\)?)+|#.*"  # +1 555 1234, #5
    r"|\d+(?:\.\d+){2,}"  # 1.2.3
    r"|\d+\s*(?:x|\\times|\u00d7)\s*\d+"  # 3x5 is a size
    r"|\d+'\s?(?:\d+\"?)?"  # 5'10"
)
# A+, N/A, p.m, (iv), A or B
_SIGNS = re.compile(r"[a-z]+\s?[+-]|n/a|[a-z](?:\.\s?[a-z])+\.?|\(?[ivx]{2,}\)?|(?:[A-J]\s+or\s+)+[A-J]", re.IGNORECASE)
_CLOCK = re.compile(r"\b\d{1,2}\s?:\s?[0-5]\d(?!\d)")
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b")
_NO_UNIT = re.compile(
    r"(?i)\d\s*(?:[ap]\.?\s?m\b\.?|(?-i:[ap])\.?\s*\Z)|o'clock|\b(?:noon|midnight|ad|bc|bce|ce)\b"
    r"|\b(?:north|south|east|west)(?:east|west|ern)?(?:ward)?s?\b"
)

_DOUBLED = re.compile(r"(?<!\\)\\\\(?=[A-Za-z])")  # LaTeX that went through JSON once too often
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{\w+\*?\}(?:\{[clr|]*\})?")
_SUBSCRIPT = re.compile(r"_\s*(?:\{[^{}]*\}|\w)")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?")
_NAMED_FIGURE = re.compile(r"\\(?:angle|overline|over(?:left)?rightarrow|triangle|widehat|measuredangle)\b")
_MATHEMATICAL_ALPHABETS = re.compile(r"[\u0370-\u03ff\u2100-\u214f\U0001d400-\U0001d7ff]")
_WORD = re.compile(r"[A-Za-z]{2,}")
_FUNCTION = re.compile(
    "(?:arc)?(?:sin|cos|tan)|(?:sin|cos|tan)h|cot|sec|csc|log|ln|lg|exp|sqrt|max|min|gcd|lcm|mod|det|dim|ker|deg|arg|inf"
    "|sup|lim|pi|cis|and|or"
)
_NO_PRODUCT = re.compile(r"\w{4,}|[A-Z][a-z]{2,}|yes|not?|the|is|are|to|of|if|by|in|on|at|up|all|any")
_OPERATOR = re.compile(r"[+*^=<>|(]|\\[A-Za-z]")
_LETTER_AND_FIGURE = re.compile(r"[A-Za-z]\d")
_FACTORS = re.compile(r"(?<=\d)[A-Za-z]++(?!\w)")


@text_cache(16384)
def reference_kind(reference: str) -> Literal["maths", "choice", "exact"]:
    """The kind of `reference`, a text as `reference_text` gives it."""
    if reference_choice(reference) is not None:
        return "choice"
    text = bare_text(with_scales(_DOUBLED.sub(r"\\", reference)))
    is_time = _CLOCK.search(text) and "=" not in text
    is_figure = _FIGURES.fullmatch(text) or _SIGNS.fullmatch(text) or _ORDINAL.search(text) or MONTH.search(text)
    if is_time or is_figure:
        return "exact"
    if not plain_number(with_scales(reference)) and not unit_of(reference):
        return "maths" if _is_formula(text) else "exact"
    # A value with a unit, unlike "12 thousand", "9 pm" or "10 Downing Street".
    words = _COMMAND.sub(" ", text)
    if changes_number(words) or _NO_UNIT.search(text):
        return "exact"
    return "maths" if all(word == word.lower() or measures(word) for word in _WORD.findall(words)) else "exact"


def _is_formula(text: str) -> bool:
    """Whether every letter is a variable or part of a function's name."""
    if not re.search(r"\w|\\[A-Za-z]", text) or _NAMED_FIGURE.search(text):
        return False
    if any(letter.isalpha() and not letter.isascii() for letter in _MATHEMATICAL_ALPHABETS.sub("", text)):
        return False
    symbols = _COMMAND.sub(" ", _SUBSCRIPT.sub(" ", _ENVIRONMENT.sub(" ", text)))
    if re.search(r"\w\.\s", text) or (_LETTER_AND_FIGURE.search(symbols) and not re.search(r"[\\^]", text)):
        return False  # "a. 3, b. 4"; H2O, but N2^{-N}
    if _WORD.fullmatch(text.strip("()[]{} ")):
        return text == "pi" or (len({*text}) == len(text) and {*text} <= {*"xyz"})  # xy, a product
    words = [word for word in _WORD.findall(symbols) if not _FUNCTION.fullmatch(word)]
    if any(map(_NO_PRODUCT.fullmatch, words)):
        return False
    # Letters in a row are a product of variables next to an operator or, in lower case, after a number: 2xy.
    return bool(_OPERATOR.search(text)) or {*words} <= {w for w in _FACTORS.findall(symbols) if w.islower()}


_OPENING = re.compile(r"\$|\\[(\[]")
_CLOSING = {"$": "$", r"\(": r"\)", r"\[": r"\]"}
_CURRENCY = re.compile(r"\$\d[\d,.]*\s+[A-Za-z]")  # "$12 or $13" is not a formula
_WORD_OF_TEXT = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2}")
_LONG_WORD = re.compile(r"(?<!\\)\b[A-Za-z]{3,}")
_LISTED = re.compile(r"\d(?>[^\d]*?(?:\b(?:or|and)\b|,\s|;))[^\d]*+\d")
_REJECTION = re.compile(r"\d[\s.,;(]{0,3}(?:and\s|but\s)?(?:not|never|rather than|instead of)\b", re.IGNORECASE)
_INFINITY = re.compile(r"(?<!\\)\binfinity\b", re.IGNORECASE)
_FOREIGN_WORD = re.compile(r"[^\W\d_A-Za-z\u0370-\u03ff]")
_SIGNED_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+)?")


def math_segments(text: str) -> list[str]:
    r"""The formulas in a text: `$...$`, `\(...\)` and `\[...\]`, with what encloses them."""
    segments: list[str] = []
    position, unclosed = 0, set[str]()
    while opening := _OPENING.search(text, position):
        start, closing = opening.start(), _CLOSING[opening.group()]
        inside = opening.end() + 1  # a formula has at least one character
        end = -1 if closing in unclosed else text.find(closing, inside - (closing == "$"))
        if end < inside:
            unclosed |= {closing} if end < 0 else set()
            position = start + 1
        else:
            position = end + len(closing)
            segments.append(text[start:position])
    return segments


_DIGITS = re.compile(r"\d++")
_NEAR = 60
_JOINER = re.compile(r"\s*+(?>(?:(?:,\s*+)?(?:and|or)\s*+)?)", re.IGNORECASE)


def _changes_value(words: str) -> bool:
    """Whether words inside a formula say more than its unit does: "or more", "thousand", "or (2,1)"."""
    changes = changes_number(words) or CONDITION.search(words) or re.search(r"\d", words)
    return not _JOINER.fullmatch(words) and bool(changes)


def in_box(text: str) -> str:
    return rf"\boxed{{{text}}}"


def formula(text: str, numeric: bool) -> str | None:
    """What Math-Verify should read of one candidate answer; None if it cannot be read without guessing."""
    number = plain_number(text)
    if number is not None:
        return in_box(as_decimal(number))
    if any(map(_changes_value, TEXT_COMMAND.findall(text))):
        return None  # `\text{ or more}`
    text = without_unit(_INFINITY.sub(r"\\infty", text))
    segments = math_segments(text)
    if segments and not any(_CURRENCY.match(segment) for segment in segments):
        return f"The answer is: {text}"
    if "\\" in text:
        return in_box(text)
    text = text.replace("$", "")
    if numeric and _FOREIGN_WORD.search(text):
        numbers = set(_SIGNED_NUMBER.findall(text))
        return in_box(*numbers) if len(numbers) == 1 and not CHANGES_NUMBER.search(text) else None
    if re.search(r"\d\s+\d", text) or re.match(r"(?:minus|negative)\b", text, re.IGNORECASE):
        return None  # "1 1/2" is not a product, "minus 12" is not 12
    if not _LONG_WORD.search(text):
        return in_box(text)
    if not re.search(r"\d", text):
        return None if numeric or reference_kind(text) != "maths" else in_box(text)
    if _REJECTION.search(text):
        return None  # "12, not 13"
    if _LISTED.search(text):
        return in_box(", ".join(_SIGNED_NUMBER.findall(text)))
    if CHANGES_NUMBER.search(text) and not re.search(r"percent|pct", text):
        return None  # "12 thousand" is not 12
    befores = (text[max(0, number.start() - _NEAR) : number.start()] for number in _DIGITS.finditer(text))
    if any(map(CHANGES_BEFORE.search, befores)) or with_iso_dates(text) != text:
        return None  # "at least 5" is not 5, and neither is "May 5"
    return f"The answer is: {text}"


_BRIEF = 400
"""Characters of an answer that is searched here; longer ones are left to a process that can be killed."""
_NUMBER = r"-?\d+(?:\.\d+|/\d+)?"
_NUMBERS = re.compile(rf"\\boxed\{{({_NUMBER}(?:, {_NUMBER})+)\}}")
_FIRST_NUMBER = re.compile(r"\A\W{0,4}\d[\d.,/]*+")
_PERCENTAGE = re.compile(r"\$?(-?\d+(?:\.\d+)?)\s*\\?%\$?")
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d+|\d+,(?!\d{3}\Z)\d+)")
_BASE = re.compile(r"(?<=\d)_\{?(\d+)\}?\Z")
_SCALE_LETTER = re.compile(r"\d\s?[kKMBT]\Z")
_LETTER_UNIT = re.compile(r"\d[msghlLNJWVA]\Z")
_NO_NUMBER = re.compile(r"\d\s*+(?:\^\s*+)?\{?(?:\\(?:text|mathrm)\s*+\{)?\s*+(?:st|nd|rd|th)\b|\\overline")  # 8th


class FastReading(NamedTuple):
    """What is known of a completion before Math-Verify is asked."""

    verdict: Verdict | None
    """None if only Math-Verify can tell."""
    key: str = ""
    """All that Math-Verify's verdict depends on: completions of a group often end in the same answer."""
    tail: str = ""
    """What Math-Verify must read of the completion."""


def fast_reading(question: str | None, answer: str, completion: str, expressions: bool) -> FastReading:
    """The reading of a completion, for which the `question` again is wrong, unless that is None."""
    if question is not None and copies_question(question, without_thoughts(completion)):
        return FastReading("wrong")
    reply = reply_of(completion)
    if (verdict := fast_verdict(answer, reply, expressions)) is not None:
        return FastReading(verdict)
    if len(answer) > TAIL_CHARS:
        return FastReading(None, reply, reply)
    final = extract_answer(reply, factorials="!" in reference_text(answer))
    return FastReading(None, repr((final.kind, tuple(final.texts), is_retracted(final.after))), reply)


def kind_of_answer(answer: str) -> Literal["maths", "choice", "exact"]:
    return reference_kind(reference_text(answer))


def fast_verdict(answer: str, completion: str, expressions: bool = False) -> Verdict | None:
    """The verdict on a completion, or None if only Math-Verify can tell. For `expressions`, see `MathsRule`.

    Also None for a reference that is longer than what is read of a completion: a process that can be killed reads it.
    """
    if len(answer) > TAIL_CHARS:
        return None
    try:
        return verdict_by(_undecided, answer, completion, expressions)
    except _UndecidedError:
        return None


class _UndecidedError(Exception):
    pass


def _undecided(*asked: str) -> NoReturn:
    raise _UndecidedError


def verdict_by(symbolic: Symbolic, answer: str, completion: str, expressions: bool = False) -> Verdict:
    """The verdict on a completion against the reference `answer`, where `symbolic` decides what nothing else can."""
    reference = reference_text(answer)
    if reference and (choice := reference_choice(reference)):
        return choice_verdict(choice, completion, {})
    if reference and reference_kind(reference) == "exact":
        return exact_verdict(reference, completion)
    final = extract_answer(completion, factorials="!" in reference)
    if not final.texts or not reference:
        return "unparsed"
    final = replace(final, texts=tuple(with_kelvins(text, reference) for text in final.texts))
    if plain_number(with_scales(reference)) is None or expressions:
        return _maths_verdict(reference, final, symbolic)
    return _scaled_verdict(reference, final, symbolic)


def _maths_verdict(reference: str, final: FinalAnswer, symbolic: Symbolic) -> Verdict:
    verdict = _verdict_on_all([*final.texts], reference, symbolic)
    return "wrong" if verdict == "correct" and is_retracted(final.after) else verdict


def _scaled_verdict(reference: str, final: FinalAnswer, symbolic: Symbolic) -> Verdict:
    """The verdict against a number. `12` and "12 million" may mean the same, for a question may ask for millions.

    Where the reference has no word of scale, an answer with one is left to a reader: the published runs of the embedded
    world count "29 thousand" for 29,000 among what the rule misses.
    """
    value, texts = with_scales(reference), tuple(map(with_scales, final.texts))
    if (value, texts) == (reference, tuple(final.texts)):
        return _number_verdict(reference, final, symbolic)
    if value == reference:
        return "unparsed"
    verdict = _number_verdict(value, replace(final, texts=texts), symbolic)
    if verdict == "wrong":
        bare = replace(final, texts=tuple(map(without_scales, final.texts)))
        verdict = "wrong" if _number_verdict(without_scales(reference), bare, symbolic) == "wrong" else "unparsed"
    return verdict


def _number_verdict(reference: str, final: FinalAnswer, symbolic: Symbolic) -> Verdict:
    texts = tuple(_without_factorials(text, final.kind) for text in final.texts)
    verdict = _maths_verdict(reference, final if texts == final.texts else replace(final, texts=texts), symbolic)
    return number_verdict(reference, final) if verdict == "correct" else verdict


def _verdict_on_all(texts: list[str], reference: str, symbolic: Symbolic) -> Verdict:
    is_one = len(texts) == 1 or plain_number(reference) is not None
    read = set()
    for text in sorted(texts, key=lambda text: plain_number(text) is None):  # Math-Verify last
        read.add(_text_verdict(text, reference, symbolic))
        if is_one and "wrong" in read:
            return "wrong"
    read -= {"unparsed"}
    if not read:
        return "unparsed"
    # Several boxes may be the elements of one answer: \boxed{1} and \boxed{2} for the reference 1, 2.
    return "correct" if read == {"correct"} else symbolic(reference, ", ".join(texts), "list")


def _without_factorials(text: str, kind: str) -> str:
    """The text without what is no answer to a number and may take forever: of `5! = 120`, the side without a mark."""
    if "!" not in text:
        return text
    if kind == "free":
        return text.replace("!", " ")
    return next((side for side in reversed(text.split("=")) if "!" not in side), "")


def _text_verdict(text: str, reference: str, symbolic: Symbolic) -> Verdict:
    """The verdict on the value of one candidate for the final answer, however it is written, and on its unit."""
    if _normal(text) == _normal(reference):
        return "correct"
    if are_measures(reference, text):
        return _measure_verdict(text, reference)
    expected = plain_number(reference)
    if expected is not None:
        if any(map(CONDITION.search, TEXT_COMMAND.findall(text))) or is_conditional(_FIRST_NUMBER.sub("", text)):
            return "unparsed"  # `2\text{ if even}`, "2 if n = 1"
        written, prose = text, bare_text(_DOUBLED.sub(r"\\", text)) if "\\" in text and text.count("=") < 2 else text
        text = text if "\\" in prose else prose  # `12\text{ apples}`
        if base := _BASE.search(text):
            if base.group(1) != "10":
                return "unparsed"  # 101_2 may be the question
            text = written = text[: base.start()]
        number = plain_number(written) or plain_number(text)
        if number is None and _LETTER_UNIT.search(text):
            number = plain_number(text[:-1])  # 7N is a force, for a number has no variables
        same = None if number is None else same_number(expected, number)
        if same is False:
            return "wrong"
        if same is None and _NO_NUMBER.search(text):
            return "unparsed"
        # `40%` answers the reference 40, for the question may ask for a percentage; Math-Verify would read it as 0.4.
        percentage = _PERCENTAGE.fullmatch(text)
        same = same or (percentage is not None and same_number(percentage.group(1), expected))
        # `1,22` answers the reference 1.22. In a reference, `1,22` is two numbers, 1 and 22.
        if same or (_DECIMAL_COMMA.fullmatch(text) and expected == text.replace(",", ".")):
            return "correct" if same_unit(reference, written) else "wrong"
        if _SCALE_LETTER.search(text) or _is_changed(text, expected):
            return "unparsed"
        if len(text) <= _BRIEF:
            wanted = formula(text, numeric=True)
            if wanted is None:
                return "unparsed"
            listed = _NUMBERS.fullmatch(wanted)
            values = {number_value(number) for number in listed.group(1).split(", ")} if listed else set()
            if len(values) > 1 and None not in values:
                return "wrong"  # a set of several is no number
    verdict = symbolic(reference, text, "answer")
    return "wrong" if verdict == "correct" and not same_unit(reference, text) else verdict


def _is_changed(text: str, expected: str) -> bool:
    """Whether a text begins with the expected number and goes on with words that change it: "12 hundred", "12 pm"."""
    first = _FIRST_NUMBER.match(text)
    if first is None or not _WORD_OF_TEXT.search(text, first.end()) or _DIGITS.search(text, first.end()):
        return False
    return plain_number(first.group().strip(" .,")) == expected and changes_after(text[first.end() :])


def _measure_verdict(text: str, reference: str) -> Verdict:
    """The verdict on an answer with another unit: 90 minutes for 1.5 hours."""
    expected, found = (number_value(first_number(number_text) or "0/0") for number_text in (reference, text))
    same = None if expected is None or found is None else same_quantity(reference, expected, text, found)
    return "unparsed" if same is None else "correct" if same else "wrong"


@text_cache(1024)
def _normal(text: str) -> str:
    text = re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", TEXT_COMMAND.sub(r"\1", text))
    if re.fullmatch(r"\([A-Za-z]\)", text):
        text = text[1:-1]
    return text.casefold() if text.isalpha() else text
