r"""Finds the final answer in a completion by text alone: nothing is evaluated.

Only the model's own turn after its last thought is read (`reply_of`); an unfinished thought has no answer, and neither
has a text whose last box is never closed, unless a statement follows its beginning. Both the worker processes and the
fast path read completions here, so they cannot disagree about *what* the answer is. Each text of an answer is a whole,
which a rule must read to its last character:
1. The last complete `\boxed{}` with what stands around it in its formula and phrase (`-\boxed{42}`, `\boxed{1.6}
   miles`), with those in the same sentence, or joined by "or", "and", a comma or nothing.
2. Else the text after the last statement of a final answer ("final answer is", "the answer is", "answer:", "####",
   "A:" at the start of a line, an "answer" field of JSON, the tag `<answer>`; in the languages of `LANGUAGES`), up to
   the end of its sentence, or the value that the sentence states (`value_in`). It replaces earlier statements. If that
   text is unreadable, the search stops there.
3. Else a completion of one short line that is no sentence with a number.
4. Else the value that the last sentence states. There is no last number of a text: a sentence from which no value can
   be read whole gives no answer.

A statement after the last box counts in addition to the box: "\boxed{3} ... the answer is 4" has two answers. Only a
value stated as the *final* answer, or in the tag `<answer>`, replaces the box: "\boxed{3} ... The final answer is 4"
has one answer, 4. Exclamation marks, emoji and smileys at the end of an answer are dropped, but not in a box or a
formula: there `5!` is a factorial.

`text_answer` reads answers in words or letters more strictly, because a word that merely occurs in a completion is not
an answer: only a box, a line that states the answer, and a completion that is nothing but its answer count.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cooper_base.data.thoughts import without_thoughts
from cooper_verify.rules.answer.around_answer import (
    before_box,
    before_statement,
    behind_answer,
    between_boxes,
    counted_in,
    demands_around,
    without_courtesy,
)
from cooper_verify.rules.answer.around_box import name_beside_others, wholes_of
from cooper_verify.rules.answer.fragments import makes_another_value
from cooper_verify.rules.answer.sentence import LONGEST, Stated, reduced, value_in
from cooper_verify.rules.asked.demands import demand, demands
from cooper_verify.rules.asked.words import unread, unread_behind, unread_outside
from cooper_verify.rules.text.marks import (
    APPROVING,
    MARK_ENDS,
    SENTENCE_END,
    Box,
    final_boxes,
    is_final,
    last_statement,
    opens_box,
)
from cooper_verify.rules.text.notation import one_notation
from cooper_verify.rules.text.plain_text import bare_text
from cooper_verify.rules.text.reply import TAIL_CHARS, reply_of
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of

__all__ = ["SENTENCE_END", "TAIL_CHARS", "FinalAnswer", "TextAnswer", "clean", "extract_answer"]
__all__ += ["reference_text", "text_answer"]

_SOLUTION_CHARS = 32_000
"""As many characters of a reference solution are read."""
_WHOLE_CHARS = 1000
_SHORT_CHARS = 100
"""Of a completion that is itself the answer."""
_MOST_BOXES = 20
"""More boxes than that are read without what stands around them: no answer has as many."""

_VALUE = re.compile(r"[\d\\]")
# With the punctuation around it.
_DECORATION = re.compile(rf"(?>(?:(?<=\s)[:;]-?[)D](?!\w)|[\s.,!]++|[;:]|{APPROVING})+)")
_EXCLAMATION = re.compile(
    rf"(?<=[\w)%*]){MARK_ENDS}|(?<=[\w)%*])!++(?=\s*+{APPROVING})|{APPROVING}|(?<=\s)[:;]-?[)D](?=\s|\Z)"
)
_DISPLAY = re.compile(r"\\\[(.*?)\\\]|\$\$(.*?)\$\$", re.DOTALL)
_LATER_IS = re.compile(r"\b(?:is|are|equals)\b")
_THIN_SPACE = r"(?: ?\{, ?\}|(?:\\!)?,\\! ?|\\!,|\\,|\\ |[ \u00a0\u2009\u202f])"
_GROUPED = re.compile(rf"(?<![\d.,])[1-9]\d{{0,2}}(?:{_THIN_SPACE}\d{{3}})+(?!\d)")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,}])(0|\d+(?=\{,\}(?!\d{3}(?!\d))))\{,\}(?=\d)")
"""`82{,}5`: without a space behind its comma it is no list, and without three figures no thousands."""
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
_STARTS = (*_EDGE_SPACES, "=>", "\u21d2", "\u2234", r"\therefore", r"\implies", r"\Rightarrow")
_ENDS = ("\\\\", *_EDGE_SPACES, *".,;:")
_GOES_ON = re.compile(r"\d\.{3}\Z")
_BOLD = re.compile(r"(?<![\w)\]}])\*\*|\*\*(?![\w(\\])")  # x**2 is a power
_LABEL = re.compile(r"\A\s*(?:(?:the|final)\s){0,2}answers?(?:\s(?:is|are)\b\s*:?|\s*:)", re.IGNORECASE)


@dataclass(frozen=True)
class FinalAnswer:
    """The candidates for a completion's final answer: several if it gives several, none if it gives no answer."""

    kind: Literal["boxed", "stated", "unmarked"]
    """How it is marked: by a box, by a statement ("the answer is"), or not at all."""
    texts: Sequence[str]
    """Each is a whole, in `one_notation` and without wrapping (`clean`), to be read to its last character. Of a box:
    its content with what stands around it. Of a statement or a last sentence: the value with its unit ("5 miles",
    "about 3.5 km", `x = 1 or x = 2`) where the sentence is understood (`value_in`), else the statement to the end of
    its sentence. Unmarked and not understood there is none, unless the completion is one short line."""
    words: tuple[str, ...] = ()
    """Words and numbers around them that may change them: they count only where the question or the reference has all
    of these (`Words.know`)."""
    counted: tuple[str, ...] = ()
    """Words of their units that are known: the grammar shows that they are what is counted."""


