r"""The value that a sentence states, read whole: "So the distance is 5 miles." states `5 miles`.

A sentence is a subject, a verb, a value with its unit, and other words: "Tyler works for 5 hours to afford his books".
Between the verb and the value only frames are read ("exactly"); of the others, those that are no frames are passed on
with the value. A second number that no "and" or "or" joins to it ("10 of the 12") leaves none.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from cooper_verify.rules.answer.fragments import is_fragment, is_no_complement, makes_another_value
from cooper_verify.rules.asked.demands import demands, verb_said
from cooper_verify.rules.asked.words import (
    CJK,
    counts_things,
    main_verb,
    speaks,
    unread,
    unread_agent,
    unread_behind,
    unread_beside,
)
from cooper_verify.rules.quantities.units import measures
from cooper_verify.rules.text.plain_text import MONTH, TEXT_COMMAND
from cooper_verify.rules.values.relation import contradicts
from cooper_verify.rules.values.tokens import FUNCTIONS
from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of
from cooper_verify.rules.vocabulary.number_words import ONES, SCALE, changes_after, is_conditional
from cooper_verify.rules.vocabulary.unit_table import CURRENCY_SIGNS

LONGEST = 600
"""Characters of a sentence that is read."""

_FUNCTION = "|".join(
    sorted({*FUNCTIONS, "pi", "infinity", "mod", "cdot", "frac"} - {"abs", "floor", "ceil", "min", "max"})
)
_TOKEN = re.compile(
    rf"(?P<text>\\(?:text(?:rm|normal|bf|it)?|mathrm|mbox)\s?\{{[^{{}}]{{0,80}}\}}(?:\s?\^\s?\{{?-?\d\}}?)?)"
    rf"|(?P<money>(?:US)?\\?[${CURRENCY_SIGNS}]\s?-?(?=\.?\d))"
    r"|(?P<number>\d(?:\d|,(?=\d))*(?:\.\d+)?(?:[eE][-+]?\d{1,3}(?!\w))?(?:\s?\\?%|\s?\u00b0)?|\.\d+)"
    r"|(?P<rate>(?<=\d\s)[A-Za-z]{2,4}/[A-Za-z]{1,3}(?:\^?\d)?(?![^\W_]))"  # "60 km/h"
    r"|(?P<command>\\[A-Za-z]+|\\[{},;:! ])"
    rf"|(?P<function>(?<![^\W\d_])(?:{_FUNCTION})(?![^\W\d_]))"
    rf"|(?P<letter>(?<![^\W\d_'-])[A-Za-z](?![^\W\d_])(?!['\u2019-][A-Za-z])|[\u0370-\u03ff])"
    rf"|(?P<unspaced>[{CJK}]+)"
    rf"|(?P<word>(?:(?![{CJK}])[^\W\d_])+(?:['\u2019.-](?:(?![{CJK}])[^\W\d_])+)*(?:\^(?:\{{-?\d\}}|-?\d))?)"
    r"|(?P<operator>[-+*/^=<>|_!:\u2264\u2265\u2260\u2248\u00d7\u00f7\u00b1\u00b7\u221a~]+)"
    r"|(?P<bracket>[(){}\[\]])"
    r"|(?P<space>\s+)|(?P<mark>.)",
    re.DOTALL,
)
_FORMULA = re.compile(r"\$\$([^$]{1,500})\$\$|\$([^$\n]{1,300})\$|\\\((.{1,300}?)\\\)|\\\[(.{1,500}?)\\\]", re.DOTALL)
_WORD_IN_FORMULA = re.compile(
    r"(?<![\\A-Za-z])(?!(?:sin|cos|tan|log|ln|exp|pi|sqrt)\b)[A-Za-z]{3,}|\s[a-z]{2}\s|[-+*/=]\s*\Z|\d,? \Z|\A\s*[.,]"
)
_MATHS = ("money", "number", "command", "function", "letter", "operator", "bracket", "formula")


class _Token(NamedTuple):
    kind: str
    start: int
    end: int


class _Run(NamedTuple):
    """Signs of mathematics in a row."""

    start: int
    end: int


_NUMERAL = rf"(?:{'|'.join(word for word, value in ONES.items() if value > 1)}|{SCALE})"
_ANOTHER_NUMBER = re.compile(rf"(?i)(?<![\w-])(?:{_NUMERAL}|one of|one in|one out)(?![\w])")
_NO_NUMBER = re.compile(r"\s*\{?\\text\{(?:st|nd|rd|th)(?![A-Za-z])|\s?(?:BCE?|AD|CE)\b|\s?[ap]\.?m\b|'|\"")
_ABOUT = re.compile(rf"(?i){words_of('about')}[\s($\\{{*]{{0,6}}\Z")
_VERB = re.compile(rf"(?i){words_of('verb', 'states')}")
_CONCLUSION = re.compile(
    rf"(?i)(?:,\s*|;\s*|\A|\s-\s|:\s){words_of('conclusion')}|(?<=\w\s)which (?:is|means|gives|equals)\b|,\s"
)
_JOIN = re.compile(rf"\s*(?:,\s*)?(?:{words_of('either', 'both')}\s*)?", re.IGNORECASE)
_COORDINATED = re.compile(rf"(?i){words_of('either', 'both')}|(?<!\w)(?:but|while|whereas)(?!\w)|;|,(?!\d)")
ENDING = re.compile(rf"(?:{'|'.join(language.ending for language in LANGUAGES if language.ending)})\Z")
_SUBORDINATE = re.compile(
    r"(?i)(?<![\w'])(?:when|if|because|since|as|while|where|after|before|that|which|who|whose|to)(?!\w)"
)
"""After a value: a clause whose verb states something else."""
_STOP = re.compile(
    r"(?i)(?:in|on|at|for|to|from|by|with|after|before|during|when|where|while|if|because|since|as|that|which|who|whose"
    r"|than|left|more|fewer|less|extra|altogether|total|remaining|remains?|now|today|is|are|was|were|will|would|has|have"
    r"|had|can|and|or|but|so|then|out|over|under|of|this|these|the|he|she|they|it|we|you|i|his|her|their|its|each|every"
    r"|together|overall|again|still|away|ago|long|short|tall|old|wide|high|deep|heavy|apart|only|later|longer|shorter"
    r"|older|younger|taller|cheaper|worth|per person|without|until|through|within|into|across|between|towards?|about"
    r"|not|no|if|unless|due|according|correct|required|needed|using|respectively|exactly|thus|hence|therefore|also|plus"
    r"|minus|times|divided|multiplied|au|ao)"
)
_CUT_OFF = re.compile(
    rf"(?i)(?<![\w'])(?:{words_of('either', 'both')}|but|then|the|an?|of|to|is|with|for|from|by|because|so)\Z"
)
"""The end of a sentence that is not finished."""
_OTHER_CLAUSE = re.compile(r"(?i)\b(?:where|when|if|while|but)\b")
"""Behind a value: a clause whose value is another one."""
_UNIT_WORDS = 6
_UNIT_WORD = re.compile(
    r"(?:\\[,; ]|[\s~])?"
    r"(\\(?:text|mathrm)\{[^{}]*\}(?:\^\{?\d\}?)?|/?[^\W\d_](?:[\w'/.%^-]*\w)?(?:\^\{-?\d\})?|\u00b0[CF]?|[\u20ac\u00a3\u00a2$])"
    r"(?![^\s.,;:)}\]!?$])"
)


_GOES_ON = re.compile(r"\d(?:\.{3,}+|\u2026)[\s*$]*\Z")
"""A number that is cut off, or whose figures go on."""


class Stated(NamedTuple):
    """What a sentence states."""

    text: str
    """The value with its unit. An estimate keeps its word ("about 5 miles"), an assignment and an equation with
    variables their left sides, and of a calculation (`120 - 65 = 55`) the last side is the value."""
    words: tuple[str, ...]
    """Words around it that are no frames (`unread`)."""
    counted: tuple[str, ...] = ()
    """Its unit, where the grammar shows that it is what is counted: "There are 12 apples"."""


def value_in(sentence: str, is_after_verb: bool = False) -> Stated | None:
    """The value that a sentence states; None if it states none that can be read whole.

    `is_after_verb`: the sentence is what follows the verb of a statement, such as "the answer is".
    """
    text = sentence.strip()
    if not text or len(text) > LONGEST or text.endswith("?") or _GOES_ON.search(text):
        return None
    text = _ABBREVIATED.sub(r"\1", _MINUS_IN_WORDS.sub("-", text.rstrip(" .,;:!")))
    tokens = _tokens(text)
    runs = _runs(text, tokens)
    if not runs or _QUOTED.search(text):
        return None
    whole, start = runs[0].start, _clause(text, runs)
    runs = [run for run in runs if run.start >= start]
    verb = _last_verb(text, start, runs)
    if is_after_verb and whole < verb and _OTHER_CLAUSE.search(text, whole, verb):
        return None  # "x, where 2x is 12"
    stated = [run for run in runs if run.start >= verb]
    if verb > start and len(stated) < len(runs) and not _names_only(text, start, verb, runs):
        return None
    if not stated or not _are_joined(text, stated):
        return None
    if _CUT_OFF.search(text) or re.search(r"[-+*/^=_]\s*\Z", text[: stated[-1].end]):
        return None
    begin, last = stated[0].start, stated[-1].end
    verb = begin if text[begin] == "=" else verb
    if _CALL.search(text, 0, begin + 1):
        return None
    unit_end = last + unit_length(text[last:])
    rest = text[unit_end:]
    subject = verb if verb > start and counts_things(text[start:verb]) else start
    if _ODD.search(text[: runs[0].start] + rest) or _is_changed(text[subject:begin], text[last:], rest):
        return None
    about = _ABOUT.search(text, verb, begin)
    words = _unread_in_front(text[: about.start() if about else begin], verb, verb > start, is_after_verb)
    has_unit = unit_end > last or bool(_MONEY.match(text, begin))
    words += unread_behind(DIMENSION.sub("", rest) if has_unit else rest, has_unit=has_unit)
    unit = text[last:unit_end]
    words += demands(text[start:begin], [text[begin:unit_end]], rest)
    counted = counted_words(text[:begin], unit)
    if about:
        return Stated(ENDING.sub("", text[about.start() : unit_end]).strip(), tuple(words), counted)
    value = reduced(text[begin:last]) if len(stated) == 1 else text[begin:last]
    value = (value + ENDING.sub("", unit)).strip()
    return Stated(value, tuple(words), counted) if value else None


def _unread_in_front(front: str, verb: int, has_verb: bool, is_after_verb: bool) -> list[str]:
    """The words in front of a value that are no frames. `verb`: where the last verb of the frames ends."""
    if makes_another_value(front):
        return ["|"]
    if main := main_verb(front):
        return [*unread_agent(front[:main]), *verb_said(front, main)]
    if _COUNTERFACTUAL.search(front) or _ANSWER_HAS.search(front):
        return ["|"]
    lead = front[verb:]
    if is_no_complement(front) if has_verb or is_after_verb else is_fragment(front):
        return ["|"]
    if not has_verb and not is_after_verb and any(map(speaks, unread(lead))):
        return ["|"]  # "twice as many as 12"
    words = unread(front[:verb], is_subject=has_verb)
    if has_verb or is_after_verb:
        return words + unread_beside(lead)
    return words + unread(lead) + unread_beside(lead[_last_word(lead) :])


_COUNTERFACTUAL = re.compile(
    r"(?i)\b(?:would|should|could|might|must)\s(?:\w+\s)?have\b|\bcan\s(?:\w+\s)?be[\s$({*\\]*\Z"
)
"""What would have been another way, or may be: "it should have been 12", "it can be 12"."""
_ANSWER_HAS = re.compile(r"(?i)\b(?:answer|result|solution)s?\s(?:\w+\s)?(?:ha(?:s|ve|d)|gets?|takes?|needs?|uses?)\b")
"""What an answer has is not the answer: "the result has 12 digits"."""


def _last_word(lead: str) -> int:
    """Where the word right in front of a value begins: "since" in "since 1815", and none in "Total: 12"."""
    words = lead.rstrip(" $({*\\,")
    return len(words.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def counted_words(before: str, unit: str) -> tuple[str, ...]:
    """The noun of a unit, if the grammar shows that it is what is counted: "There are 12 apples"."""
    words = unread(unit) if unit and _PLURAL.search(unit) and _COUNTS.search(before[-_COUNTS_CHARS:]) else []
    return () if any(map(speaks, words)) else tuple(words[-1:])


_COUNTS_CHARS = 40
_CALL = re.compile(r"[^\W\d_]{2}\(\Z")
"""What is called with a value: `print(12)`."""
_QUOTED = re.compile(
    r"(?i)\b(?:number|value) (?:in|from|of) (?:the|this) (?:question|problem|task)\b|\b(?:is|are) given\b"
)
_MINUS_IN_WORDS = re.compile(r"(?i)\b(?:minus|negative)\s(?=\$?\d)")
_ABBREVIATED = re.compile(r"(?i)\b(sq|cu)\.(?=\s)")
"""Square and cubic: "sq. ft"."""
_ODD = re.compile(
    r"[^\w\s.,;:!?'\"()\[\]{}*$`\\%\u2018-\u201f\u2026\u2013\u2014/=<>+-]|(?:\A|\s)[A-Za-z]\.\s*\Z|!\Z|[_^]"
)
"""Signs around a value that carry meaning, or none that is known: primes, `~`, `\u2213`, an index; "p. 12"."""
_MONEY = re.compile(rf"(?:US)?\\?[${CURRENCY_SIGNS}]\s?-?[\d.,]*\d(?![\d.,]*\$)")
DIMENSION = re.compile(r"\A[\s$})\\]*(?:old|long|tall|wide|high|deep|away|apart)\b")
"""Behind a unit: "5 miles long"."""
_COUNTS = re.compile(
    r"(?i)\b(?:there (?:is|are|was|were|will be|remain)|ha(?:s|ve|d)|gets?|needs?|buys?|leaves?|takes?|makes?|sells?"
    r"|(?:is|are) left with)[\s$\\({]*\Z"
)
"""In front of a number of things."""
_PLURAL = re.compile(r"(?:(?<![suiy])s|men|people|children|feet|mice)\Z")


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        if text[position] in "$\\" and (formula := _formula_at(text, position)):
            tokens.append(_Token("formula", position, formula))
            position = formula
            continue
        match = _TOKEN.match(text, position)
        assert match is not None  # `mark` is any character
        tokens.append(_Token(match.lastgroup or "mark", position, match.end()))
        position = match.end()
    return tokens


def _formula_at(text: str, position: int) -> int | None:
    """Where the formula that begins here ends; None if none does: the dollar may be one of money."""
    match = _FORMULA.match(text, position)
    if match is None:
        return None
    inside = next(filter(None, match.groups()))
    is_money = (
        text[position] == "$"
        and inside.lstrip()[0:1].isdigit()
        and _WORD_IN_FORMULA.search(TEXT_COMMAND.sub(" ", inside))
    )
    return None if is_money else match.end()


def _runs(text: str, tokens: list[_Token]) -> list[_Run]:
    """The runs of mathematical signs, with the spaces and, inside brackets, the commas and words between them."""
    runs: list[_Run] = []
    depth, start, end, has_value, is_open = 0, 0, 0, False, False

    def close() -> None:
        nonlocal is_open, has_value, depth
        if is_open and has_value:
            runs.append(_Run(start, end))
        is_open, has_value, depth = False, False, 0

    for place, token in enumerate(tokens):
        piece = text[token.start : token.end]
        is_word_like = token.kind == "letter" and _is_article(text, tokens, place)
        if token.kind in _MATHS and not is_word_like:
            if not is_open:
                if piece in (")", "]", "}", ":", "!", "_", "|", "~") or (piece == "-" and _is_dash(text, token)):
                    continue
                is_open, start = True, token.start
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(piece, 0)
            if depth < 0:
                close()
                continue
            has_value = has_value or token.kind in ("number", "formula", "command", "function", "letter", "money")
            end = token.end
        elif is_open and (
            token.kind == "space" or (token.kind == "text" and depth > 0) or (piece == "," and depth > 0)
        ):
            continue
        else:
            close()
    close()
    return [run for run in runs if re.search(r"[\w\\]", text[run.start : run.end])]


def _is_article(text: str, tokens: list[_Token], place: int) -> bool:
    """Whether a letter is a word: "a", "I", or a name such as the C of "vitamin C"; beside a sign it is a variable."""
    token = tokens[place]
    letter = text[token.start : token.end]
    near = [
        other for other in (*tokens[max(0, place - 2) : place], *tokens[place + 1 : place + 3]) if other.kind != "space"
    ]
    is_beside_sign = any(
        other.kind in ("operator", "command", "bracket", "function") and text[other.start] not in "()[]:!"
        for other in near
    )
    if (letter in "aAI" and letter.isascii()) or (letter == "y" and text.startswith(" a ", token.end)):  # "il y a"
        return not is_beside_sign
    return letter.isascii() and letter.isupper() and not is_beside_sign and not _touches_number(tokens, place)


def _touches_number(tokens: list[_Token], place: int) -> bool:
    return any(token.kind == "number" for token in (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2]))


def _is_dash(text: str, token: _Token) -> bool:
    """Whether a hyphen at the beginning of a run is a dash: "total - 5" with spaces on both sides, after a noun."""
    before, after = text[: token.start], text[token.end :]
    if not after[:1].isspace() or not before.strip():
        return False
    return not re.search(rf"(?i)(?:{words_of('verb', 'states', 'conclusion')}|[,:=])\s*\Z", before[-40:])


def _clause(text: str, runs: list[_Run]) -> int:
    """Where the last clause that states a value begins: after "so", "which is" or a comma."""
    start = 0
    for mark in _CONCLUSION.finditer(text):
        inside = any(run.start < mark.end() and mark.start() < run.end for run in runs)
        if inside or not any(run.start >= mark.end() for run in runs):
            continue
        if mark.group().strip() == "," and not _begins_clause(text[mark.end() :], text[: mark.start()]):
            continue
        start = mark.end()
    return start


def _begins_clause(after: str, before: str) -> bool:
    """Whether a comma separates a clause that stands alone from one that only leads to it: "In total, she has 5"."""
    return (
        not re.search(r"\d", before)
        and _VERB.search(before) is None
        and re.match(r"\s*(?:and|or|but)\b", after) is None
    )


def _last_verb(text: str, start: int, runs: list[_Run]) -> int:
    """Where the last verb before the last value ends; `start` if there is none."""
    end = start
    subordinate = _SUBORDINATE.search(text, runs[0].end)
    for verb in _VERB.finditer(text, start, subordinate.start() if subordinate else len(text)):
        if any(run.start < verb.end() and verb.start() < run.end for run in runs):
            continue
        if any(run.start >= verb.end() for run in runs):
            end = verb.end()
    return end


def _names_only(text: str, start: int, verb: int, runs: list[_Run]) -> bool:
    """Whether numbers before the verb belong to its subject, rather than to another statement joined by "and"."""
    subject = text[start:verb]
    earlier = [found for found in _VERB.finditer(subject) if found.end() < len(subject)]
    for found in earlier:
        behind = subject[found.end() :]
        if re.search(r"\d", behind) and _COORDINATED.search(behind):
            return False
    return True


def _are_joined(text: str, runs: list[_Run]) -> bool:
    """Whether the runs are one list or one measure: "2, 3 and 5", "x = 1 or x = 2", "29 dollars and 50 cents"."""
    for one, other in pairwise(runs):
        between = text[one.end : other.start]
        if _JOIN.fullmatch(between) and between.strip():
            continue
        if between == " to " and (text[one.start : one.end] + text[other.start : other.end]).isdecimal():
            continue  # a ratio
        words = _PART_UNIT.fullmatch(between)
        if words is None or _STOP.fullmatch(words["unit"].strip()):
            return False
    return True


_PART_UNIT = re.compile(
    r"\s?(?:\\text\{)?\s?(?P<unit>[A-Za-z]{1,12})(?:\}\s?|(?:,?\s+and)?\}\s?|,?\s+and\s+(?:\}\s?)?|,?\s+(?:\}\s?)?)"
)
"""What stands between the parts of a measure: "29 dollars and 50 cents", `5\text{ ft }6\text{ in}`."""


def unit_length(after: str) -> int:
    """How many characters of the text after a value are its unit: a few words, up to one that begins another phrase."""
    if match := re.match(rf"[\s~]?(?:\\[,; ])?([{CJK}]+)", after):
        return match.end() if len(unit := ENDING.sub("", match.group(1))) <= 4 or measures(unit) else 0
    length = 0
    for _ in range(_UNIT_WORDS):
        word = _UNIT_WORD.match(after, length)
        if word is None or (_ends_unit(word.group(1)) and not (word.group(1) == "in" and word.end() == len(after))):
            break
        length = word.end()
    return length


def _ends_unit(word: str) -> bool:
    return bool(_STOP.fullmatch(word) or (_ANOTHER_NUMBER.match(word) and not _SCALE_AFTER.match(word)))


def _is_changed(before: str, after: str, rest: str) -> bool:
    """Whether what stands beside a value, or in the same clause, makes it another one or none."""
    if _ANOTHER_NUMBER.search(rest) or re.search(r"\d|\\[a-z]", rest):
        return True
    if _ANOTHER_NUMBER.search(before[-30:]) or MONTH.search(before[-20:]):
        return True
    if _NO_NUMBER.match(after) or is_conditional(after):
        return True
    return changes_after(after) and not _SCALE_AFTER.match(after)


_SCALE_AFTER = re.compile(rf"(?i)\s?{SCALE}(?!\s(?:and|or)\b)")
_ARITHMETIC = re.compile(
    r"\\(?:[dtc]?frac|cdot|times|div|sqrt|left|right|pi|log|ln|lg|exp|sin|cos|tan|cot|sec|csc|d?binom|circ|degree|displaystyle"
    r"|quad|big+|Big+)(?![A-Za-z])|\\[,;:! %$]"
)
_COMMAND = re.compile(
    r"\\(?!(?:alpha|beta|gamma|delta|epsilon|theta|lambda|mu|rho|sigma|tau|phi|psi|omega)(?![A-Za-z]))[A-Za-z]+"
)
_ONE_SYMBOL = re.compile(r"\s*(?:\\?[A-Za-z]+|[A-Za-z\u0370-\u03ff])(?:_(?:\{[^{}]*\}|\w))?'*\s*")
_RELATION = re.compile(
    r"[<>\u2264\u2265\u2260\u2248]|\\(?:[lg](?:eq?|eqslant|t)|neq?|approx|equiv|to|Rightarrow|implies|pmod|in)(?![A-Za-z])"
)


_CONNECTED = re.compile(r"\\(?:text(?:rm|normal|bf|it)?|mbox|mathrm)\s?\{\s?(?:and|or)\s?\}|\\q?quad|\b(?:and|or)\b|;")


def reduced(text: str) -> str:
    r"""A chain of equations as what it says of its first side: `55` for `120 - 65 = 55`, `x = 5` for `x = 10/2 = 5`.

    An equation with a variable inside a side (`x - 5 = 12`) stays, and so does all that is no chain of equations.
    """
    inner = text.strip()
    for left, right in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if inner.startswith(left) and inner.endswith(right) and len(inner) > len(left) + len(right):
            inner = inner[len(left) : -len(right)].strip()
    if (
        "=" not in inner
        or _RELATION.search(inner)
        or _CONNECTED.search(inner)
        or inner.count("=") != len(re.findall(r"(?<![=!<>:])=(?!=)", inner))
    ):
        return text
    first, *others = inner.split("=")
    if "," in re.sub(r"\d,\d{3}(?!\d)", "", inner) or any(_depth(side) for side in (first, *others)):
        return text
    value = others[-1].strip()
    if not value or any(contradicts(side, value) for side in (first, *others[:-1])):
        return text  # 13 = 12
    if (not first.strip() or _is_calculation(_COMMAND.sub(" ", first))) and all(map(_is_calculation, others[:-1])):
        return text if _ONE_SYMBOL.fullmatch(value) else value  # 3 = x
    if _ONE_SYMBOL.fullmatch(first):
        return f"{first.strip()} = {value}"
    return text


def _depth(text: str) -> int:
    return sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))


def _is_calculation(side: str) -> bool:
    """Whether a side has a value of its own: no variables, and no signs whose meaning is not known."""
    bare = _ARITHMETIC.sub(" ", TEXT_COMMAND.sub(" ", side))
    bare = re.sub(rf"(?<![^\W\d_])(?:{_FUNCTION})(?![^\W\d_])|(?<=\d)\s?x\s?(?=[\d(])", " ", bare)
    return re.search(r"[^\W\d_]", bare) is None and re.search(r"\d", side) is not None
