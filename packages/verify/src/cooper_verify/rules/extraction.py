r"""Finds the final answer in a completion by text alone: nothing is evaluated.

Only what follows the last thought (`<think>…</think>` and its kin) is read; an unfinished thought has no answer, and
neither has a text whose last box is never closed, unless a statement follows the box's beginning. Both the worker
processes and the fast path read completions here, so they cannot disagree about *what* the answer is:
1. The last complete `\boxed{}`, with those in the same sentence, or joined by "or", "and", a comma or nothing.
2. Else the text after the last statement of a final answer ("final answer is", "the answer is", "answer:", "####", "A:"
   at the start of a line, an "answer" field of JSON, the tag `<answer>`; also in Chinese, Japanese, Korean and some
   European languages), up to the end of its sentence. It replaces earlier statements. If that text is unreadable, the
   search stops there.
3. Else the whole text, if it is one line of nothing but numbers ("21 and 43"). These are several answers.
4. Else the end of the text, from which Math-Verify takes what it can find.

A statement after the last box counts in addition to the box: "\boxed{3} ... the answer is 4" has two answers. So does
a number right after the box ("\boxed{3} or 4"). Only a value stated as the *final* answer, or in the tag `<answer>`,
replaces the box: "\boxed{3} ... The final answer is 4" has one answer, 4. Exclamation marks, emoji and smileys at the
end of an answer are dropped, but not in a box or a formula: there `5!` is a factorial.

`text_answer` reads answers in words or letters more strictly, because a word that merely occurs in a completion is not
an answer: only a box, a line that states the answer, and a completion that is nothing but its answer count.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cooper_base.data.thoughts import without_thoughts
from cooper_verify.rules.notation import one_notation
from cooper_verify.rules.number_words import changes_after
from cooper_verify.rules.text_cache import text_cache

TAIL_CHARS = 8000
"""Only this many characters at the end of a completion are read, which bounds the work on very long texts."""
_SOLUTION_CHARS = 32_000
"""As many of a reference solution."""
FREE_CHARS = 1000
_FINAL_CHARS = 8
_BEFORE_CHARS = 60

_IN_ENGLISH = (
    r"\banswers?\b(?:[^.\n:$\\]{0,80}?\b(?:is|are|equals)\b|\s*+(?:\*{1,2}\s*+)?[:=])|^[^\S\n]*+A:|\#{4}|[\"']answer[\"']\s*:"
    r"|<answer>"
)
_STATEMENT = re.compile(_IN_ENGLISH, re.IGNORECASE | re.MULTILINE)
_IN_ANY_LANGUAGE = re.compile(
    r"\b(?:antwort|r[e\u00e9]ponse|respuesta|resposta|risposta|\u043e\u0442\u0432\u0435\u0442)\b"
    r"(?:[^.\n:$\\]{0,80}?\b(?:ist|sind|lautet|betr\u00e4gt|est|sont|es|son|\u00e9|\u00e8|sono|\u0440\u0430\u0432\u0435\u043d|\u044d\u0442\u043e)\b|\s*+[:=])"
    r"|(?:\u7b54\u6848|\u7b54\u3048)(?:\u5e94\u8be5|\u61c9\u8a72)?\s*+(?:\u662f|\u4e3a|\u70ba|\u7b49\u4e8e|\u306f|[:=])|(?<!\w)\u7b54\s*+:"
    rf"|\ub2f5\s*+(?:\uc740|[:=])|{_IN_ENGLISH}",  # Romance, Germanic and Slavic; Chinese and Japanese; Korean
    re.IGNORECASE | re.MULTILINE,
)
_IN_ASCII = ("antwort", "reponse", "respuesta", "resposta", "risposta")
_FINAL = re.compile(r"(?:\bfinal|\u6700\u7ec8|\u6700\u7d42|\ucd5c\uc885|\bendg\u00fcltige)\s*\Z", re.IGNORECASE)
_VALUE = re.compile(r"[\d\\]")
_MARK_ENDS = r"(?<!!)!++(?=\s++[A-Z]|[^\S\n]*+(?:\n|\Z)(?!\s*+(?:\\[\])]|\$)))"  # in a formula it is a factorial
SENTENCE_END = re.compile(rf"(?<!\bRs)[.?](?=\s|$)|{_MARK_ENDS}|(?i:</answer>)|\n")
EMOJI = r"[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]"
_DECORATION = re.compile(rf"(?>(?:(?<=\s)[:;]-?[)D](?!\w)|[\s.,!]++|[;:]|{EMOJI})+)")  # with the punctuation around it
_EXCLAMATION = re.compile(
    rf"(?<=[\w)%*]){_MARK_ENDS}|(?<=[\w)%*])!++(?=\s*+{EMOJI})|{EMOJI}|(?<=\s)[:;]-?[)D](?=\s|\Z)"
)
_DISPLAY = re.compile(r"\\\[(.*?)\\\]|\$\$(.*?)\$\$", re.DOTALL)
_LATER_IS = re.compile(r"\b(?:is|are|equals)\b")
_BOX = re.compile(r"\\(?:f?boxed|fbox|framebox|bbox(?:\[[^\[\]]{0,80}\])?)\s*(?=\{)")
_BRACE = re.compile(r"(?<!\\)[{}]")
_JOINERS = re.compile(r"\\[\[\]()]|\\quad|\\text\s*\{\s*(?:or|and)\s*\}|\b(?:or|and)\b|[\s$,;&{}]")
_BEHIND_BOX = re.compile(r"[$)\]}]{0,4}((?!\s*or\s+\$?\d)[^.\n$]{1,60})")
_TEXT_BEHIND_BOX = re.compile(
    r"[\s~]*+(?:\\[,;: ]\s*+)?\\(?:text(?:rm|normal)?|mathrm|mbox)\s*+\{(?!(?:st|nd|rd|th)\b)[^{}]{1,60}\}"
)
_OPERATES = re.compile(r"\s?(?:\^|[*/]\s?\d|\\(?:times|cdot|div)(?![A-Za-z]))")
_ALTERNATIVE = re.compile(r"\}[\s$)\]\\]*\bor\s+(\$?[-\u2212+]?\$?\.?\d[^\n]*)")
_THIN_SPACE = r"(?: ?\{, ?\}|,\\! ?|\\,|\\ |[ \u00a0\u2009\u202f])"
_GROUPED = re.compile(rf"(?<![\d.,])[1-9]\d{{0,2}}(?:{_THIN_SPACE}\d{{3}})+(?!\d)")
_LISTED = r"\$?-?\d[\d,./]*+"
_BARE_LIST = re.compile(rf"{_LISTED}(?:(?: *[/;,] +| +(?:(?:or|and) +)?){_LISTED})+")
_WRAPPINGS = (
    *(
        ("$$", "$$"),
        ("$", "$"),
        (r"\(", r"\)"),
        (r"\[", r"\]"),
        ('"', '"'),
        ("'", "'"),
        ("`", "`"),
        ("\u201c", "\u201d"),
    ),
    *(("\u00ab", "\u00bb"), ("\u300c", "\u300d"), ("\u300e", "\u300f"), ("\u3010", "\u3011")),
    ("{", "}"),
)
_EDGE_SPACES = (r"\,", r"\;", r"\:", r"\!", r"\>", r"\ ", r"\quad", r"\qquad", "~", " ", "\n", "\t", "\r")
_ENDS = ("\\\\", *_EDGE_SPACES, *".,;:")
_GOES_ON = re.compile(r"\d\.{3}\Z")
_LABEL = re.compile(r"\A\s*(?:(?:the|final)\s){0,2}answers?(?:\s(?:is|are))?\s*:", re.IGNORECASE)


@dataclass(frozen=True)
class FinalAnswer:
    """The candidates for a completion's final answer: several if it gives several, none if it gives no answer."""

    kind: Literal["boxed", "stated", "free"]
    texts: Sequence[str]
    after: str = ""
    """The text after the last of them; it may take them back."""


