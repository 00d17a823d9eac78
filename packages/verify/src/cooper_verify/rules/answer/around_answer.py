r"""What stands around an answer in its sentence and behind it: words and numbers that are read, or may change it.

"The answer is \boxed{12}" is read. In `not \boxed{12}`, "\boxed{12}. Strike that." and "\boxed{12}; 13" something is
left over, which the functions here give back: a verdict needs all of it to be known from the question (`Words.know`).
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from cooper_verify.rules.answer.around_box import MODULUS
from cooper_verify.rules.answer.fragments import is_cut_off, is_fragment, makes_another_value
from cooper_verify.rules.answer.sentence import DIMENSION, counted_words, unit_length
from cooper_verify.rules.asked.demands import demand, demands, verb_said, without_estimate
from cooper_verify.rules.asked.question import WORDS
from cooper_verify.rules.asked.words import (
    NEVER_KNOWN,
    REASONING,
    main_verb,
    unread,
    unread_agent,
    unread_behind,
    unread_beside,
    unread_outside,
)
from cooper_verify.rules.quantities.units import without_unit
from cooper_verify.rules.text.marks import APPROVING, EMOJI, Box
from cooper_verify.rules.values.relation import contradicts
from cooper_verify.rules.values.tokens import FUNCTIONS
from cooper_verify.rules.vocabulary.languages import words_of

_REACH = 400
"""So many characters of a sentence before an answer are read."""
_SENTENCE_BREAK = re.compile(r"[.!?](?=\s|\Z)|\n|[\u3002\uff01\uff1f]|</?\w{1,12}>")
_CLAUSE_BREAK = re.compile(rf"(?i){_SENTENCE_BREAK.pattern}|[,;]\s(?={words_of('conclusion')})")
"""Before a box, what precedes ", so" is another clause."""
_FORMULA = re.compile(
    r"\$\$[^$]{1,300}\$\$|\$[^$\n]{1,300}\$|\\\((?:(?!\\\)).){0,300}\\\)|\\\[(?:(?!\\\]).){0,300}\\\]"
)
_STRIKES = re.compile(
    r"(?:<(?:s|del|strike)>|\\(?:x?cancel|bcancel|cancelto|sout|st|xout|not|because|phantom|hphantom)\s?\{?)\s*+\Z"
)
"""What strikes out or hides the box behind it."""
_FUNCTION_OF = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(sorted(FUNCTIONS))})\s*\(?\s*+\Z")
"""A function in plain notation whose argument is the box: `log \boxed{12}`."""
_SIGN_BEFORE = re.compile(r"(?:(?<!\S)<\s?|(?<!\S)>|(?<=\S\s)>\s?|!|[\u00ac\u2260\u2264\u2265\u221a\u2211\u222b]\s?)\Z")
"""A sign in plain text whose operand is the box behind it."""
_OPEN_FORMULA = re.compile(
    r"(?:[-+*/<>^_\u2260\u2264\u2265\u00ac]|\\(?!(?:approx|equiv|to|therefore|implies|(?:long)?(?:left)?rightarrow|(?:Long)?(?:Left)?Rightarrow)"
    r"(?![A-Za-z]))[A-Za-z]+)\s*\$[\s~]*+\Z"
)
"""A formula that ends in a sign whose operand is the box: `$x \\neq$`."""
_COMMAND = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+")
_LAST_VERB = re.compile(rf"(?is).*({words_of('verb', 'states')}|[=:\u2248]|\\(?:approx|to|Rightarrow|implies)\b)")
_LAST_WORD = re.compile(r"[A-Za-z]*[\s$({\\*]*\Z")
_CALCULATION = "0123456789 \t.,+*/()^=-\u00d7\u00f7\u00b7"
"""What calculations are written with."""
_EQUAL = re.compile(r"=[\s&$]*\Z")
_SIDE_BEGINS = re.compile(rf"(?i)[\n=$;]|[:,]\s|\\[(\[]|{words_of('verb', 'states', 'conclusion')}(?<!-)")
_USED = re.compile(r"\bused\b(?!\s+to\b)")
_OPERATOR_BETWEEN = re.compile(r"\s*(?:[-+*/^<>\u00d7\u00f7\u00b7]|\\(?:cdot|times|div|over)\b|\}\s*\{)\s*")
"""Between boxes: what makes one value of them."""
_JOINS = re.compile(rf"(?i){words_of('either', 'both')}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CHANGED_FIGURE = re.compile(
    r"(?<![\d)}\]\s]) *+-\s?\d++(?>(?:[.,]\d++)*)|(?<![\d.,])\d++(?>(?:[.,]\d++)*)\s?(?:%|!(?=\S))"
)
"""A number with a sign, which is not the number alone: `-3`, `3%`."""
_FUNCTION_BEHIND = re.compile(
    rf"[\s$)}}\]*]*+(?:{'|'.join(sorted(FUNCTIONS - {'floor', 'ceil', 'abs', 'min', 'max'}))})\s*(?:[\d(\\$.]|\Z)"
)
"""A function in plain notation right behind an answer: `\boxed{12} sqrt`."""
_ORDINAL = re.compile(r"\A[\s$})\\]*(?:st|nd|rd|th)\b")
_HAS_UNIT = re.compile(r"(?<!\\)(?<![A-Za-z\\])[^\W\d_]{2,}|\$|[\u20ac\u00a3]")
_ENDS_IN_MODULUS = re.compile(rf"{MODULUS.pattern}\Z")
_MODULUS_CHARS = 40
_COURTESY = re.compile(
    r"(?i)\b(?:(?:please )?let me know if (?:you|there)|(?:please )?feel free to ask|(?:i )?hope (?:this|that) helps)\b"
    r"[^.!?\n\d\\$]{0,80}[.!]*"
)
"""How chat models end."""


def without_courtesy(text: str) -> str:
    """The text without such sentences."""
    return _COURTESY.sub("", text).strip()


_TAG = re.compile(r"</?\w{1,12}\s?/?>|<\|\w{1,20}\|>")
_LEFT_OVER = re.compile(r"\bleft[ -]?over\b")
_MARK = re.compile(rf"(?!{APPROVING}){EMOJI}")
"""A mark that may reject the answer beside it."""
_SIGN = re.compile(
    r"\\(?!(?:q?quad|text\w*|math(?:rm|bf)|begin|end|left|right|blacksquare|square|Box|qed|checkmark|hline|therefore|boxed|bf"
    r"|newline|noindent)(?![A-Za-z]))[A-Za-z]+|[^\w\s\\.,;:!'\"(){}\[\]$*`#&%=/|~\u2018-\u201f\u2026\u00ab\u00bb\u2010-\u2015\u2022"
    rf"\u00b7\u220e\u25a0-\u25ff\u3000-\u3011-](?<!{APPROVING})"
)
"""Behind an answer: what is no word, number, punctuation or decoration: `\\neq`, `?`, a thumb down."""


def before_box(text: str, place: int) -> list[str]:
    """What is left over of the sentence in front of a box or a formula."""
    near, estimate = without_estimate(text[max(0, place - _REACH) : place])
    start = _last_end(_CLAUSE_BREAK, near)
    clause = _without_calculation(_USED.sub("uses", _COMMAND.sub(" ", _FORMULA.sub(" ; ", near[start:]))))
    if main := main_verb(clause):
        words, beside = unread_agent(clause[:main]), verb_said(clause, main)
    elif verb := _LAST_VERB.match(clause):
        words, beside = unread(clause[: verb.start(1)], is_subject=True), unread_beside(clause[verb.start(1) :])
    elif is_fragment(clause):
        words, beside = [], [NEVER_KNOWN]
    else:
        words, beside = unread(clause), unread_beside(_LAST_WORD.search(clause).group())  # pyright: ignore
        beside += [word for word in unread_beside(clause) if word.endswith(NEVER_KNOWN)]
    operates = any(pattern.search(near) for pattern in (_STRIKES, _SIGN_BEFORE, _OPEN_FORMULA, _FUNCTION_OF))
    operates = operates or makes_another_value(near)
    struck = ["~~"] if near.endswith("~~") or operates else []
    outside = unread_outside(words, text[: max(0, place - len(near) + start)])
    return [*struck, *estimate, *_MARK.findall(near, start), *beside, *outside]


def _last_end(breaks: re.Pattern[str], text: str) -> int:
    """Where the last break in a text ends; 0 if there is none."""
    line = text.rfind("\n") + 1
    return max((end.end() for end in breaks.finditer(text, line)), default=line)


def _without_calculation(clause: str) -> str:
    r"""The clause without calculations that end right in front of a box, which repeats their value:
    `8+2=10, 10-6=4 \boxed{4}`. One that ends in a sign goes on in the box."""
    words = clause.rstrip(_CALCULATION)
    return f"{words} ; " if clause[len(words) :].rstrip()[-1:].isdigit() else clause


def demands_around(text: str, start: int, end: int, texts: Sequence[str]) -> list[str]:
    """What the sentence of boxes, which stand from `start` to `end`, demands of the question."""
    before = text[max(0, start - _REACH) : start]
    behind = text[end : end + _REACH]
    stop = _SENTENCE_BREAK.search(behind)
    found = demands(before[_last_end(_CLAUSE_BREAK, before) :], texts, behind[: stop.start()] if stop else behind)
    if modulus := _ENDS_IN_MODULUS.search(text, max(start, end - _MODULUS_CHARS), end):
        found.append(demand("mod", modulus[1]))
    return [*found, NEVER_KNOWN] if len(texts) == 1 and _is_equated_otherwise(before, texts[0]) else found


def _is_equated_otherwise(before: str, value: str) -> bool:
    r"""Whether a calculation has another value than the box behind it: `13 = \boxed{12}`."""
    equal = _EQUAL.search(before)
    if equal is None:
        return False
    side = before[: equal.start()]
    return contradicts(side[_last_end(_SIDE_BEGINS, side) :], without_unit(value))


def between_boxes(text: str, boxes: Sequence[Box]) -> list[str]:
    between = [text[one.end + 1 : other.command] for one, other in pairwise(boxes)]
    operators = [found.group() for part in between for found in [_OPERATOR_BETWEEN.fullmatch(part)] if found]
    return operators + [word for part in between for word in unread(_JOINS.sub(" ", _FORMULA.sub(" ", part)))]


def counted_in(text: str, boxes: Sequence[Box]) -> tuple[str, ...]:
    """What a single box counts, where the grammar shows it."""
    if len(boxes) > 1:
        return ()
    start = boxes[0].end + 1
    phrase = text[start : start + _REACH].lstrip("$)}\\")
    return counted_words(text[: boxes[0].command], phrase[: unit_length(phrase)])


_ANOTHER_ANSWER = re.compile(
    r"(?i)(?!let\b|here\b|that\b|it\b)\b([^\W\d_]{2,})['\u2019]s?\s(?:[a-z]+\s)?\Z"
    r"|\b([^\W\d_]+)\s(of|in|d(?:e|es|u|er|el|ell[ae]|[ao]s?)|von)\s(?:(?:the|my|your|all|these|both|l[ae]s?|den|allen)\s(?:[a-z]+\s)?)?\Z"
)
"""In front of "answer": somebody's, or what is made of answers, such as their sum or their digits."""
_OPERATOR_BEFORE = re.compile(r"(?i)(?:\b(?:times|minus|plus|over)|[\w)]\s[*/+\u00d7\u00b7])\s(?:(?:the|my|your)\s)?\Z")
"""In front of "answer": what makes it a part of a calculation, "2 times the answer is 12". A plus right behind a figure
is a slip ("6+10=16+ answer: 16")."""


