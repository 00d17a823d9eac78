r"""What stands around a box is a part of the answer: `-\boxed{42}`, `\boxed{1.6} miles`, `\boxed{5} or 6`.

What stands before `=` does not count: it names what the box is the value of. Neither do sentences around the box.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from cooper_verify.rules.answer.sentence import ENDING, unit_length
from cooper_verify.rules.text.marks import Box
from cooper_verify.rules.vocabulary.languages import words_of
from cooper_verify.rules.vocabulary.number_words import changes_after, changes_number

_REACH = 160
"""So many characters on each side of a box are read."""
_NEXT_PART = re.compile(r"[\s,;.]*\(?[b-h]\)\s")
"""The label of another part: "a) \\boxed{12} b) \\boxed{13}"."""
_SEPARATOR = (
    r"=|\\(?:f?boxed|fbox|framebox)\s*\{|\\(?:approx|simeq|Rightarrow|implies|Longrightarrow|longrightarrow|rightarrow|to|iff|Leftrightarrow|equiv|therefore"
    r"|because|begin\{[^{}]*\}|end\{[^{}]*\}|q?quad|hspace\{[^{}]*\}|hfill|item)(?![A-Za-z])|\\\\|\\[\[\]()]|[$&:;\n\u2248\u21d2\u2192\u2234]"
    r"|,(?!\d{3}(?!\d))|(?<!\d)\.(?=\s|\Z)|\.(?=\s)|\*\*|\\text\w*\s?\{[^{}]*\}|\\mathrm\{[^{}]*\}"
)
_BEFORE = re.compile(rf"(?:{_SEPARATOR})")
_TRAILING_MATHS = re.compile(
    r"(?:\\[A-Za-z]+|\\[,;:! ]|\b[A-Za-z]\b|[\d.\s{}()\[\]|^_+*/<>\u2260\u2264\u2265\u00d7\u00f7\u00b1\u00b7-])*\Z"
)
_BULLET = re.compile(r"\A\s*(?:[-*+\u2022]|\d{1,2}[.)]|\(\w\))\s+\Z")
_OPERATES = re.compile(
    r"[-+*/^_<>|\u2260\u2264\u2265\u00d7\u00f7\u00b1\u00b7({\[]\s*\Z|\\(?:times|cdot|div|pm|mp|sqrt|[lg](?:eq?|t)|neq?|not)\s*\Z|[\w)}\]]\Z"
)
_APPLIES = re.compile(
    r"\\(?!(?:text|math(?:bf|rm|it|sf|tt)|underline|emph|left|right|displaystyle|bigg?|Big|[lL]arge|LARGE|huge|color|bf|it|newline"
    r"|noindent|hline|centering|limits)(?![a-z]))[A-Za-z]+\s*(?:\[[^\[\]]*\]|\{[^{}]*\})?\s*\{?\s*\Z|\w\s*[<>\u2260\u2264\u2265]\s*\Z"
)
"""A command or a relation in front of a box that takes it as its operand: `\\log`, `\\frac{1}{`, `\\neq`, `x <`."""
_NO_SPACE = re.compile(r"\\[,;:! ]|~|\s|\\(?:left|right|displaystyle|bigg?|Big|large|Large|huge)(?![A-Za-z])")
_SPACES = re.compile(r"(?:\\[,;:! ]|[~\s])+")
_CLOSES = re.compile(r"[\s~]*+(?:\\[\])]|\${1,2})")
_DISPLAY = ("\\]", "$$")
_AFTER = re.compile(rf"=|\\(?:blacksquare|square|Box|checkmark|qed|star)(?![A-Za-z])|{_SEPARATOR}|\\f?boxed|\\fbox")
_TEXT = re.compile(
    r"[\s~]*+(?:\\[,;:! ]\s*+)?(?:\\(?:text(?:rm|normal|bf|it)?|mathrm|mbox)\s*+\{([^{}]{1,60})\}\s*(?:\^\s*\{?\d\}?)?)"
)
_SIGNS = re.compile(r"[\w\s\\{}()\[\]|^+*/<>\u2260\u2264\u2265.,%!'~\u00b0\u00d7\u00f7\u00b1\u00b7\u221a-]*")
_ORDINAL = re.compile(r"\s?(?:st|nd|rd|th)\b")
_OPERATES_AFTER = re.compile(
    r"\s?(?:\^|[<>\u2260\u2264\u2265]\s?[\w\\]|[*/]\s?[\d(\\]|[+-]\s?[\d(\\$]|[!']|\\?%|\u00b0|\\(?:times|cdot|div|pm|circ|degree|pi|sqrt|frac)(?![A-Za-z])|[\u00d7\u00f7\u00b1\u00b7\u03c0])"
)
_OTHER_VALUE = re.compile(rf"(?i)\s*(?:,\s*)?{words_of('either')}\s*\$?[-\u2212+]?\$?\.?[\d\\](?!f?box)[^\n.;]{{0,60}}")
_IS_SUM = re.compile(r"(?<=[\w)}\]\s])\s*[-+]|[=<>,]|\\(?:times|cdot|pm|div)(?![A-Za-z])|[*/]")
_BINDS = re.compile(r"[-*/^_]\s*\Z|\\(?:times|cdot|div|sqrt)\s*\Z|[\w)}\]]\s*\Z")
_BINDS_AFTER = re.compile(r"\s*(?:[*/^_!%]|\\(?:times|cdot|div|%)|[(\w\\])")


def whole_of(text: str, box: Box) -> tuple[str, int]:
    """The content of a box with what stands around it, as one text, and where that ends."""
    before = _left(text, box)
    after, end = _right(text, box, before)
    content = text[box.start : box.end]
    if (
        (
            _IS_SUM.search(content.strip())
            and (_BINDS.search(before) or _BINDS_AFTER.match(after.lstrip()))
            and not _TEXT.match(after)
        )
        or (re.search(r"\d\s*\Z", before) and content[:1].isdigit())
        or (content[-1:].isdigit() and after[:1].isdigit())
    ):
        content = f"({content})"
    return f"{before}{content}{after}", end


_MINUS_BEFORE = re.compile(
    rf"(?i)(?:(?P<said>[:=][\s*$]*|{words_of('verb', 'states', 'conclusion')}[\s*$]*)|[\w)}}\]][\s*$]+)(?:\\[(\[]\s*)?-"
    r"(?:\s*\\[)\]]|\s*\$(?!\$))?[\s$]*(?:\\[(\[]\s*)?\Z"
)
"""A minus apart from its box: "x = - ", "thus -$"."""
_MINUS_CHARS = 20
_MINUS_ALONE = re.compile(r"(?:\A|\n)[\s*]*+(?:\$\s?-\s?\$|\$?-(?:\\[,;:!]|~))[\s~$]*+\Z")
r"""A minus in a formula of its own, or with a space of LaTeX: `$-$ \boxed{12}`. With a plain space it is a bullet."""
_JOINED_NUMBER = re.compile(r"(?<![\w.,:])(?:\d{1,20}[.,:]|\.)\Z")
"""The beginning of a number or a ratio that ends in a box: `5:\\boxed{12}`."""
_ALONE = re.compile(r"(?:\A|[\n=])\s*\Z")
_NAME = re.compile(r"(?:\A|[\s,;$({&])(\\?[A-Za-z]+(?:_\w|_\{\w+\})?)\s*&?=\s*\$?\Z")


def wholes_of(text: str, boxes: Sequence[Box]) -> tuple[list[str], int]:
    r"""Boxes with what stands around them, and where the last one ends. The two of `(\boxed{1}, \boxed{2})` are one.

    Several that have names keep them: `x=1` and `y=2` for `x=\boxed{1}, y=\boxed{2}`, and "mean=1" for "the mean is".
    """
    if len(boxes) == 1:
        whole, end = whole_of(text, boxes[0])
        return [whole], end
    start, end = boxes[0].command - 1, boxes[-1].end + 1
    between = [text[one.end + 1 : other.command] for one, other in pairwise(boxes)]
    if text[start : boxes[0].command] + text[end : end + 1] in ("()", "[]", "(]", "[)") and not re.search(
        r"[()\[\]$]", "".join(between)
    ):
        pieces = [text[box.start : box.end] + gap for box, gap in zip(boxes, [*between, ""], strict=True)]
        return [text[start] + "".join(pieces) + text[end]], end + 1
    starts = [(max(0, box.command - _NAME_CHARS), box.command) for box in boxes]
    patterns = (_NAME, _CALL, _SUBJECT)
    names = [next(filter(None, (named.search(text, *place) for named in patterns)), None) for place in starts]
    wholes = [whole_of(text, box) for box in boxes]
    named = [f"{name.group(1)}={whole}" for name, (whole, _) in zip(names, wholes, strict=True) if name]
    distinct = len({name.group(1) for name in names if name}) == len(boxes)
    return named if distinct else [whole for whole, _ in wholes], wholes[-1][1]


_CALL = re.compile(
    r"(?:\\operatorname\s?\{|\\(?:text|mathrm)\s?\{|\\|(?<![A-Za-z\\]))([A-Za-z]{3,9})\}?\s?\([^()$]{1,30}\)\s*&?=\s*\$?\Z"
)
"""A function of which a box is the value: `\\gcd(48, 180) =`."""
_SUBJECT = re.compile(
    rf"(?i)(?<![\w'\u2019-])([a-z]|[a-z][a-z-]{{3,30}})(?:\sof\s[^.,;:\n$]{{1,40}}?)?\$?(?:\s{words_of('verb')}|\s?:)[\s$*]*\Z"
)
"""What a box is the value of, in words: "the mean of the two is"."""
_NAME_CHARS = 80
_CONGRUENT = re.compile(r"(?<!\\not)(?:\\equiv|\u2261)\s*\Z")
MODULUS = re.compile(r"[\s~]{0,9}(?:\\[,;: ]\s?)?\(?\\?[pb]?mod\s*\{?\s*(\d{1,9})\s*\}?\)?")
r"""Behind a box in a congruence: `\pmod{7}`."""
_NAMED_BOX = re.compile(r"(?<![A-Za-z\\])([A-Za-z](?:_\w|_\{\w+\})?)\s*&?=\s*\$?\\boxed")


def name_beside_others(text: str, box: Box) -> str | None:
    r"""The name of a box if an earlier box has another name: b in `a=\boxed{1}. Then b=\boxed{2}`."""
    own = _NAME.search(text, max(0, box.command - _NAME_CHARS), box.command)
    others = {*_NAMED_BOX.findall(text, 0, box.command)} if own else set[str]()
    return own.group(1) if own and others - {own.group(1)} else None


def _left(text: str, box: Box) -> str:
    """The operand or the opening of a function before a box: `-`, `1-`, `\\frac{1}{`; empty where there is none."""
    near = text[max(0, box.command - _REACH) : box.command]
    if "-" in near[-_MINUS_CHARS:] and (minus := _MINUS_BEFORE.search(near)):
        return "-" if minus["said"] else "-{}"  # "Answer - 12" may have a dash: it cannot be read
    if "-" in near[-_MINUS_CHARS:] and _MINUS_ALONE.search(near):
        return "-"
    if (joined := _JOINED_NUMBER.search(near)) and (
        joined.group() == "0." or _in_formula(text, box.command) or _ALONE.search(near[: joined.start()])
    ):
        return joined.group()
    if opened := _OPENED.search(near):
        return opened.group()
    if not near or near[-1] in "\n$:=":
        return ""
    start = 0
    for separator in _BEFORE.finditer(near):
        start = separator.end()
    side = near[start:]
    maths = _TRAILING_MATHS.search(side)
    side = maths.group().lstrip() if maths else ""
    bare = _NO_SPACE.sub("", side)
    if not bare or not bare.strip("{}()[]|. "):
        return ""
    is_line_start = (start > 0 and near[start - 1] == "\n") or (start == 0 and box.command <= _REACH)
    if is_line_start and _BULLET.match(near[start:]):
        return ""
    if not _OPERATES.search(side.rstrip() if _in_formula(text, box.command) else side) and not _APPLIES.search(side):
        return ""
    return "" if _is_loose(side, text, box) else _balanced_left(side)


_JOINED_BY_SIGN = re.compile(r"[\w)}\]]\s*[+*/^_\u00d7\u00f7\u00b7]\s*\Z")
_OPENED = re.compile(r"[(\[](?:\\[A-Za-z]+|[-\d\s.,/+*^{}]|\b[A-Za-z]\b){1,30},\s*\Z")
"""The beginning of a tuple or an interval that ends in a box: `(0, \\boxed{12}]`."""


def _is_loose(side: str, text: str, box: Box) -> bool:
    """Whether the signs before a box in plain text are no operand: a dash, the number of a step, a word."""
    if _in_formula(text, box.command) or _APPLIES.search(side):
        return False
    if _JOINED_BY_SIGN.search(side):
        return False
    return side[-1:].isspace() or not re.search(r"[-+*/^_\d{(\u00d7\u00f7\u00b1\u00b7]\Z|\\[a-z]+\{?\Z", side)


def _balanced_left(side: str) -> str:
    """The side without closing brackets whose opening ones are further left."""
    depth, start = 0, 0
    for place, sign in enumerate(side):
        depth += (sign in "({[") - (sign in ")}]")
        if depth < 0:
            depth, start = 0, place + 1
    return side[start:]


def _in_formula(text: str, place: int) -> bool:
    """Whether a place is inside `$…$`, `\\(…\\)` or `\\[…\\]`."""
    near = text[max(0, place - 1000) : place]
    near = near[near.rfind("\n\n") + 1 :]
    opened = max(near.rfind("\\("), near.rfind("\\["))
    if opened >= 0 and opened > max(near.rfind("\\)"), near.rfind("\\]")):
        return True
    return near.replace("\\$", "").count("$") % 2 == 1 and "$" in text[place : place + 1000]


def _right(text: str, box: Box, before: str) -> tuple[str, int]:
    """What follows a box in its formula and its phrase, and where that ends."""
    start = box.end + 1
    near = text[start : start + _REACH]
    depth = sum(map(before.count, "({[")) - sum(map(before.count, ")}]"))
    end = _formula_end(near, depth) if _in_formula(text, box.command) or depth > 0 else 0
    if _CONGRUENT.search(text, max(0, box.command - _NAME_CHARS), box.command) and (modulus := MODULUS.match(near)):
        return "", start + modulus.end()
    inside = near[:end]
    if (words := _TEXT.match(near, end)) and _belongs(words):
        more = _formula_end(near[words.end() :], 0)
        return inside + near[end : words.end() + more], start + words.end() + more
    kept = inside if before or _SPACES.sub("", inside).strip("{}. ") else ""
    if not kept and (other := _OTHER_VALUE.match(near, end)) and "box" not in other.group():
        return " " + other.group().strip(), start + other.end()
    closes = _CLOSES.match(near, end)
    if closes and closes.group().strip() in _DISPLAY:
        return kept, start + end
    place = closes.end() if closes else end
    while near[place : place + 1] in ("$", ")", "}", "]", "*") and near[place : place + 1]:
        place += 1
    phrase = near[place:]
    if (other := _OTHER_VALUE.match(phrase)) and "box" not in other.group():
        return f"{kept} {other.group().strip()}", start + place + other.end()
    if operates := _OPERATES_AFTER.match(phrase):
        stop = re.compile(r"[=\n,;:$]|\.(?=\s|\Z)|\s[A-Za-z]{2}").search(phrase, operates.end())
        length = stop.start() if stop else len(phrase)
        return kept + phrase[:length], start + place + length
    line = re.match(r"[^.\n]{1,60}", phrase)
    is_base_again = "_" in text[box.start : box.end]  # 101_2 in base two
    if line and not is_base_again and changes_after(line.group()):
        return kept + line.group(), start + place + line.end()
    length = unit_length(phrase) if phrase[:1] in " ~" or phrase[:1] > "\u2e80" else 0
    length = 0 if changes_number(phrase[:length]) or _NEXT_PART.match(phrase) else length
    return kept + ENDING.sub("", phrase[:length]).rstrip(), start + (place + length if length else end)


def _belongs(words: re.Match[str]) -> bool:
    """Whether a `\\text` behind a box goes on with its value, and is not an ordinal's ending."""
    return not _ORDINAL.match(words.group(1))


def _formula_end(near: str, depth: int) -> int:
    """Where what is joined to a box by signs of mathematics ends; `depth` brackets before it are still open."""
    stop = _AFTER.search(near)
    limit = min(stop.start() if stop else len(near), _SIGNS.match(near).end())  # pyright: ignore[reportOptionalMemberAccess]
    for place in range(limit):
        sign = near[place]
        depth += (sign in "({[") - (sign in ")}]")
        if depth < 0:
            limit = place
            break
    words = re.search(
        r"(?<!\\)(?<![A-Za-z\\])[A-Za-z]{2,}",
        re.sub(r"\\[A-Za-z]+", lambda command: " " * len(command.group()), near[:limit]),
    )
    if words:
        limit = words.start()
    return len(near[:limit].rstrip(" ~"))