def extract_answer(completion: str, factorials: bool = False) -> FinalAnswer:
    """The final answer of a completion. With `factorials`, an exclamation mark at the end belongs to it."""
    tail, boxes, statement = _places(completion)
    if _ends_in_open_box(tail, boxes, statement):
        return FinalAnswer("boxed", ())
    stated, after = (None, "") if statement is None else _stated_value(statement, factorials)
    if statement and _is_denied(statement):
        stated = ""
    if boxes and statement and stated and _VALUE.search(stated):
        before = tail[max(0, statement.start() - _FINAL_CHARS) : statement.start()]
        if statement.group()[0] == "<" or _FINAL.search(before):
            boxes = []
    if boxes:
        end_of_boxes = boxes[-1][1]
        other = _ALTERNATIVE.match(tail, end_of_boxes)
        outside = [stated or "", clean(other.group(1)) if other else ""]
        texts = dict.fromkeys(filter(None, [clean(_with_scale(tail, *span)) for span in boxes] + outside))
        return FinalAnswer("boxed", tuple(texts), after if stated else tail[end_of_boxes + 1 :])
    if stated is not None:
        return FinalAnswer("stated", (stated,) if stated else (), after)
    if _BARE_LIST.fullmatch(tail):
        return FinalAnswer("stated", (clean(tail),))
    free = tail[-FREE_CHARS:]
    if not factorials:
        free = _EXCLAMATION.sub(lambda mark: "." if mark.group()[0] == "!" else " ", free).strip()
    return FinalAnswer("free", (free,) if free else ())