def _opening(text: str) -> int:
    """How much of a sentence only says how its answer was found: "Based on the calculations above, the answer is"."""
    end = max(text.rfind(", "), text.rfind(" that "))
    return end + 1 if {word.casefold() for word in WORDS.findall(text[: end + 1])} <= REASONING else 0


def before_statement(statement: re.Match[str]) -> list[str]:
    """What is left over of the sentence of a statement, up to its verb."""
    if not statement.group()[:1].isalpha():
        return []
    near = statement.string[max(0, statement.start() - _REACH) : statement.start()]
    start = _last_end(_SENTENCE_BREAK, near)
    start += _opening(near[start:])
    words = unread(f"{_FORMULA.sub(' ', near[start:])} {statement.group()}", is_subject=True)
    words += [found[1] or f"{found[2]} {found[3]}" for found in [_ANOTHER_ANSWER.search(near, start)] if found]
    words += [NEVER_KNOWN] if _OPERATOR_BEFORE.search(near, start) else []
    return unread_outside(words, statement.string[: statement.start() - len(near) + start])


def behind_answer(text: str, answers: Sequence[str]) -> list[str]:
    """What is left over behind an answer: words, other numbers than its own, signs."""
    has_unit = any(_HAS_UNIT.search(answer) for answer in answers)
    text = _ORDINAL.sub("", text)
    text = _LEFT_OVER.sub("left", DIMENSION.sub("", text) if has_unit else text)
    if not text.strip(" .\n$*}\\])"):
        return []
    if is_cut_off(text) or _FUNCTION_BEHIND.match(text):
        return [NEVER_KNOWN]
    figures = {number for answer in answers for number in _NUMBER.findall(answer)}
    changed = [found.group() for found in _CHANGED_FIGURE.finditer(text) if found.group().strip() not in answers]
    if not figures.isdisjoint(number for found in changed for number in _NUMBER.findall(found)):
        return [NEVER_KNOWN]
    return [*_SIGN.findall(_TAG.sub(" ", text)), *unread_behind(_COMMAND.sub(" ", text), figures, has_unit)]