class _Places(NamedTuple):
    tail: str
    """What is read of a completion."""
    boxes: list[Box]
    """Its final boxes."""
    statement: re.Match[str] | None
    """The last statement of an answer after them."""


def _places(completion: str) -> _Places:
    tail = without_courtesy(one_notation(reply_of(completion)))[-2 * TAIL_CHARS :]  # a character may become eleven
    boxes = final_boxes(tail)
    return _Places(tail, boxes, last_statement(tail, boxes[-1].end if boxes else 0))


def extract_answer(completion: str, factorials: bool = False) -> FinalAnswer:
    """The final answer of a completion. With `factorials`, an exclamation mark at the end belongs to it."""
    tail, boxes, statement = places = _places(completion)
    if _is_cut_off(places):
        return FinalAnswer("boxed", ())
    stated, after = (None, "") if statement is None else _stated_value(statement, factorials)
    if boxes and statement and stated and _VALUE.search(stated.text) and is_final(statement):
        boxes = []
    if boxes:
        wholes, end = _wholes(tail, boxes)
        said = [_boxed(whole) for whole in wholes if not _is_long_prose(whole)]
        values = [value.text for value in said]
        texts = tuple(dict.fromkeys(filter(None, [*values, stated.text if stated else ""])))
        words = [word for value in said for word in value.words]
        words += before_box(tail, boxes[0].command) + between_boxes(tail, boxes)
        words += _behind_boxes(tail[end:], texts, statement, stated, after)
        words += demands_around(tail, boxes[0].command, end, texts)
        if len(boxes) == 1 and (name := name_beside_others(tail, boxes[0])):
            words.append(demand("only", name))
        return FinalAnswer("boxed", texts, tuple(words), counted_in(tail, boxes))
    if stated is not None:
        texts = (stated.text,) if stated.text else ()
        return FinalAnswer("stated", texts, (*stated.words, *behind_answer(after, texts)), stated.counted)
    unmarked = _unmarked(tail, factorials)
    return FinalAnswer("unmarked", (unmarked.text,) if unmarked.text else (), unmarked.words, unmarked.counted)


