"""Finds the final answer in a completion by text alone: nothing is evaluated.

Both the verifier processes and the fast path in the main process read completions through this module, so they
cannot disagree about *what* the answer is. It imports only the standard library.

The rules, in order:
1. The last complete `\\boxed{}`. Boxes in the same sentence, or joined by "or", "and", a comma or nothing, belong
   together. Boxes earlier in the text are intermediate results and do not count.
2. Else the text after the last statement of a final answer ("final answer is", "the answer is", "answer:",
   "####", "A:" at the start of a line, an "answer" field of JSON, the tag `<answer>`), up to the end of its sentence.
   It replaces any earlier statements. If that text is unreadable, the search stops there.
3. Else the whole text, if it is one line of nothing but numbers ("21 and 43"). These are several answers; the last one
   is not picked.
4. Else the end of the text, from which Math-Verify takes what it can find.

A statement after the last box counts in addition to the box: "\\boxed{3} ... the answer is 4" has two answers. So does
a number right after the box ("\\boxed{3} or 4"). Only a value stated as the *final* answer replaces the box:
"\\boxed{3} ... The final answer is 4" has one answer, 4. So has "\\boxed{3} ... <answer>4</answer>".

Exclamation marks, emoji and smileys at the end of an answer are dropped, but not in a box or a formula: there `5!` is a
factorial. `text_answer` reads answers in words from the same places.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

TAIL_CHARS = 8000
"""Only this many characters at the end of a completion are read, which bounds the work on very long texts."""
FREE_CHARS = 1000
_STATED_CHARS = 400
_FINAL_CHARS = 8

_STATEMENT = re.compile(
    r"\banswers?\b(?:[^.\n:$\\]{0,80}?\b(?:is|are|equals)\b|\s*\*{0,2}\s*[:=])|^\s*A:|\#{4}|[\"']answer[\"']\s*:|<answer>",
    re.IGNORECASE | re.MULTILINE,
)
_FINAL = re.compile(r"\bfinal\s*\Z", re.IGNORECASE)
_VALUE = re.compile(r"[\d\\]")
_MARK_ENDS = r"!+(?=\s+[A-Z]|[^\S\n]*(?:\n|\Z)(?!\s*(?:\\[\])]|\$)))"  # in a formula it is a factorial
SENTENCE_END = re.compile(rf"[.?](?=\s|$)|{_MARK_ENDS}|(?i:</answer>)|\n")
EMOJI = r"[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]"
_DECORATION = re.compile(rf"(?:[\s.,;:]*(?:!+|{EMOJI}|(?<=\s)[:;]-?[)D](?!\w)))+\s*\Z")
_EXCLAMATION = re.compile(rf"(?<=[\w)%*]){_MARK_ENDS}|(?<=[\w)%*])!+(?=\s*{EMOJI})|{EMOJI}|(?<=\s)[:;]-?[)D](?=\s|\Z)")
_DISPLAY = re.compile(r"\\\[(.*?)\\\]|\$\$(.*?)\$\$", re.DOTALL)
_LATER_IS = re.compile(r"\b(?:is|are|equals)\b")
_BOX = re.compile(r"\\f?boxed\s*(?=\{)")
_BRACE = re.compile(r"(?<!\\)[{}]")
_JOINERS = re.compile(r"\\[\[\]()]|\\quad|\\text\s*\{\s*(?:or|and)\s*\}|\b(?:or|and)\b|[\s$,;&{}]")
_ALTERNATIVE = re.compile(r"\}[\s$)\]\\]*\bor\s+(\$?[-\u2212+]?\$?\.?\d[^\n]*)")
_THIN_SPACE = r"(?: ?\{, ?\}|,\\! ?|\\,|\\ |[ \u00a0\u2009\u202f])"
_GROUPED = re.compile(rf"(?<![\d.,])[1-9]\d{{0,2}}(?:{_THIN_SPACE}\d{{3}})+(?!\d)")
_LISTED = r"\$?-?\d[\d,./]*"
_BARE_LIST = re.compile(rf"{_LISTED}(?:(?: *[/;,] +| +(?:(?:or|and) +)?){_LISTED})+")
_WRAPPINGS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ('"', '"'), ("'", "'"), ("`", "`"))


@dataclass(frozen=True)
class FinalAnswer:
    """The candidates for a completion's final answer: several if it gives several, none if it gives no answer."""

    kind: Literal["boxed", "stated", "free"]
    texts: Sequence[str]
    after: str = ""
    """The text after the last of them; it may take them back."""


@dataclass(frozen=True)
class Statement:
    """The last place where a text says what its answer is. `text` is what follows, from `start` on."""

    text: str
    start: int
    is_final: bool
    """Whether it says "final answer", or is the tag `<answer>`."""
    is_json: bool
    is_letter: bool
    """Whether it is only an `A:` at the start of a line, which may also be an option."""


