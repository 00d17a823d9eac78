"""Names and formulas of which an answer gives the value, and whether a question asks for them: `f(2) = 12`."""

import re
from collections.abc import Sequence

from cooper_verify.rules.asked.everyday_words import is_thing, is_time
from cooper_verify.rules.asked.question import TELLS, WORDS, Question, asked_part, says
from cooper_verify.rules.asked.word_forms import form_of
from cooper_verify.rules.vocabulary.counted_nouns import is_counted, plural
from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of

_CALL = r"[A-Za-z](?:\^\s?\{?-1\}?|'{1,3})?\(\s?(?:-?\d{1,9}|[A-Za-z])\s?\)"
_PIECE = (
    r"(?:\\(?:[dt]?frac|sqrt|cdot|times|overline|bar|angle|vec|left|right)(?![A-Za-z])"
    r"|(?<![A-Za-z\\])(?:[a-z]|[A-Z]{1,4})(?![A-Za-z])|[-+*/^_(){}'|\d])"
)
_FUNCTION_OF_NAME = (
    r"\\?(?:sin|cos|tan|cot|sec|csc|log|ln|lg)(?![A-Za-z])(?:_\s?(?:\w|\{\w{1,9}\}))?(?:\^\s?\{?\d\}?)?"
    r"\s*\(?\s*\d?\s*(?:[A-Za-z]|\\[a-z]+)(?:_\w)?\s*\)?|\|[A-Za-z]\|"
)
"""A function of a name: `\\sin 2x`, `\\log_2 x`, `|z|`."""
is_function_of_name = re.compile(_FUNCTION_OF_NAME).fullmatch
_IS = words_of("verb")
_VALUE_OF = r"(?:\b(?:value|valeur|valore?|wert) (?:of|d[eio]|von)|значение)"
_FUNCTION_OF = re.compile(rf"(?:\A|[,;:$\n\s])({_FUNCTION_OF_NAME})\s*&?=[\s$]*\Z")
_RANK = re.compile(r"\A[\s$^{}\\]*(?:(?:text|mathrm)\{)?(?:st|nd|rd|th)\b[\s$}]*(?:([a-z]+)\b)?}?")
"""Behind a figure: "th floor"."""
_NAMED = re.compile(
    rf"(?:\A|[,;:$\n]|\\[(\[]|[^\W\d_]{{2}}\s)\s*(?:(?P<left>{_PIECE}(?>(?:\s*{_PIECE})*))\s*&?="
    rf"|(?P<call>{_CALL})\s*\$?\s{_IS}|(?:length|measure)\sof\s\$?(?P<points>[A-Z]{{2,3}})\$?\s{_IS})[\s$]*\Z"
    rf"|(?i:\A|[.:;\n]|{words_of('conclusion')}|{_VALUE_OF})[\s,$]*(?P<term>{_PIECE}(?>(?:\s*{_PIECE})*))\$?\s{_IS}[\s$]*\Z"
)
"""What a value is the value of: a name or a formula in front of it."""
_POINT = re.compile(r"\$?(?P<point>[A-Z]'?)\s?(?:\\left)?\s?\([^()=]*,")
"""A point in front of its coordinates: `C(3,-4)`."""
_IS_AT_END = re.compile(rf"(?:=|{_IS})[\s$]*\Z")
_SPACES = re.compile(r"(\\[A-Za-z]+\s(?=[A-Za-z]))|\s")
"""Spaces, of which one behind a command ends it."""
_RATIO_OF = re.compile(
    r"\b(?:ratio|bearing|direction|position|displacement)\sof\s([^.,;:?\d]{1,40}?)\s(?:to|from|relative\sto)\s([^.,;:?\d]{1,40}?)(?=\s(?:is|are|was|in)\b|[.,;:?]|\Z)"
    r"|(?:\A|[\s$])([^\s$:=\d]{1,20})\s?:\s?([^\s$:=\d]{1,20})\s*=[\s$]*\Z"
    r"|\A\s*([a-z]{1,20})\sto\s([a-z]{1,20})\s(?:is|are)\b"
)
"""The two sides of a ratio or a bearing: "the ratio of boys to girls", "the bearing of A from B", `AB : CD =`."""
_NAMED_CHARS, _VERB_CHARS, _SUBJECT_CHARS = 80, 16, 200
_ASKED_VERB = (
    rf"(?:\b(?:find|determine|compute|calculate|evaluate|solve for|{TELLS})|{_VALUE_OF}|{_IS})"
    r"\s+(?:the\s)?\$?(?:m\s?)?(?:\\?angle\s)?(?:coordinates of (?:(?:the )?(?:point|vertex)\s)?)?"
)
_ASKED_NAME = re.compile(rf"{_ASKED_VERB}((?!a\s[a-z])[a-z]|{_CALL})\$?(?=[.,?]|\s(?!\s?[-+*/^=])|\Z)")
_ASKED_ALSO = re.compile(r"(?<![a-z])[a-z]\$?,?\s(?:and|or)\s\$?[a-z](?![a-z])")
_ASKED_TERM = re.compile(
    rf"{_ASKED_VERB}((?>(?:[-+*/^{{}}()|\d\s]|(?<![a-z\\])[a-z](?![a-z])|\\(?:[dt]?frac|cdot|times|sqrt)(?![a-z]))+))(?=[$.,?]|\Z)"
)
"""A formula that is asked for: "find x + y"."""
_POINTS = re.compile(r"(?<![A-Za-z\\])(?<![-+*/=\u00b7])(?<![-+*/=\u00b7]\s)[A-Z]{2,4}(?![A-Za-z])")
_IN_FIGURE = re.compile(r"length|distance|segment|triangle|line|side|angle|chord|radius|diagonal|perimeter|area")
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_LENGTH_OF_NAME = re.compile(r"(?:\||\\overline\s?\{?)\s?([a-z]{2,4})\s?[|}]?")
_COMMAND_OF_NAME = re.compile(r"^m(?=\\angle)|\\(?!(?:bar|overline\{?[a-z]\b))[A-Za-z]+|[\s$]")
_LETTER_OF_NAME = re.compile(r"[a-z]")


