r"""What an answer's readers see of a text: one sign for each relation, connective and bracket, and its outer parts.

`1 \leqslant x` becomes `1 ≤ x`, `\text{ or }` becomes ` or `, `\{` becomes `⦃`. Nothing that carries meaning is lost.
"""

import re
from functools import cache

from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.values.spelled import spelled_number
from cooper_verify.rules.values.tokens import without_layout

SET_OPEN, SET_CLOSE = "\u2983", "\u2984"
CASES_OPEN, CASES_CLOSE = "\u27e6", "\u27e7"
_CURRENCY = re.compile(r"\$\d[\d,.]*\s+[A-Za-z]|\$\d[\d,.]*\s*\Z")
_SIGNS = {
    "\u2264": r"leqslant|leqq|leq|le",
    "\u2265": r"geqslant|geqq|geq|ge",
    "\u2260": r"neq|ne",
    "<": r"lt",
    ">": r"gt",
    "\u2208": r"in",
    "\u222a": r"cup",
    "\u2229": r"cap",
    "\u2216": r"setminus|backslash",
    "\u2248": r"approx|simeq|approxeq",
    "\u2192": r"to|rightarrow|Rightarrow|implies|longrightarrow",
    "|": r"mid|vert|lvert|rvert",
    "\u2205": r"emptyset|varnothing",
    ":": r"colon",
    SET_OPEN: r"lbrace",
    SET_CLOSE: r"rbrace",
    "\u27e8": r"langle",
    "\u27e9": r"rangle",
}
_SIGN = re.compile("|".join(f"(?:\\\\(?:{names})(?![A-Za-z]))" for names in _SIGNS.values()))
_SIGN_OF = {name: sign for sign, names in _SIGNS.items() for name in names.split("|")}
_ASCII = (("<=", "\u2264"), (">=", "\u2265"), ("!=", "\u2260"), ("=>", "\u2192"), ("->", "\u2192"), ("==", "="))
_ASCII += ((":=", "="), ("+/-", "\u00b1"))
_PAIR = re.compile(r"(?:(?<=[(\[])|(?<=\\\{))\s*-?\d{1,3}(?:,\d{3}){1,4}\s*(?=[)\]]|\\\})")
_ONE_TEXT = re.compile(r"\\(?:text(?:rm|normal|bf|it)?|mathrm|mbox)\s*\{([^{}]*)\}")
_CONNECTIVE = re.compile(
    r"\\(?:text(?:rm|normal|bf|it)?|mbox|mathrm)\s*\{[\s,;]{0,6}(or|and)[\s,;]{0,6}\}"
    r"|[\s,;]{0,6}\\q?quad\s*(or|and)\s*\\q?quad"
)
_BETWEEN_SOLUTIONS = re.compile(r"\\q?quad\s*\\text\s*\{[\s,;]{0,6}and[\s,;]{0,6}\}\s*\\q?quad")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")
"""LaTeX that went through JSON once too often."""
_ROW_END = re.compile(r"\\\\\s?\[\s?-?[\d.]{1,5}\s?[a-z]{2}\s?\]")
"""The end of a row of a matrix with the space behind it."""
_QUADS = re.compile(r"[,;]?\s?\\q?quad(?![A-Za-z])[\s,;]{0,6}")
_RELATION = re.compile(r"[<>=]|\\[lg]e")
_LOGIC = re.compile(r"\\(lor|vee|land|wedge)(?![A-Za-z])")
_PRIMES = re.compile(r"\^\s*(?:\\prime(?![A-Za-z])|\{(?:\s*\\prime)+\s*\})")
_CHOOSE = re.compile(r"\{?\s?(\w{1,9}(?:[+-]\w{1,9})?)(?:\s?\\|\s)choose\s?(\w{1,9}(?:[+-]\w{1,9})?)\s?\}?")
_CASES = re.compile(
    r"\\begin\{(?:cases|aligned?|array|gathered)\}(?:\{[clr|]*\})?(?P<rows>[^&\\]*(?:\\\\[^&\\]*)*)\\end\{\w+\}"
)
"""Equations under each other."""
_MINUS_IN_WORDS = re.compile(r"\A\\(?:text|mathrm)\{\s?(?:minus|negative)\s?\}\s?(?=[\d\\])")
_TWICE = re.compile(r"(\d{1,9}) \(([A-Za-z -]{3,40})\)|([A-Za-z -]{3,40}) \((\d{1,9})\)")
"""A number in figures and in words: "twelve (12)"."""
_TO = re.compile(r"(?<=\d)\s?\\text\{\s?to\s?\}\s?(?=\d)")
_ABOUT = re.compile(r"\A~\s?(?=-?[\d.])")
_COMBINATIONS = re.compile(
    r"(?<![A-Za-z\\])(?:\\mathrm\{)?([CAP])\}?_(?:\{([\dkmnN+-]{1,9})\}|([\dmnN]))\^(?:\{([\dkmnr+-]{1,9})\}|([\dkmr]))(?!\d)"
)
"""`C_{10}^3`, combinations of 3 of 10, `C_n^2`, and `A_5^2`, arrangements."""
_CALLED_COMBINATIONS = re.compile(
    r"(?<![\w\\])(?:n?([CP])r?\((\d{1,3}),\s?(\d{1,3})\)|(?:\{\}\s?[_^]\s?)?\{?(\d{1,3})\}?\s?([CP])_?\{?(\d{1,3})\}?)(?![\w,.(])"
)
"""`C(10,3)`, `{}_{10}C_3` and `10C3`."""
_PLUS_INFINITY = re.compile(r"\+\s*\\infty|\+\s*\u221e")
_OPEN, _CLOSE = "([{" + SET_OPEN + "\u27e8" + CASES_OPEN, ")]}" + SET_CLOSE + "\u27e9" + CASES_CLOSE


