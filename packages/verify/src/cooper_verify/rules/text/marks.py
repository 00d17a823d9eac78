r"""The marks by which a completion shows its answer: a box, or a statement such as "the answer is", `####`, `<answer>`.

Statements are read in the languages of `LANGUAGES`. Nothing here takes more than linear time in the text.
"""

import re
from collections import deque
from typing import NamedTuple

from cooper_verify.rules.vocabulary.languages import LANGUAGES

_FINAL_CHARS = 20
_ENGLISH, *_OTHERS = LANGUAGES


def _statement_in(spaced: bool) -> str:
    """A noun with a verb or a colon after it: "the answer to the question is", "答案是"."""
    found: list[str] = []
    for language in _OTHERS:
        if language.spaced is not spaced:
            continue
        verb = rf"(?:{language.verb})"
        if spaced:
            found.append(
                rf"(?:{language.answer})\b(?:[^.\n:$\\]{{0,80}}?(?<![\w'])(?:{language.verb})(?![\w'])|\s*+(?:\*{{1,2}}\s*+)?[:=])"
            )
        else:
            found.append(rf"(?:{language.answer})[^.\n:$\\\d]{{0,12}}?\s*+(?:{verb}|[:=])")
    return "|".join(found)


_FIELD = r"[\"'](?:final_?answer|answer|result)[\"']\s*+:"
_IN_ENGLISH = (
    r"\banswers?\b(?:[^.\n:$\\]{0,80}?\b(?:is|are|equals)\b|\s*+(?:\*{1,2}\s*+)?[:=])|^[^\S\n]*+ans(?=\s?[:=])\s?[:=]|^[^\S\n]*+A:|\#{4,}+"
    rf"|{_FIELD}|<(?:final[_ -]?)?answer>|<(?:result|solution)>(?=[^<\n]{{1,100}}</)"
)
_STATEMENT = re.compile(_IN_ENGLISH, re.IGNORECASE | re.MULTILINE)
_IN_ANY_LANGUAGE = re.compile(
    rf"\b(?:{_statement_in(True)})|{_statement_in(False)}|{_IN_ENGLISH}", re.IGNORECASE | re.MULTILINE
)
_IN_ASCII = ("antwort", "reponse", "respuesta")
"""Nouns of other languages that a text without accents may have."""
_IN_STATEMENTS = ("ans", "a:", "####", "result", "<solution>")
"""One of these is in each statement in English, in small letters."""
_FINAL = re.compile(
    rf"(?:\bfinal|{'|'.join(filter(None, (language.final for language in _OTHERS)))})\s*\Z", re.IGNORECASE
)
EMOJI = r"[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]"
APPROVING = (
    r"[\u2713\u2714\u2705\u2611\u2b50\u2728\u27a1\u2764\u200d\ufe0f\U0001f300-\U0001f43f\U0001f449\U0001f44d\U0001f44f\U0001f490-\U0001f493"
    r"\U0001f49b-\U0001f4a1\U0001f4aa\U0001f4af-\U0001f4c8\U0001f4ca-\U0001f4f4\U0001f522-\U0001f525\U0001f535-\U0001f539\U0001f5fb-\U0001f604\U0001f606-\U0001f60e\U0001f642\U0001f64c\U0001f64f\U0001f680-\U0001f6a2"
    r"\U0001f917\U0001f929\U0001f950-\U0001f970\U0001f973\U0001f980-\U0001f9cb]"
)
"""Emoji that only decorate an answer: things, and faces that smile. Any other may reject or doubt it."""
MARK_ENDS = r"(?<!!)!++(?=\s++[A-Z]|[^\S\n]*+(?:\n|\Z)(?!\s*+(?:\\[\])]|\$)))"  # in a formula it is a factorial
SENTENCE_END = re.compile(
    rf"(?<!\bRs)(?<!\bsq)(?<!\bcu)[.?](?=\s|$)|{MARK_ENDS}|(?i:</(?:(?:final[_ -]?)?answer|result|solution)>)|\n"
)
_BOX = re.compile(r"\\(?:f?boxed|fbox|framebox|bbox(?:\[[^\[\]]{0,80}\])?)\s*(?=\{)")
_BRACE = re.compile(r"(?<!\\)[{}]")
_JOINERS = re.compile(r"\\[\[\]()]|\\quad|\\text\s*\{\s*(?:or|and)\s*\}|\b(?:or|and)\b|[\s$,;&{}]")


class Box(NamedTuple):
    """Where a box is in a text."""

    command: int
    """Where its command begins."""
    start: int
    """Where its content begins."""
    end: int
    """Where its content ends: at the closing brace."""


def final_boxes(text: str) -> list[Box]:
    """The boxes that make up the final answer, in order: the last one and those in the same sentence."""
    if "box" not in text:
        return []
    boxes: list[Box] = []
    closing = _closing_braces(text)
    for match in _BOX.finditer(text):
        if (end := closing.get(match.end())) is not None:
            if boxes and match.start() < boxes[-1].end:
                boxes.pop()  # a box inside a box: the inner one is the answer
            boxes.append(Box(match.start(), match.end() + 1, end))
    first = len(boxes) - 1
    while first > 0:
        between = text[boxes[first - 1].end + 1 : boxes[first].command]
        if _JOINERS.sub("", between) and SENTENCE_END.search(between):
            break
        first -= 1
    return boxes[max(first, 0) :]


def _closing_braces(text: str) -> dict[int, int]:
    """Maps the position of each opening brace to that of its closing brace."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            opened.append(match.start())
        elif opened:
            closing[opened.pop()] = match.start()
    return closing


def first_mark(text: str) -> int | None:
    """Where the first complete answer mark ends: a box's closing brace, or the beginning of a stated value."""
    pattern = _statements(text)
    statement = pattern.search(text) if pattern else None
    box = _BOX.search(text) if "box" in text else None
    closed = text.find("}", box.end()) + 1 if box else 0
    return min(filter(None, (statement and statement.end(), closed)), default=None)


def opens_box(text: str, start: int) -> bool:
    """Whether a box begins after `start`."""
    return _BOX.search(text, start) is not None


def last_statement(text: str, after: int = 0) -> re.Match[str] | None:
    """The last statement of an answer that begins at `after` or later."""
    pattern = _statements(text)
    last = deque(pattern.finditer(text, after), maxlen=1) if pattern else None
    return last[0] if last else None


def _statements(text: str) -> re.Pattern[str] | None:
    """The pattern of statements in a text; None if it has none."""
    small = text.lower()
    if not text.isascii() or any(map(small.__contains__, _IN_ASCII)):
        return _IN_ANY_LANGUAGE
    return _STATEMENT if any(map(small.__contains__, _IN_STATEMENTS)) else None


def is_final(statement: re.Match[str]) -> bool:
    """Whether a statement replaces a box before it: that of a *final* answer, or the tag `<answer>`."""
    before = statement.string[max(0, statement.start() - _FINAL_CHARS) : statement.start()]
    return statement.group()[0] == "<" or bool(_FINAL.search(before) or _FINAL_INSIDE.search(statement.group()))


_FINAL_INSIDE = re.compile(r"(?i)\A\w+\s(?:finale?|définitive)\b")
"""Of Romance languages, where the adjective follows: "la réponse finale est"."""