def is_only_asked(name: str, question: str) -> bool:
    """Whether a question asks for the value of this name and of no other: "what is b?"."""
    asked = asked_part(question)
    return _ASKED_NAME.findall(asked) == [name.casefold()] and not _ASKED_ALSO.search(asked)


def names_of_value(before: str, texts: Sequence[str]) -> list[str]:
    """What an answer says that its value is the value of: `x`, `f(2)`, `2x`."""
    near = before[-_NAMED_CHARS:]
    found = [_NAMED.search(near)] if _IS_AT_END.search(near, max(0, len(near) - _VERB_CHARS)) else []
    found += (
        [_NAMED.search(texts[0][: texts[0].index("=") + 1])] if len(texts) == 1 and texts[0].count("=") == 1 else []
    )
    found += [_POINT.match(texts[0])] if len(texts) == 1 else []
    alone = [name for name in found if name and not name.string[: name.start()].rstrip(" $").endswith(" and")]
    names = [_SPACES.sub(r"\1", name[name.lastgroup or 0]) for name in alone]
    is_whole = [name.count("(") == name.count(")") and any(map(str.isalpha, name)) for name in names]
    return [name for name, whole in zip(names, is_whole, strict=True) if whole]


def functions_of_value(before: str, texts: Sequence[str]) -> list[str]:
    r"""The function whose value an answer says that its value is: `\sin x`."""
    near = [before[-_NAMED_CHARS:]]
    near += [texts[0][: texts[0].index("=") + 1]] if len(texts) == 1 and texts[0].count("=") == 1 else []
    return [found[1] for text in near if (found := _FUNCTION_OF.search(text))]


def asks_function(name: str, asked: str) -> bool:
    r"""Whether a question asks for the value of this function or formula alone: not for `\sin x\cos x`."""
    own = r"\s*".join(map(re.escape, re.sub(r"\s", "", _plain(name))))
    alone = rf"(?<![\w)=+*/^-])(?<![=+*/^-]\s){own}(?=\s*(?:[$.,?]|and\b|if\b|\Z))"
    return re.search(alone, _plain(asked)) is not None


def _plain(text: str) -> str:
    """Mathematics without braces and backslashes, in small letters."""
    return re.sub(r"[\\{}]", "", text.casefold())


def ranks(behind: str) -> list[str]:
    """What an ordinal counts, if a value is one: "floor" of "12th floor"."""
    found = _RANK.match(behind)
    return [found[1] or ""] if found else []