_FEW_WORDS = 5
"""So many words behind an open tag are an answer rather than the beginning of a sentence."""
_IN_A_SENTENCE = re.compile(
    r"(?!\\text\w*\s?\{\s?[Aa]ll\s)[^=\d]*?\\text\w*\s?\{[^{}\d]*[a-z]{2}[^=]*\d[^=]*"
    r"|[^=]*\d[^=]*\b(?:in total|in all|altogether|overall)[\s.}]*"
)


def _boxed(whole: str) -> Stated:
    r"""The value in a box, which may be in a sentence: `\text{Ann has } 12 \text{ apples}`."""
    is_sentence = len(whole) <= LONGEST and "\\text" in whole and _IN_A_SENTENCE.fullmatch(whole)
    stated = value_in(bare_text(whole)) if is_sentence else None
    return Stated(clean(stated.text), stated.words) if stated else Stated(clean(whole), ())


def _behind_boxes(
    behind: str, texts: Sequence[str], statement: re.Match[str] | None, stated: Stated | None, after: str
) -> list[str]:
    """What is left over behind boxes. Where the end of the text gives their value again, only that counts."""
    if stated and statement:
        before = statement.string[: statement.start()]
        between = behind_answer(behind[: len(behind) - len(statement.string) + len(before)], texts)
        return [*(between if len(texts) > 1 else []), *stated.words, *behind_answer(after, texts)]
    left = behind_answer(behind, texts)
    if left and len(texts) == 1 and (again := _unmarked(behind.strip(), False)).text.startswith(texts[0]):
        unit = again.text[len(texts[0]) :]
        return [*again.words, *unread_behind(unit)] if unit[:1] in ("", " ") else left
    return left


def _wholes(tail: str, boxes: Sequence[Box]) -> tuple[list[str], int]:
    """Each box with what stands around it, and where the last of them ends."""
    if len(boxes) > _MOST_BOXES:
        return [tail[box.start : box.end] for box in boxes], boxes[-1].end + 1
    return wholes_of(tail, boxes)


NOTHING = Stated("", ())
_LAST_FORMULA = re.compile(r"(?:\\\[|\$\$)\s*+((?:(?!\\\[|\\\]|\$\$).){1,400}?)\s*(?:\\\]|\$\$)[\s.,`*]*\Z", re.DOTALL)
_JSON_OBJECT = re.compile(r"\s*[\[{]\s*[\[{]?\s*[\"']")
_SENTENCE = re.compile(
    r"(?<!\A[a-z])(?<!\bp)(?<!\bpp)(?<!\b[nN][or])(?<!\b[fF]ig)(?<!\b[eE]q)(?<!\b[cC]h)(?<!\b[sS]ec)(?<!\b[vV]ol)(?<!\bRs)(?<=[^\s.!?])(?:[.?]++|!++(?=\s+[A-Z]))[\"')*]*(?=\s+\S)"
)


