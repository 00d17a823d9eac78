"""The rule for answers in words: an answer is right if its text is the same, whatever its formatting."""

import re
from fractions import Fraction
from itertools import islice

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.around_answer import behind_answer
from cooper_verify.rules.answer.extraction import SENTENCE_END, TextAnswer, clean, text_answer
from cooper_verify.rules.asked.question import WORDS, asked_part, asks_once
from cooper_verify.rules.asked.word_forms import form_of
from cooper_verify.rules.asked.words import Words, unread
from cooper_verify.rules.text.plain_text import (
    bare_text,
    case_matters,
    differ_in_form,
    has_code,
    plain_text,
    without_accents,
)
from cooper_verify.rules.values.chemistry import are_same_formula, chemical
from cooper_verify.rules.values.none import read_none
from cooper_verify.rules.values.spelled import spelled_number
from cooper_verify.rules.verdicts.options import OPTION_LETTER
from cooper_verify.rules.vocabulary.variants import may_name_the_same

_REASON = re.compile(r"(?:,|(?<!\s))\s++(?:because|since)\b|,\s++(?:as|which|who|where|so)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:or|nor|not|neither|either|both|isn't|never|non|except|but|cannot)\b|/", re.IGNORECASE)
_SAYS = re.compile(
    r"(?:[Ii]t|[Tt]his|(?:[Tt]he|[Tt]his)\s(?:answer|result|([a-z]{2,}))|[Tt]hese\s([a-z]{2,}))"
    r"\s(?:is|are|will\sbe)\s(?:an?\s)?(?=\S)"
)
"""A subject and its verb in front of an answer in words: "The triangle is isosceles"."""
_POLAR = re.compile(
    r"(yes|no|true|false)\b\s*(?:[,;:\u2013\u2014]|-\s|because\b|since\b)(.*)", re.IGNORECASE | re.DOTALL
)
_GIVES_REASON = re.compile(r"(?i)[\s,;:\u2013\u2014-]*(?:because|since|as|for)\b")
_MARKED = re.compile(rf"[(\[]?({OPTION_LETTER})[)\].:]\s*(\S.*)", re.DOTALL)
_AGAINST = {
    "yes": re.compile(r"\b(?:no|not|never|false|or|but|however|maybe|perhaps)\b|n't\b", re.IGNORECASE),
    "no": re.compile(r"\b(?:yes|true|or|but|however|maybe|perhaps)\b", re.IGNORECASE),
}
_SAYS_TRUTH = re.compile(r"(?:yes|no|true|false|not|non|oui|ja|nein|si|sim)\b")
_SHORT = 4
_FEW_WORDS = 4
"""A longer answer may be told in many ways: only a reader can say that another text differs from it."""
_FIGURES = re.compile(r"\d+(?:[/.]\d+)+")
_BY_CLOCK = re.compile(r"(?<![\w.])(\d{1,2})\s?h(?:\s?(\d\d))?(?!\w)")
_NUMERIC_DATE = re.compile(r"\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b")
_MORE_STOPS = 3
_SHORTENED = re.compile(r"\b[A-Z][a-z]{0,2}\.?\s*\Z")  # Mt., St., Dr. end no sentence
_IN_WORD = re.compile(r"\w")
_NUMBER = re.compile(r"(?:[A-Za-z]\s?=\s?)?(-?\d{1,30}+(?:\.\d{1,30}+)?)", re.ASCII)
_AGAINST |= {"true": _AGAINST["yes"], "false": _AGAINST["no"]}


def exact_verdict(reference: str, completion: str, question: str = "") -> Verdict:
    """The verdict against a `reference_text`; `unparsed` too if only a reader can assess a longer answer."""
    answer = text_answer(completion)
    words = Words(question, reference)
    if not reference or not words.know(answer.words):
        return "unparsed"
    if answer.boxes:
        return _boxed_verdict(reference, answer, words)
    if answer.line is not None:
        verdict, rest = _line_verdict(reference, answer.line, words)
        return verdict if words.know(behind_answer(rest, [reference])) else "unparsed"
    if answer.whole is None:
        return "unparsed"
    said = _SAYS.match(answer.whole)
    is_said = (
        said and _is_same(reference, answer.whole[said.end() :], words) and words.know(filter(None, said.groups()))
    )
    if is_said or _is_same(reference, answer.whole, words) or _says_what_is_asked(reference, answer.whole, question):
        return "correct"
    is_answer = len(answer.whole.split()) <= len(reference.split())
    return _difference(reference, answer.whole) if is_answer and plain_text(answer.whole) else "unparsed"