@text_cache(4096)
def prepared(text: str) -> str:
    """The text in the notation of the readers."""
    text = " ".join(text.split())
    text = _ROW_END.sub(r"\\\\", text.replace(" & ", "&")) if r"\begin" in text else _DOUBLED.sub(r"\\", text)
    text = _PAIR.sub(lambda pair: pair.group().replace(",", ", "), text)
    if (single := _ONE_TEXT.fullmatch(text)) and (
        re.search(r"\d", single[1]) or len(single[1]) < 4 or spelled_number(single[1]) is not None
    ):
        text = single[1]
    if (
        text.endswith(")")
        and (twice := _TWICE.fullmatch(text))
        and spelled_number(twice[2] or twice[3]) == int(twice[1] or twice[4])
    ):
        text = twice[1] or twice[4]
    text = _without_dollars(_ABOUT.sub("\u2248", text))
    if "\\" in text:
        text = _TO.sub(":", _MINUS_IN_WORDS.sub("-", text))
        if (cases := _CASES.search(text)) and "=" in cases["rows"]:
            rows = ", ".join(row.strip(" ,;") for row in cases["rows"].split("\\\\") if row.strip())
            text = text[: cases.start()] + rows + text[cases.end() :]
        text = text.replace(r"\begin{cases}", CASES_OPEN).replace(r"\end{cases}", CASES_CLOSE)
    text = _BETWEEN_SOLUTIONS.sub("; ", text)
    text = _CONNECTIVE.sub(lambda words: f" {words.group(1) or words.group(2)} ", text)
    text = _QUADS.sub("; ", text)
    text = text.replace(r"\{", SET_OPEN).replace(r"\}", SET_CLOSE)
    if _RELATION.search(text):
        text = _LOGIC.sub(lambda sign: " or " if sign.group(1) in ("lor", "vee") else " and ", text)
    text = _PRIMES.sub(lambda primes: "'" * primes.group().count("prime"), text)
    if "_" in text and "^" in text:
        text = _COMBINATIONS.sub(_combinations, text)
    if "C" in text or "P" in text:
        text = _CALLED_COMBINATIONS.sub(_called, text)
    if "choose" in text:
        text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    text = _SIGN.sub(lambda sign: _SIGN_OF[sign.group()[1:]], text)
    text = _PLUS_INFINITY.sub(r"\\infty", text)
    for written, sign in _ASCII:
        text = text.replace(written, sign)
    if "]" in text or "[" in text:
        text = _with_round_brackets(text)
    if text[-1:].isdecimal():
        text = _SPACED_EXPONENT.sub("e", text)
    return _without_parameter(" ".join(text.split()).strip(" ;"))


_FOR_ALL = re.compile(
    r",?\s?\\text\{,?\s?for (?:all|any|every)(?: (?:positive|real|natural))?(?: (?:integers?|reals?|numbers?))?\s?\}"
    r"\s?([A-Za-z])(?:\s?\u2208\s?\\mathbb\{[A-Z]\})?\Z"
)
_OF_WHOLE = re.compile(
    rf"(?:\s?[,;|:(]|\s?\\text\{{,?\s?(?:for|where|with)(?: (?:all|any|some))?(?: integers?)?\s?\}})\s?\(?([klmn])"
    rf"(?:\s?\u2208\s?\\mathbb(?:\{{Z\}}|\s?Z)|\s?\\text\{{\s?is (?:any|an) integer\s?\}})\)?{SET_CLOSE}?\Z"
)