def extract_answer(completion: str, factorials: bool = False) -> FinalAnswer:
    """The final answer of a completion. `texts` is empty if there is none.

    With `factorials`, an exclamation mark at the end of an answer belongs to it.
    """
    tail = completion[-TAIL_CHARS:].strip()
    boxes = final_boxes(tail)
    statement = last_statement(tail, after=boxes[-1][1] if boxes else 0)
    stated, end = (None, 0) if statement is None else _stated_value(statement, factorials)
    after = "" if statement is None else tail[statement.start + end :]
    if boxes and statement is not None and statement.is_final and stated and _VALUE.search(stated):
        boxes = []
    if boxes:
        other = _ALTERNATIVE.match(tail, boxes[-1][1])
        outside = [stated or "", clean(other.group(1)) if other else ""]
        candidates = [clean(tail[start:end]) for start, end in boxes] + outside
        texts = tuple(dict.fromkeys(text for text in candidates if text))
        return FinalAnswer("boxed", texts, after if stated else tail[boxes[-1][1] + 1 :])
    if stated is not None:
        return FinalAnswer("stated", (stated,) if stated else (), after)
    if _BARE_LIST.fullmatch(tail):
        return FinalAnswer("stated", (clean(tail),))
    free = tail[-FREE_CHARS:] if factorials else _EXCLAMATION.sub(_as_full_stop, tail[-FREE_CHARS:]).strip()
    return FinalAnswer("free", (free,) if free else ())


def _as_full_stop(mark: re.Match[str]) -> str:
    return "." if mark.group()[0] == "!" else " "


def undecorated(text: str) -> str:
    """The text without exclamation marks, emoji and smileys at its end."""
    return _DECORATION.sub("", text)


@lru_cache(maxsize=4096)
def reference_text(answer: str) -> str:
    """The reference answer without its wrapping. For a whole solution: the boxed answer, else the stated one."""
    if boxes := [clean(answer[start:end]) for start, end in final_boxes(answer)]:
        return ", ".join(dict.fromkeys(filter(None, boxes)))
    if "\n" in answer.strip() or last_statement(answer) is not None:
        final = extract_answer(answer)
        if final.kind != "free":
            return ", ".join(final.texts)
    return clean(answer)


def clean(text: str) -> str:
    """An answer without wrapping that carries no meaning: Markdown, dollar signs, a final full stop, spaces."""
    text = text.strip().replace("\u2212", "-").replace("**", "")
    text = text.rstrip(".,;: \n\t")
    for left, right in _WRAPPINGS:
        if len(text) > len(left + right) and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : len(text) - len(right)]
            if left not in inner:
                text = inner.strip().rstrip(".,;: ")
    return _GROUPED.sub(lambda number: re.sub(r"\D", "", number.group()), text)


def final_boxes(text: str) -> list[tuple[int, int]]:
    """Spans of the contents of the boxes that make up the final answer, in order."""
    if "boxed" not in text:
        return []
    found: list[tuple[int, int, int]] = []
    closing = _closing_braces(text)
    for match in _BOX.finditer(text):
        end = closing.get(match.end())
        if end is not None:
            if found and match.start() < found[-1][2]:
                found.pop()  # a box inside a box: the inner one is the answer
            found.append((match.start(), match.end() + 1, end))
    final: list[tuple[int, int]] = []
    next_command = len(text)
    for command, start, end in reversed(found):
        if final:
            between = text[end + 1 : next_command]
            if _JOINERS.sub("", between) and SENTENCE_END.search(between):
                break
        final.insert(0, (start, end))
        next_command = command
    return final


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


def last_statement(text: str, after: int = 0) -> Statement | None:
    """The last statement of an answer after position `after`; None if there is none."""
    statements = list(_STATEMENT.finditer(text, after))
    if not statements:
        return None
    last = statements[-1]
    is_final = bool(_FINAL.search(text[max(0, last.start() - _FINAL_CHARS) : last.start()])) or last.group()[0] == "<"
    rest = text[last.end() : last.end() + _STATED_CHARS]
    return Statement(rest, last.end(), is_final, last.group()[0] in "\"'", last.group().strip().upper() == "A:")


def _stated_value(statement: Statement, factorials: bool) -> tuple[str, int]:
    """The value in a statement, up to the end of its sentence, and where in the statement's text it ends."""
    rest = statement.text.lstrip(" \t\n:*=")
    skipped = len(statement.text) - len(rest)
    if statement.is_json:
        rest = rest.replace("\\\\", "\\")  # LaTeX inside JSON
    if display := _DISPLAY.match(rest):
        return clean(display.group(1) or display.group(2) or ""), skipped + display.end()
    end = SENTENCE_END.search(rest)
    sentence = rest[: end.end() if end.group()[0] == "!" else end.start()] if end else rest
    stop = skipped + (end.end() if end else len(rest))
    # "The answer to this question is the number of cats, which is 19": the later "is" comes before any value.
    while (later := _LATER_IS.search(sentence)) and not re.search(r"[\d\\$]", sentence[: later.start()]):
        sentence = sentence[later.end() :].lstrip()
    return clean(sentence if factorials else undecorated(sentence.replace("**", ""))), stop