def _unmarked(tail: str, factorials: bool) -> Stated:
    """The answer of a completion that marks none: the completion if it is short, else what its last sentence states."""
    if not factorials and not _is_plain(tail):
        tail = _EXCLAMATION.sub(lambda mark: "." if mark.group()[0] == "!" else " ", tail).strip()
    tail = tail.rstrip("` \n")
    if not tail or _JSON_OBJECT.match(tail[tail.rfind("\n") + 1 :]):
        return NOTHING
    if display := _LAST_FORMULA.search(tail, max(0, len(tail) - LONGEST)):
        return Stated(clean(reduced(display.group(1))), tuple(before_box(tail, display.start())))
    line = tail[tail.rfind("\n") + 1 :]
    if _ITEM.fullmatch(line) and _ITEM.fullmatch(tail[: -len(line)].rstrip().rpartition("\n")[2]):
        return NOTHING
    sentences = _SENTENCE.split(line[-2 * LONGEST :])
    if len(sentences) == 2 and _ABBREVIATION.fullmatch(sentences[0]) and unread(sentences[0]):
        return NOTHING  # "Ref. 12"
    if (value := value_in(_BOLD.sub("", sentences[-1]))) is not None:
        earlier = tail[: len(tail) - len(sentences[-1])]
        if makes_another_value(earlier):
            return NOTHING  # "e.g. 12"
        return Stated(clean(value.text), tuple(unread_outside(value.words, earlier)), value.counted)
    is_short = line == tail.strip() and len(line) <= _SHORT_CHARS and len(sentences) == 1
    is_value = is_short and not _HAS_NUMBER_AND_WORDS.search(line) and not line.endswith("?")
    return Stated(clean(line), tuple(demands("", [line], ""))) if is_value else NOTHING


_ITEM = re.compile(r"\s*+(?:\d{1,2}[.)]|[-*\u2022])\s++[*$]*-?\d[\d.,/]*[*$]*\s*")
"""An item of a list that is a bare number: of several nobody knows which is the answer."""


_ABBREVIATION = re.compile(r"\W*[A-Z][a-z]{0,3}")


def _is_plain(text: str) -> bool:
    """Whether a text has no exclamation mark, no emoji and no smiley."""
    return text.isascii() and not any(map(text.__contains__, ("!", ":)", ";)", ":-", ";-", ":D", ";D")))


_HAS_NUMBER_AND_WORDS = re.compile(r"(?s)\d.*?(?<![\\A-Za-z])[^\W\d_]{2}|(?<![\\A-Za-z])[^\W\d_]{2}.*?\d")
"""Of a line that states no value: prose whose number would be a part of it."""


_COUNTRY = re.compile(r"\bUS(?=\\?\$\s?-?[\d.])")
"""Of a dollar: US$7 is $7."""


@text_cache(4096)
def reference_text(answer: str) -> str:
    """The reference answer without its wrapping. For a whole solution: the boxed answer, else the stated one.

    Empty if that is longer than what is read of a completion: none could give it.
    """
    text = _COUNTRY.sub("", _reference_in(one_notation(without_thoughts(answer)[-_SOLUTION_CHARS:])))
    return text if len(text) <= TAIL_CHARS else ""


def _reference_in(answer: str) -> str:
    if boxes := final_boxes(answer):
        return ", ".join(dict.fromkeys(filter(None, map(clean, _wholes(answer, boxes)[0]))))
    if "\n" in answer.strip() or last_statement(answer):
        final = extract_answer(answer)
        if final.kind != "unmarked":
            return ", ".join(final.texts)
    return clean(answer)


def clean(text: str) -> str:
    """An answer without wrapping that carries no meaning: Markdown, dollar signs, a final full stop, spaces."""
    text = _without_edge_spaces(_LABEL.sub("", _BOLD.sub("", text) if "**" in text else text, count=1))
    if text.startswith("$") and text.count("$") == 1 and "\\" in text:
        text = text[1:].lstrip()  # the end of the formula was cut
    for left, right in _WRAPPINGS:
        if len(text) > len(left + right) and text.startswith(left) and text.endswith(right):
            inner = text[len(left) : len(text) - len(right)]
            if left not in inner and not (left == "{" and "," in inner):  # a set
                text = _without_edge_spaces(inner)
    text = _GROUPED.sub(lambda number: re.sub(r"\D", "", number.group()), text)
    return _DECIMAL_COMMA.sub(r"\1.", text) if "{,}" in text else text


_ABOUT = re.compile(r"~\s?-?[\d.]+\Z")