def _says_what_is_asked(reference: str, text: str, question: str) -> bool:
    """Whether a sentence says the reference with words of a single question: "Car A is faster", "The train arrives at
    9 pm". Of "Who beat Ann?", "Ann beat Ben" does not: the reference is the subject of "is", or stands behind it, a
    preposition of place or the verb of "does Ann beat"."""
    asked = asked_part(question)
    if not asks_once(asked) or _JOINS.search(asked) or text.rstrip().endswith("?"):
        return False
    found, expected = plain_text(text), plain_text(reference)
    known = [form_of(word) for word in WORDS.findall(plain_text(asked))]
    front, behind = found.removesuffix(f" {expected}"), found.removeprefix(f"{expected} ")
    is_behind = front != found and (
        front.split()[-1] in _LINKS or ((" do" in asked or " did" in asked) and form_of(front.split()[-1]) == known[-1])
    )
    is_subject = behind != found and behind.split()[0] in _IS
    if not (is_behind or is_subject):
        return False
    rest = front if is_behind else behind
    is_known = all(word.isalpha() and (word in _FRAMES or form_of(word) in known) for word in rest.split())
    return is_known and _JOINS.search(rest) is None


_IS = {"is", "are", "was", "were"}
_LINKS = {*_IS, "at", "on", "in", "called", "named"}
_FRAMES = {*_LINKS, "the", "a", "an", "it", "so", "therefore", "thus", "hence"}
_JOINS = re.compile(r"\b(?:not|no|never|except|than|nor|but|other)\b|n't\b")


def _boxed_verdict(reference: str, answer: TextAnswer, words: Words) -> Verdict:
    boxes = answer.boxes
    same = all(_is_same(reference, box, words) for box in boxes)
    # Several boxes may be the items of one answer.
    if not same and not (len(boxes) > 1 and _is_same(reference, ", ".join(boxes), words, polar=False)):
        return _difference(reference, boxes[0]) if len(boxes) == 1 else "wrong"
    if answer.line is None:
        return "correct"
    verdict, rest = _line_verdict(reference, answer.line, words)
    if verdict == "wrong":
        return "wrong"
    return "correct" if verdict == "correct" and words.know(behind_answer(rest, [reference])) else "unparsed"


def _line_verdict(reference: str, line: str, words: Words) -> tuple[Verdict, str]:
    """The verdict on a line that states an answer, and the rest of the line after the answer.

    A full stop may belong to the answer ("St. Louis", "p.m."), so the line is tried up to each of as many full stops as
    the reference has, and a few more.
    """
    tried = islice(SENTENCE_END.finditer(line), len(SENTENCE_END.findall(reference)) + _MORE_STOPS)
    beginnings = [(line[: end.start()], line[end.end() :]) for end in tried] + [(line, "")]
    for beginning, rest in beginnings:
        if _is_same(reference, beginning, words):
            return "correct", rest
    whole = (beginning for beginning, _ in beginnings if not _SHORTENED.search(beginning))
    return _difference(reference, next(whole, line)), ""


def _is_same(reference: str, text: str, words: Words, polar: bool = True) -> bool:
    fold_case = not (case_matters(reference) or has_code(text) or chemical(reference))
    expected = plain_text(reference, fold_case)
    if not expected:
        return text.strip() == reference.strip()  # only signs, such as > or +
    found = plain_text(text, fold_case)
    if found == expected or (_without_only(found) == _without_only(expected) != ""):
        return True
    if chemical(reference):
        return are_same_formula(reference, text) is True
    if (none := read_none(reference)) and none == read_none(text):
        return True
    spelled = bare_text(reference)
    value = spelled_number(spelled) if spelled[:1].isalpha() and "!" not in text else None
    if value is not None and value in (spelled_number(bare_text(text)), _value(clean(text))):
        return True
    # A name may lack its accents: Sao Paulo is São Paulo, but ano is not año.
    is_name = reference.strip(" *\"'$").removeprefix("\\text{")[:1].isupper()
    if is_name and (expected == without_accents(found) or found == without_accents(expected)):
        return True
    reason = _REASON.search(text)
    if reason is not None and plain_text(text[: reason.start()], fold_case) == expected:
        rest = text[reason.start() :]
        return bool(_GIVES_REASON.match(rest)) or words.know(unread(rest))
    return polar and _is_polar(reference, text, words)


def _without_only(text: str) -> str:
    """The text without saying that it is all: "I and III only"."""
    return " ".join(word for word in text.split() if word != "only")


def _is_polar(reference: str, text: str, words: Words) -> bool:
    """Whether both say yes or both say no, and the text goes on to say why: "Yes, because ..."."""
    expected, polar = plain_text(reference), _POLAR.match(text.strip(" *\"'"))
    if polar is None or expected not in _AGAINST or polar.group(1).casefold() != expected:
        return False
    said = (word for word in unread(polar.group(2)) if word != "not")
    if not words.know(said) and not _GIVES_REASON.match(polar.group(), len(expected)):
        return False
    return not _AGAINST[expected].search(polar.group(2))