def _without_parameter(text: str) -> str:
    r"""The text without saying that a function's variable may be any, as `f(x) = 2x \text{ for all } x` does, or that a
    number of turns may be: of `x = k\pi, k \in \mathbb{Z}`, `x = \whole\pi`."""
    if r"\text" in text and (any_value := _FOR_ALL.search(text)) and f"({any_value[1]})" in text:
        return text[: any_value.start()]
    turns = _OF_WHOLE.search(text) if r"\pi" in text else None
    if turns is None:
        return text
    whole = text[: turns.start()].strip()
    if turns.group().endswith(SET_CLOSE):
        whole = whole.removeprefix(SET_OPEN)
    return re.sub(rf"(?<![A-Za-z\\]){turns[1]}(?![A-Za-z])", r"\\whole ", whole)


_SPACED_EXPONENT = re.compile(r"(?<=\d)\s[eE](?=[-+]?\d{1,3}\Z)")
_TURNED = re.compile(r"([\[\]])([^\[\](){},;]{1,80}[,;][^\[\](){},;]{1,80})([\[\]])")


def _with_round_brackets(text: str) -> str:
    """Open ends of intervals as in France, `[1,3[`, as round brackets."""
    brackets = re.findall(r"[\[\]]", text)
    if len(brackets) % 2 or brackets == ["[", "]"] * (len(brackets) // 2):
        return text
    return _TURNED.sub(lambda ends: f"{'[' if ends[1] == '[' else '('}{ends[2]}{']' if ends[3] == ']' else ')'}", text)


def _combinations(found: re.Match[str]) -> str:
    whole, part = filter(None, found.groups()[1:])
    if whole.isdecimal() and part.isdecimal():
        return _binomial(found, found[1], int(whole), int(part))
    is_power = found[1] != "C" or whole.isdecimal()  # of a constant: C_1^n
    return found.group() if is_power else rf"\binom{{{whole}}}{{{part}}}"


def _called(found: re.Match[str]) -> str:
    return _binomial(found, found[1] or found[5], int(found[2] or found[4]), int(found[3] or found[6]))


def _binomial(found: re.Match[str], name: str, whole: int, part: int) -> str:
    if part > whole:
        return found.group()
    chosen = rf"\binom{{{whole}}}{{{part}}}"
    return chosen if name == "C" else f"{chosen} {part}!"


def _without_dollars(text: str) -> str:
    """The text without the dollars around formulas; a dollar of money becomes `\\$`."""
    text = re.sub(r"\\\$", "\u0001", text)
    if text.count("$") % 2 or _CURRENCY.search(text):
        text = re.sub(r"\$(?=\s?-?[\d.])", "\u0001", text)
    if text.count("$") % 2:
        text = re.sub(r"(?<=\d)(\s?)\$\s*\Z", "\\1\u0001", text)
    text = without_layout(re.sub(r"\\(q?quad)", "\u0002\\1 ", text).replace("\\\\", "\u0003"))
    return re.sub("\u0002", r"\\", text).replace("\u0003", "\\\\").replace("\u0001", r"\$")


def split(text: str, *separators: str) -> list[str]:
    """The parts of a text between separators outside all brackets."""
    parts, level, start = [], 0, 0
    for sign in _signs(separators).finditer(text):
        character = sign.group()
        if character in _OPEN:
            level += 1
        elif character in _CLOSE:
            level -= 1
        elif level == 0 and not (character == "," and _in_thousands(text, sign.start())):
            parts.append(text[start : sign.start()].strip())
            start = sign.end()
    return [*parts, text[start:].strip()]


@cache
def _signs(separators: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join([f"[{re.escape(_OPEN + _CLOSE)}]", *map(re.escape, separators)]))


_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)")


def _in_thousands(text: str, place: int) -> bool:
    """Whether a comma stands inside a number such as 1,234."""
    return any(
        number.start() < place < number.end() for number in _THOUSANDS.finditer(text, max(0, place - 40), place + 40)
    )


def depth(text: str) -> int:
    """How many brackets stand in each other at most."""
    deepest = level = 0
    for character in text:
        level += (character in "([{") - (character in ")]}")
        deepest = max(deepest, level)
    return deepest


def enclosed(text: str) -> tuple[str, str, str] | None:
    """The opening bracket, the content and the closing bracket of a text that is one bracket; None for all else."""
    if len(text) < 2 or text[0] not in _OPEN or text[-1] not in _CLOSE:
        return None
    depth = 0
    for place, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0 and place < len(text) - 1:
            return None
    return (text[0], text[1:-1].strip(), text[-1]) if depth == 0 else None