def _without_edge_spaces(text: str) -> str:
    text = text.strip()
    start, end = 0, len(text)
    if _ABOUT.match(text):
        return text
    while text.startswith(_STARTS, start, end):
        start += next(len(space) for space in _STARTS if text.startswith(space, start, end))
    while text.endswith(_ENDS, start, end) and not _GOES_ON.search(text[max(start, end - 4) : end]):
        end -= next(len(space) for space in _ENDS if text.endswith(space, start, end))
    return text[start:end].strip()


def _is_cut_off(places: _Places) -> bool:
    """Whether a box that is never closed begins after all complete boxes and after the last statement, or a tag is open
    in which a text goes on. A few words in an open tag are an answer: who stops at `</answer>` may leave that out.
    """
    tail, boxes, statement = places
    if statement and statement.group()[0] == "<" and "</" not in (behind := _after_statement(statement)):
        held = behind.strip()
        if "\n" in held or "<" in held or len(held.split()) > _FEW_WORDS:
            return True
    return opens_box(tail, max(boxes[-1].end if boxes else 0, statement.end() if statement else 0))


def _after_statement(statement: re.Match[str]) -> str:
    return statement.string[statement.end() :]


_FALSE_FIELD = re.compile(r"[\"']\s*+:\s*+(?:false|null|False|None)\b")
"""A field of JSON that may reject the answer beside it: `"correct": false`."""
_FIELD_VALUE = re.compile(r"\s*+(?:\"((?>(?:[^\"\\]|\\.)*))\"|'([^'\n]*+)'|(\[[^\[\]{}]*+\])|([^\s,{}\[\]\"']++))")
"""A string, a list or a number of JSON."""


def _field_value(statement: re.Match[str]) -> tuple[str, str] | None:
    """The value of a field of JSON, and the text after it."""
    value = _FIELD_VALUE.match(statement.string, statement.end())
    if value is None:
        return None
    text = next(part for part in value.groups() if part is not None)
    return text.replace('\\"', '"').replace("\\\\", "\\").replace('", "', ", ").strip('"'), statement.string[
        value.end() :
    ]


def _stated_value(statement: re.Match[str], factorials: bool) -> tuple[Stated, str]:
    """The value in a statement, up to the end of its sentence, and the text after it."""
    if statement.group()[0] in "\"'" and (field := _field_value(statement)):
        return Stated(clean(field[0]), (*_FALSE_FIELD.findall(statement.string), *demands("", [field[0]], ""))), ""
    text = _after_statement(statement)
    rest = _FENCE_OPENS.sub("", text).lstrip(" \t\n:*=")
    start = statement.end() + len(text) - len(rest)
    words = before_statement(statement)
    if display := _DISPLAY.match(rest):
        value = clean(display.group(1) or display.group(2) or "")
        return Stated(value, tuple(words)), statement.string[start + display.end() :]
    end = SENTENCE_END.search(rest)
    is_asked = end is not None and end.group() == "?" and not rest[end.end() :].strip()
    is_kept = end is not None and (is_asked or end.group()[0] == "!" or rest.endswith("...", 0, end.end()))
    sentence = rest[: end.end() if is_kept else end.start()] if end else rest
    after = statement.string[start + (len(rest) if end is None else end.end() if is_kept else end.start()) :]
    if changed := _CHANGED.search(statement.group()):
        sentence = f"{changed.group()} {sentence}"
    # "The answer to this question is the number of cats, which is 19": the later "is" comes before any value.
    while (later := _LATER_IS.search(sentence)) and not _VALUE_SIGN.search(sentence, 0, later.start()):
        words += unread_outside(unread(sentence[: later.end()]), statement.string[: statement.start()])
        sentence = sentence[later.end() :].lstrip()
    if _is_long_prose(sentence):
        return NOTHING, after
    sentence = sentence if factorials else _without_decoration(_BOLD.sub("", sentence))
    is_prose = _PROSE.search(sentence) is not None and re.search(r"\d", sentence) is not None
    value = value_in(sentence, is_after_verb=True) if is_prose else None
    if value is None:
        text = clean(_STATEMENT_ENDING.sub("", _FRAME.sub("", sentence)))
        return Stated(text, (*words, *demands("", [text], ""))), after
    return Stated(clean(value.text), (*words, *value.words), value.counted), after