def _difference(reference: str, text: str) -> Verdict:
    """`unparsed` if the text has the same words ("Curie, Marie"; "cats" for "cat"), others that may name the same
    ("Mon" for "Monday"), or the reference and no contradiction; else wrong."""
    expected, found = plain_text(reference), plain_text(text)
    is_single = not _SEVERAL.search(text) or _SEVERAL.search(expected)
    if len(expected.split()) > _FEW_WORDS or (may_name_the_same(expected, found) and is_single):
        return "unparsed"
    sides = (reference, text), (text, reference)
    is_name = any(has_code(code) and _NAME.fullmatch(bare_text(name).strip(" .")) for code, name in sides)
    if is_name or (chemical(text) and chemical(reference) and are_same_formula(reference, text) is None):
        return "unparsed"  # of NaCl; the same atoms
    if expected in _AGAINST and len(found) > _SHORT and not _SAYS_TRUTH.match(found):
        return "unparsed"  # "it is unstable" may be yes or no
    denied = [side.startswith("not ") for side in (expected, found)]
    if denied[0] != denied[1] and {*expected.split()}.isdisjoint(found.split()):
        return "unparsed"  # "not false" for true, "not prime" for composite
    if expected.replace("non ", "not ") == found.replace("non ", "not "):
        return "unparsed"
    if any(_may_be_none(one, other) for one, other in sides):
        return "unparsed"
    if _figures(expected) == _figures(found) != [] and (
        found.isdecimal() or _FIGURES.fullmatch(found) or _NUMERIC_DATE.search(f"{found} {expected}")
    ):
        return "unparsed"  # "15" for "15th day", 01/05/2024 for January 5, 1/4 for "one in four"
    if plain_text(_BY_CLOCK.sub(_in_minutes, reference)) == plain_text(_BY_CLOCK.sub(_in_minutes, text)):
        return "unparsed"  # 14h30 may be a time or how long something takes
    if _words(expected) == _words(found) != [] or differ_in_form(expected, found) or _is_marked(reference, text):
        return "unparsed"
    if _YEAR.sub("-", expected) == _YEAR.sub("-", found) and "-" in (expected[:1], found[:1]):
        return "unparsed"  # "March 5" for a day of a year
    halves = [len(_HALF.findall(side)) for side in (expected, found)]
    if sorted(halves) == [0, 1] and _without_half(expected) == _without_half(found):
        return "unparsed"  # 3:30 may be 3:30 pm
    is_inside = bool(expected) and (_holds(found, expected) or (expected[0] > "\u2e80" and expected in found))
    return "unparsed" if not found or (is_inside and not _SEVERAL.search(text)) else "wrong"


def _may_be_none(one: str, other: str) -> bool:
    """Whether one is none and so is the other, or is zero: "none" may count."""
    none = read_none(one)
    return none is not None and bool(read_none(other) or (plain_text(other) in ("0", "zero") and not none.is_undefined))


def _in_minutes(time: re.Match[str]) -> str:
    return f"{time[1]}:{time[2] or '00'}"


_YEAR = re.compile(r"\A\d{4}-(?=\d\d-)")
_NAME = re.compile(r"[a-z]{4,}(?:[ -][a-z]+)*")
_HALF = re.compile(r"(?<=\d) [ap]m\b")


def _without_half(text: str) -> str:
    """A time by a clock of 12 hours that may be in either half of the day."""
    return re.sub(r"\b0(?=:)", "12", _HALF.sub("", text))


def _value(text: str) -> Fraction | None:
    """The number in "40.0" or "x = 40". A unit belongs to an answer: "3 BC" is not three."""
    number = _NUMBER.fullmatch(text)
    return Fraction(number[1]) if number else None


def _figures(text: str) -> list[int]:
    return sorted(int(figure) for figure in re.findall(r"\d{1,9}", text))


def _holds(text: str, words: str) -> bool:
    """Whether the words occur in the text, not as a part of longer words."""
    start = -1
    while (start := text.find(words, start + 1)) >= 0:
        if not _IN_WORD.search(text[max(0, start - 1) : start] + text[start + len(words) :][:1]):
            return True
    return False


def _is_marked(reference: str, text: str) -> bool:
    """Whether one has the mark of an option and is otherwise the other, or its letter: "D. blue" and "blue" or "D"."""
    sides = bare_text(reference).strip(' *"'), bare_text(text).strip(' *"')
    for side, other in (sides, sides[::-1]):
        if marked := _MARKED.fullmatch(side):
            return other.strip("().") == marked.group(1) or plain_text(other) == plain_text(marked.group(2))
    return False


def _words(text: str) -> list[str]:
    return [] if re.search(r"\d", text) else sorted(re.findall(r"\w+", without_accents(text)))