_COUNTRY = re.compile(r"\b(?:US|CA|AU|NZ|HK)(?=\\?\$\s?-?[\d.])")
"""Of a dollar: US$7 is $7."""


@text_cache(4096)
def reference_text(answer: str) -> str:
    """The reference answer without its wrapping. For a whole solution: the boxed answer, else the stated one.

    Empty if that is longer than what is read of a completion: none could give it.
    """
    text = _COUNTRY.sub("", _reference_in(one_notation(without_thoughts(answer)[-_SOLUTION_CHARS:])))
    return text if len(text) <= TAIL_CHARS else ""


def _reference_in(answer: str) -> str:
    if boxes := [clean(_with_scale(answer, *span)) for span in final_boxes(answer)]:
        return ", ".join(dict.fromkeys(filter(None, boxes)))
    if "\n" in answer.strip() or _last_statement(answer):
        final = extract_answer(answer)
        if final.kind != "free":
            return ", ".join(final.texts)
    return clean(answer)


def clean(text: str) -> str:
    """An answer without wrapping that carries no meaning: Markdown, dollar signs, a final full stop, spaces."""
    text = _without_edge_spaces(_LABEL.sub("", text.replace("**", ""), count=1))
    for left, right in _WRAPPINGS:
        if len(text) > len(left + right) and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : len(text) - len(right)]
            if left not in inner and not (left == "{" and "," in inner):  # a set
                text = _without_edge_spaces(inner)
    return _GROUPED.sub(lambda number: re.sub(r"\D", "", number.group()), text)


def _with_scale(text: str, start: int, end: int) -> str:
    r"""What a box holds, with the words behind it that change its number: `12 million` for `$\boxed{12}$ million`."""
    if (words := _TEXT_BEHIND_BOX.match(text, end + 1)) and (
        changes_after(words.group()) or not is_retracted(words.group())
    ):
        return text[start:end] + words.group()  # it is a part of the same formula
    behind = _BEHIND_BOX.match(text, end + 1)
    if not behind or not _VALUE.search(text[start:end]) or is_retracted(behind.group(1)):
        return text[start:end]
    is_base_again = "_" in text[start:end]  # 101_2 in base two
    changes = not is_base_again and (changes_after(behind.group(1)) or _OPERATES.match(behind.group(1)))
    return text[start:end] + behind.group(1) if changes else text[start:end]