_FENCE_OPENS = re.compile(r"\A[ :*]*\n+\s*```\w{0,9}\n")


def _is_long_prose(text: str) -> bool:
    """Whether a text is so long and has so many words that it is no value: reading it for one would take long."""
    return len(text) > LONGEST and len(_LONG_WORD.findall(text, 0, LONGEST)) > _MOST_WORDS


_LONG_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_MOST_WORDS = 40
_VALUE_SIGN = re.compile(r"[\d\\$]")
_PROSE = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2,}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_STATEMENT_ENDING = re.compile(
    rf"\s?(?:{'|'.join(language.ending for language in LANGUAGES if language.ending)})[\s.]*\Z"
)
_CHANGED = re.compile(words_of("about", "bound", languages=[language for language in LANGUAGES if not language.spaced]))
"""Of a statement without spaces, where such words are before the verb: "the answer is at least" in Chinese."""


_FRAME = re.compile(r"(?i)\A(?:(?:exactly|precisely|just|only|positive|a total of)\s)+(?=[\w$\\])")


def _without_decoration(text: str) -> str:
    """The text without exclamation marks, emoji and smileys at its end, and the punctuation before them."""

    def kept(run: re.Match[str]) -> str:
        last = run.group().rstrip()[-1:]
        return "" if run.end() == len(text) and last and last not in ".,;:" else run.group()

    return _DECORATION.sub(kept, text)


_DRESS = " \t\n:*=#"


@dataclass(frozen=True)
class TextAnswer:
    """A completion's answer as text."""

    boxes: tuple[str, ...] = ()
    line: str | None = None
    """The line that states the answer, after any boxes."""
    whole: str | None = None
    """The end of a completion without box and statement."""
    words: tuple[str, ...] = ()
    """Words around the boxes or the line that may change them, as in `FinalAnswer`."""


def text_answer(completion: str, letters: bool = False) -> TextAnswer:
    """The answer of a completion; all fields are empty if there is none. With `letters`, `A:` is an option."""
    tail, boxes, statement = places = _places(completion)
    if _is_cut_off(places):
        return TextAnswer()
    if statement and letters and statement.group().strip().upper() == "A:":
        statement = None
    line, after = _stated_line(statement) if statement else (None, "")
    words = before_statement(statement) if statement else []
    if boxes:
        texts = tuple(text for box in boxes if (text := tail[box.start : box.end].strip()))
        words += before_box(tail, boxes[0].command) + between_boxes(tail, boxes)
        is_field = statement is not None and statement.group()[0] in "\"'"
        behind = "" if is_field else tail[boxes[-1].end + 1 : statement.start() if statement else len(tail)]
        return TextAnswer(texts, line, words=(*words, *behind_answer(behind, texts), *behind_answer(after, texts)))
    if statement:
        return TextAnswer(line=line, words=(*words, *behind_answer(after, [line or ""])))
    return TextAnswer(whole=tail[-_WHOLE_CHARS:] or None)


def _stated_line(statement: re.Match[str]) -> tuple[str | None, str]:
    """The line of a statement, and the text after it."""
    text = _after_statement(statement)
    stated = text.lstrip(_DRESS)
    after = ""
    if statement.group()[0] in "\"'" and (field := _field_value(statement)):
        line = field[0]
    elif display := _DISPLAY.match(stated.lstrip()):
        line = display.group(1) or display.group(2) or ""
    else:
        line, _, after = stated.partition("\n")
    return _STATEMENT_ENDING.sub("", line).strip() or None, after