def without_rank(text: str, asked: str) -> str:
    """The number of an ordinal for whose place a question asks: 12 for "12th floor", "on which floor"."""
    figures = text[: len(text) - len(text.lstrip("0123456789"))]
    found = _RANK.fullmatch(text[len(figures) :].casefold()) if figures else None
    return figures if found and asks_rank(found[1] or "", asked) else text


def asks_rank(noun: str, asked: str) -> bool:
    """Whether a question asks in which place something is: "on which floor"."""
    return (
        re.search(rf"\b(?:which|what)\s(?!is|are|was|were|do|does|did|will)(?:\w+\s)?{noun or '[a-z]+'}\b", asked)
        is not None
    )


def may_stand_before(word: str, question: Question) -> bool:
    """Whether a word right in front of a value says no more than the question asks: it is no noun, which numbers
    things ("room 12"), or the question asks for the number of such a thing."""
    is_noun = is_counted(word, may_be_one=True) or is_thing(word) or is_time(word)
    is_noun = is_noun or plural(word) in WORDS.findall(question.text.casefold())
    return not is_noun or asks_rank(word, question.asked)


def may_be_named(name: str, asked: str, question: str) -> bool:
    """Whether the value of a name or a formula may be asked for: not that of `f(2)` by "find f(3)", nor that of `x` or
    `2y` by "find y". The variable of a function may have any name."""
    names = [*map(_bare_name, _ASKED_NAME.findall(asked))]
    names += [pair.casefold() for pair in _POINTS.findall(question) if re.search(rf"\b{pair.casefold()}\b", asked)]
    terms = [*names, *map(_bare_name, _ASKED_TERM.findall(asked))]
    if _ANGLE.search(name):
        return True  # `may_be_angle` tells
    own = _bare_name(name)
    is_sum = re.search(r"[-/^]", own) is None
    may_turn = not name.isupper() or _IN_FIGURE.search(asked)  # the segment BA, unlike a number or a product
    is_call = re.fullmatch(r"[a-z]\([^()]*\)", own)
    calls = re.findall(rf"(?<![a-z\\]){own[0]}\([^()]*\)", asked) if is_call else []
    if calls and own not in map(_bare_name, calls):
        return False
    if own not in terms and re.search(rf"(?<![\w\\])(?<!\d\s){re.escape(own)}\s?=\s?-?\d[\d.]*+(?![\w\\^/])", asked):
        return False  # "at x = 3" is given
    is_turned = is_sum and may_turn and sorted(own) in map(sorted, terms)
    if not terms or own in terms or is_turned or asks_function(name, asked):
        return True
    letters = {*_LETTER_OF_NAME.findall(own)}
    if re.fullmatch(r"[a-z][^a-z(]*\([^()]*\)", own):
        return not any("(" in term for term in terms)
    if any(term in own if "(" in term else letters & {*_LETTER_OF_NAME.findall(term)} for term in terms):
        return False
    is_alike = any("(" not in term and len(term) == len(own) for term in names)
    return not is_alike or re.search(rf"(?<![a-z\\]){re.escape(own)}(?![a-z(])", asked) is not None


_SYMBOL = re.compile(r"(?<![A-Za-z\\])[a-z]{1,2}[A-Z][A-Za-z]{0,2}(?![A-Za-z])")
"""A symbol of small and capital letters: pH, pOH, pKa."""
_ANGLE = re.compile(r"(?:\\(?:measured)?angle|\u2220|\bangle)\s*\{?\s*([A-Z]{3}|[A-Z])(?![A-Za-z])", re.IGNORECASE)


def symbols_of_value(before: str) -> list[str]:
    """The symbol in front of a value of which it is the value: pOH of "pOH = 4.7"."""
    is_said = _IS_AT_END.search(before[-_VERB_CHARS:])
    return _SYMBOL.findall(before[-_NAMED_CHARS:])[-1:] if is_said else []


def may_be_symbol(symbol: str, question: str) -> bool:
    """Whether a question has this symbol, or none of the kind."""
    asked = _SYMBOL.findall(question)
    return not asked or symbol in asked


def angles_of_value(before: str) -> list[str]:
    """The angle by its points in front of a value: ABC of `\\angle ABC = 40^\\circ`."""
    return _ANGLE.findall(before[-_NAMED_CHARS:])[-1:] if _IS_AT_END.search(before[-_VERB_CHARS:]) else []