def _without_edge_spaces(text: str) -> str:
    text = text.strip()
    start, end = 0, len(text)
    while text.startswith(_EDGE_SPACES, start, end):
        start += next(len(space) for space in _EDGE_SPACES if text.startswith(space, start, end))
    while text.endswith(_ENDS, start, end) and not _GOES_ON.search(text[max(start, end - 4) : end]):
        end -= next(len(space) for space in _ENDS if text.endswith(space, start, end))
    return text[start:end].strip()


def final_boxes(text: str) -> list[tuple[int, int]]:
    """Spans of the contents of the boxes that make up the final answer, in order."""
    if "box" not in text:
        return []
    found: list[tuple[int, int, int]] = []
    closing = _closing_braces(text)
    for match in _BOX.finditer(text):
        if (end := closing.get(match.end())) is not None:
            if found and match.start() < found[-1][2]:
                found.pop()  # a box inside a box: the inner one is the answer
            found.append((match.start(), match.end() + 1, end))
    first = len(found) - 1
    while first > 0:
        between = text[found[first - 1][2] + 1 : found[first][0]]
        if _JOINERS.sub("", between) and SENTENCE_END.search(between):
            break
        first -= 1
    return [(start, end) for _, start, end in found[max(first, 0) :]]


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


def _places(completion: str) -> tuple[str, list[tuple[int, int]], re.Match[str] | None]:
    """The end of a completion, its final boxes, and the last statement of an answer after them."""
    tail = one_notation(without_thoughts(completion)[-TAIL_CHARS:]).strip()
    boxes = final_boxes(tail)
    return tail, boxes, _last_statement(tail, boxes[-1][1] if boxes else 0)


def _ends_in_open_box(text: str, boxes: Sequence[tuple[int, int]], statement: re.Match[str] | None) -> bool:
    """Whether a box that is never closed begins after all complete boxes and after the last statement."""
    place = max(boxes[-1][1] if boxes else 0, statement.end() if statement else 0)
    return _BOX.search(text, place) is not None


def _last_statement(text: str, after: int = 0) -> re.Match[str] | None:
    is_english = text.isascii() and not any(map(text.lower().__contains__, _IN_ASCII))
    last = deque((_STATEMENT if is_english else _IN_ANY_LANGUAGE).finditer(text, after), maxlen=1)
    return last[0] if last else None


_DENIED = re.compile(
    r"(?i)\b(?:doubt(?:s|ed|ful)?|\w{1,9}n't\s(?:think|believe|sure|certain|true|correct)|not\s(?:think|believe|sure|certain|clear|true|correct|the\scase)"
    r"|unlikely|unsure|whether|if|suppose|deny|refute[sd]?)(?:,?\s(?:that|if|whether|the|my|our|its?|final|correct)){0,6}\s*+\Z"
)
_NOT_IN_VERB = re.compile(r"(?i)\b(?:no|non|n\u00e3o)\s++\w++\Z")


def _is_denied(statement: re.Match[str]) -> bool:
    """Whether a statement says that something is not the answer: "I doubt that the answer is 12", "no es 12"."""
    before = statement.string[max(0, statement.start() - _BEFORE_CHARS) : statement.start()]
    return bool(_DENIED.search(before) or _NOT_IN_VERB.search(statement.group()))


def _after_statement(statement: re.Match[str]) -> str:
    return statement.string[statement.end() :]


def _stated_value(statement: re.Match[str], factorials: bool) -> tuple[str, str]:
    """The value in a statement, up to the end of its sentence, and the text after it."""
    text = _after_statement(statement)
    rest = text.lstrip(" \t\n:*=")
    start = statement.end() + len(text) - len(rest)
    if statement.group()[0] in "\"'":
        rest = rest.replace("\\\\", "\\")  # LaTeX inside JSON
    if display := _DISPLAY.match(rest):
        return clean(display.group(1) or display.group(2) or ""), statement.string[start + display.end() :]
    end = SENTENCE_END.search(rest)
    is_asked = end is not None and end.group() == "?" and not rest[end.end() :].strip()
    sentence = rest[: end.end() if is_asked or end.group()[0] == "!" else end.start()] if end else rest
    after = statement.string[start + (end.end() if end else len(rest)) :]
    # "The answer to this question is the number of cats, which is 19": the later "is" comes before any value.
    while (later := _LATER_IS.search(sentence)) and not re.search(r"[\d\\$]", sentence[: later.start()]):
        sentence = sentence[later.end() :].lstrip()
    return clean(sentence if factorials else _without_decoration(sentence.replace("**", ""))), after


def _without_decoration(text: str) -> str:
    """The text without exclamation marks, emoji and smileys at its end, and the punctuation before them."""

    def kept(run: re.Match[str]) -> str:
        last = run.group().rstrip()[-1:]
        return "" if run.end() == len(text) and last and last not in ".,;:" else run.group()

    return _DECORATION.sub(kept, text)


_JSON_STRING = re.compile(r"\s*\"((?:[^\"\\]|\\.)*)\"")
_DRESS = " \t\n:*=#"
_RETRACTION = re.compile(
    r"[^\w.\n]*(?:and|but|not)\b|[\W_]*(?:or|wait|hmm+|sorry|actually|rather|instead|correction|i mean|maybe|perhaps"
    r"|possibly|but wait|oops|scratch that|my mistake|let me correct|no(?=\s*[,.!:;\u2014-])"
    r"|alternatively(?!,?\s+(?:we|you|one|us(?:e|ing)|by|note)\b)"  # another way, not another answer
    r"|(?:(?:that|this|it|which)\s+)?(?:is|was|seems|looks)\s+(?:wrong|incorrect|false|a mistake|not (?:right|correct))"
    r"|(?:that|this|it)\s+(?:cannot|can't)\s+be\s+(?:right|correct))\b",
    re.IGNORECASE,
)
_OPENED_TEXT = re.compile(r"[\s$~)}\]]*+\\(?:text(?:rm|bf|it|normal)?|mathrm|mbox)\s*+\{")


@dataclass(frozen=True)
class TextAnswer:
    """A completion's answer as text."""

    boxes: tuple[str, ...] = ()
    line: str | None = None
    """The line that states the answer, after any boxes."""
    whole: str | None = None
    """The end of a completion without box and statement."""
    after: str = ""
    """The text after the boxes or, without boxes, after the line."""


def text_answer(completion: str, letters: bool = False) -> TextAnswer:
    """The answer of a completion; all fields are empty if there is none. With `letters`, `A:` is an option."""
    tail, spans, statement = _places(completion)
    if _ends_in_open_box(tail, spans, statement):
        return TextAnswer()
    if statement and letters and statement.group().strip().upper() == "A:":
        statement = None
    line, after = None, ""
    if statement and _is_denied(statement):
        pass  # "I doubt that the answer is Lyon" gives none
    elif statement:
        text = _after_statement(statement)
        stated = text.lstrip(_DRESS)
        if statement.group()[0] in "\"'" and (string := _JSON_STRING.match(text)):
            line = string.group(1).replace("\\\\", "\\")
        elif display := _DISPLAY.match(stated.lstrip()):
            line = display.group(1) or display.group(2) or ""
        else:
            line, _, after = stated.partition("\n")
        line = line.strip() or None
    if spans:
        boxes = tuple(text for start, end in spans if (text := tail[start:end].strip()))
        return TextAnswer(boxes, line, after=tail[spans[-1][1] + 1 :])
    return TextAnswer(line=line, after=after) if statement else TextAnswer(whole=tail[-FREE_CHARS:] or None)


def is_retracted(after: str) -> bool:
    """Whether the text after an answer retracts it or offers another one: "or Kyoto", "No, wait", "but maybe B"."""
    inside = _OPENED_TEXT.match(after)
    return bool(_RETRACTION.match(after, inside.end() if inside else 0))