def may_be_angle(angle: str, asked: str) -> bool:
    """Whether a question may ask for this angle: it asks for it from either side or by its vertex, or for none."""
    expected = _ANGLE.findall(asked)
    own = angle.casefold()
    return not expected or any(
        other in (own, own[::-1]) or (len(other) != len(own) and other[len(other) // 2] == own[len(own) // 2])
        for other in expected
    )


def _bare_name(name: str) -> str:
    """A name or a formula without commands and spaces, in small letters. A function's variable is left out,
    unlike an event."""
    bare = _LENGTH_OF_NAME.sub(r"\1", name.casefold())
    bare = _COMMAND_OF_NAME.sub("", _FRACTION.sub(r"\1/\2", bare))
    return re.sub(r"(?<=[a-oq-z'1}])\([a-z]\)", "()", bare)


_SUBJECT = re.compile(
    r"(?i)(?:\A|[.,;:]\s|\b(?:so|thus|hence|therefore|then|that|means)\s)\W*"
    r"(?:(?:the|this|each|every)|(?P<whose>his|her|their))\s"
    r"(?P<of>(?:[^\W_][\w'\u2019%-]*\s){1,30}?)"
    r"(?P<verb>is|are|was|were|equals|ha[sd]|now has|costs?)\s(?:length\s|now\s)?[\s$({*]*\Z"
)
_BEHIND_HEAD = re.compile(
    r"(?i)\b(?:of|to|in|for|from|with|between|that|which|who|on|at|after|before|without|by|as|if|when|where|needed)\s"
)
_PRONOUN = re.compile(r"\b(?:he|she|they|it)\b")
_SAYS_ANYTHING = {*LANGUAGES[0].frames.split(), *LANGUAGES[0].subjects.split(), "integer", "term", "element"}
_NAMES_VALUES = {*LANGUAGES[0].names.split()}


def heads(before: str) -> list[str]:
    """The head of the subject of which a value is: leg of "the shorter leg is", "her brother" of "her brother has"."""
    found = _SUBJECT.search(before[-_SUBJECT_CHARS:])
    words = _BEHIND_HEAD.split(found["of"])[0].split() if found else []
    if not found or not words or len(words[-1]) == 1 or words[-1] in _SAYS_ANYTHING:
        return []
    if found["whose"]:
        return [f"{found['whose']} {words[-1]}"]
    is_of_head = found["verb"] in ("is", "are", "was", "were", "equals") or found["of"].endswith("length ")
    return [words[-1]] if is_of_head else []


def may_be_head(head: str, question: Question) -> bool:
    """Whether a question asks for what the value is of: it names it, or names somebody else by a pronoun."""
    *whose, noun = head.casefold().split()
    if says(question.asked, noun) or (noun in _NAMES_VALUES and not says(question.text, noun)):
        return True
    if not whose and re.search(r"\bhow (?:many|much)\b", question.asked):
        return True  # of these, many names say the same
    is_told = _PRONOUN.search(question.asked) or _ASKED_NAME.search(question.asked)  # "what is r?"
    return not whose and is_told is not None and says(question.text, noun)


def ratios(before: str) -> list[str]:
    """The two sides of ratios that are named in front of a value: "boys|girls"."""
    return ["|".join(filter(None, ratio.groups())) for ratio in _RATIO_OF.finditer(before.casefold())]


_CHAIN = re.compile(r"(?:\A|[\s$])([^\s$:=\d]{1,20}(?:\s?:\s?[^\s$:=\d]{1,20}){1,8}?)\s*=[\s$]*\Z")


def chains(before: str) -> list[str]:
    """The names of a ratio in front of a value, in their order: `A : B : C =`."""
    found = _CHAIN.search(before[-_NAMED_CHARS:]) if ":" in before else None
    return ["|".join(map(str.strip, found[1].split(":")))] if found else []


def may_be_ratio(sides: str, asked: str) -> bool:
    """Whether such a ratio may be asked for: not if the question names its sides in the other order."""
    ratio = _RATIO_OF.search(asked)
    said, expected = (
        [{*map(form_of, WORDS.findall(part))} for part in parts]
        for parts in (sides.split("|"), [*filter(None, ratio.groups())] if ratio else ("", ""))
    )
    return not ((said[0] - said[1]) & (expected[1] - expected[0]) or (said[1] - said[0]) & (expected[0] - expected[1]))
