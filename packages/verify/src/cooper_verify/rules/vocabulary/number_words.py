r"""Words beside a number: those that scale it ("12 million"), and those that make it another one or none at all.

A word beside a number is a unit only if it is none of these: they scale ("half of 12"), negate ("12 is wrong"), bound
("under 12", "12 or more") or continue it ("12 in base 7", "12 and a half", `12\pi`).
"""

import re
from fractions import Fraction

from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of
from cooper_verify.rules.vocabulary.unit_table import MEASURES

_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_SCALES |= {"quadrillion": 10**15, "quintillion": 10**18, "sextillion": 10**21, "septillion": 10**24}
_SCALES |= {"octillion": 10**27, "lakh": 10**5, "lac": 10**5, "crore": 10**7, "bn": 10**9, "mn": 10**6}
_UNSPACED = {"\u6253": 12, "\u767e": 100, "\u5343": 1000, "\u4e07": 10**4, "\u842c": 10**4}
_UNSPACED |= {"\u4ebf": 10**8, "\u5104": 10**8}
TIMES = {word: size for word, size in _SCALES.items() if len(word) > 3} | {"score": 20}
"""Words that multiply the number in front of them, or stand for it."""
ONES = {"a": 1, "an": 1, "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
ONES |= {"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15}
ONES |= {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40}
ONES |= {"fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
NUMBER_OF_WORD = {word: number for word, number in ONES.items() if word not in ("a", "an")}
"""From zero to twenty, and the tens from there, in this order."""
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8}
PARTS |= {"tenth": 10}
_SYMBOLS = {"k": 1000, "m": 10**6, "mn": 10**6, "mm": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12}
_IN_UNIT = "|".join(sorted(name[1:] for name in MEASURES if name[0] in _UNSPACED and len(name) > 1))
SCALE = rf"(?:(?:{'|'.join(_SCALES)})s?\b|[{''.join(_UNSPACED)}](?!{_IN_UNIT}))"
"""A pattern of words that scale the number in front of them."""
_FIGURES = (
    r"(?>(?:\d{1,9}\s?)?)\\[dt]?frac(?:\{\d{1,9}\}\{[1-9]\d{0,9}\}|\d[1-9])|\d{1,9} \d{1,9}/[1-9]\d{0,9}"
    r"|(?:\d{1,3}(?>(?:,\d{3}){1,9})|\d{1,40}+)(?>(?:\.\d{1,40}+|/[1-9]\d{0,9}+)?)"
)
_SCALED = re.compile(
    rf"(?<![\d.,/^_])(?>(?P<currency>\\?[$\u20ac\u00a3\u00a5\u20b9]\s?)?)(?P<figures>{_FIGURES})"
    rf"(?:(?>(?P<close>\s?\$)?)[\s~-]?(?:\\[,; ])?\s?(?>(?P<open>\\(?:text|mathrm|mbox|textrm)\{{\s?)?)"
    rf"(?P<words>{SCALE}(?>(?:\s{SCALE}){{0,9}}))(?>(?P<shut>\s?\}})?)|(?(currency)\s?(?P<symbol>[kmbt]|[mb]n|tn|mm)\b|(?!)))",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\\[dt]?frac\{?(?:(\d++)\}\{(\d++)\}|(\d)(\d))")


_SPELLED = re.compile(rf"(?i)\A(?:{'|'.join(NUMBER_OF_WORD)})(?=\s{SCALE})")
"""A number in words in front of a scale: "five dozen"."""


def with_scales(text: str) -> str:
    r"""The text with "12 million", `12\text{ dozen}`, "$3.5M" and "12万" as 12000000, 144, $3500000 and 120000."""
    return _SCALED.sub(_multiplied, text)


def without_scales(text: str) -> str:
    """The text without words of scale: `12` for "12 million"."""
    return _SCALED.sub(lambda scaled: _replaced(scaled, scaled["figures"]), text)


def without_asked_scale(text: str, asked: str) -> str:
    """The text without the word of scale in which a question asks for a number: 3 for "3 million", "in millions"."""
    figures = _SPELLED.sub(lambda word: str(ONES[word.group().casefold()]), text)
    words = {
        word.casefold().removesuffix("s") for found in _SCALED.finditer(figures) for word in [found["words"] or ""]
    }
    is_asked = len(words) == 1 and re.search(rf"\b(?:in|how many)\s{min(words) or '(?!)'}s?\b", asked)
    return without_scales(figures) if is_asked else text


def _multiplied(scaled: re.Match[str]) -> str:
    figures = _FRACTION.sub(r" \1\3/\2\4", scaled["figures"]).replace(",", "")
    value = sum(map(Fraction, figures.split()), Fraction(0))
    for word in re.findall(r"[a-z]+|\w", (scaled["words"] or "").lower()):
        value *= (_SCALES | _UNSPACED)[word.removesuffix("s")]
    return _replaced(scaled, str(value * _SYMBOLS.get((scaled["symbol"] or "").lower(), 1)))


def _replaced(scaled: re.Match[str], number: str) -> str:
    inside = "" if scaled["open"] and scaled["shut"] else (scaled["open"] or "") + (scaled["shut"] or "")
    return f"{scaled['currency'] or ''}{number}{scaled['close'] or ''}{inside}"


_FOREIGN_SCALES = (
    r"mil|mille|mila|mill?i(?:on(?:en|i|er)?|ard\w{0,3})|millones|mill[oó]n|milh(?:ão|ões)|mio|mrd|mln|mld|tsd|tausend"
    r"|hundert|cento|cien|тыс\w{0,6}|мл[нрд]\w{0,2}|милли(?:он|ард)\w{0,3}"
)
_UNSPACED_SCALES = f"[\u4e07\u842c\u4ebf\u5104\u5343\u767e\u5146\ub9cc\uc5b5](?!{_IN_UNIT})|[\ucc9c\uc870](?!\\w)"
_FOREIGN_SCALE = rf"(?:\b(?:{_FOREIGN_SCALES})\b|{_UNSPACED_SCALES})"
"""Thousands, millions and the like in other languages. What they make of a number takes a reader."""
_FOREIGN_NOT = words_of("bound_after", languages=LANGUAGES[1:])
_REJECTED = "wrong|incorrect|false|untrue|invalid|impossible|extraneous|rejected|inadmissible|excluded|discarded"
CHANGES_NUMBER = re.compile(
    r"(?i)\b(?:tens?|dozens?|hundreds?|thousands?|[mb]illions?|trillions?|lakhs?|lacs?|crores?|over|half|halves|thirds?"
    r"|fourths?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|(?:hundred|thousand|[mb]illion|trillion)ths?|squared|cubed"
    r"|times(?=\s(?:\d|the\b|as\b|more\b|less\b))|plus|minus|divided|percent|percentage|pct|per ?mille?|pi|sqrt|root"
    r"|or|and|point|degrees?|factorial|choose|mod|modulo|base|basis|gross|score|grand|thou|remainder|not|never|isn't|wasn't|cannot"
    r"|hex|hexadecimal|octal|binary|pp[mb]|bps?|kk|tn"
    rf"|{_REJECTED}|at (?:least|most|minimum|maximum)|minimum|maximum|max|below"
    r"|und|oder|ou|et|nicht|pas|\u043d\u0438|\u043d\u0435|\u0438\u043b\u0438)\b"
    r"|[\u500d\u534a\u591a\u4f59\u9918\u6216\u975e\u8d1f\u8ca0\u70b9\u9ede]"
    r"|\u5206\u4e4b|\u4ee5[\u4e0a\u4e0b\u5185]|\u5de6\u53f3|\u4e0d\u662f"  # parts of, at least, at most, about, not
    rf"|{_FOREIGN_SCALE}|{_FOREIGN_NOT}"
)
"""Words that change the numbers next to them, so that the digits alone would be misread."""
_VARIABLE = r"(?-i:(?<![\w'\\&])[b-zB-HJ-Z](?![\w'.&-]))"
_IF = (
    r"(?:if|iff|unless|whenever|provid(?:ed|ing)|except(?:ing)?|excluding|assuming|supposing|as\slong\sas|such\sthat|s\.t\."
    r"|in\scase)"
)
_CONDITIONAL = (
    rf"\b(?:{_IF}(?!\w)[^.;,\n]{{0,30}}?(?:{_VARIABLE}|\b(?:even|odd)\b|[<>=\u2264\u2265\u2260])|otherwise\b"
    r"|(?:for|when|where|while|given)\s(?>(?:(?:all|any|every|each|some|large|small|positive|negative|integers?|real)\s)*)"
    rf"[$(\\{{]{{0,3}}(?:{_VARIABLE}(?!\$?\s?=)|(?:even|odd)\b)"
    rf"|with\s\$?{_VARIABLE}\$?\s(?:even|odd)\b"
    rf"|as\s\$?{_VARIABLE}\$?\s?(?:\\to\b|\u2192|->|grows|increases|decreases|tends|approaches|goes))"
)
"""Words that say when a value holds: "if n is even", "for n > 2". Others repeat the question ("if he sells all", "for
n = 5", a case of it) or give a reason ("as n is even")."""
_IS_CONDITIONAL = re.compile(rf"(?i)[\s)}}\]$]*+(?:[\w'-]{{1,20}}\s){{0,3}}?(?:,\s?|\()?{_CONDITIONAL}")


def is_conditional(after: str) -> bool:
    """Whether the text after a number says when it holds."""
    return _IS_CONDITIONAL.match(after) is not None


CONDITION = re.compile(
    rf"\b(?:{_IF}(?!\w)|else|even|odd)\b|\b(?:for|when|where|given)\s[$(\\{{]{{0,3}}{_VARIABLE}|{_CONDITIONAL}",
    re.IGNORECASE,
)
"""The same inside a formula, where nobody tells a story: any `\\text{ if even}`."""
_COUNTED = re.compile(r"\b(?:percent|percentage|pct|degrees?|times|points?|quarters?)\b", re.IGNORECASE)


def changes_number(words: str) -> bool:
    """Whether words beside a number change it; percent, degrees, points and the like may be its unit."""
    return CHANGES_NUMBER.search(_COUNTED.sub("", words)) is not None


APPROXIMATELY_BEFORE = re.compile(rf"(?i){words_of('about')}\s?[$\\({{*]{{0,4}}\Z")
"""The end of a text that makes the number behind it an estimate."""
_BEHIND = (
    r"[)}\]$]{0,4}(?-i:[a-fijkn-rt-zBDEGHIKMO-UX-Z](?![\w'.])|[bmt]n\b)|\.{3}",  # 12x, 12M
    r"[\s)}\]$*]{0,8}(?>(?:\\(?:text|textrm|mathrm|mbox)\s?\{\s?)?)(?:"
    r"(?-i:[\u2030\u2031\u221a\u0370-\u03a8\u03b1-\u03bb\u03bd-\u03c9])"  # 5\u2030, 5\u03c0
    r"|(?-i:\\(?:pi|sqrt|[dt]?frac|alpha|beta|gamma|delta|theta|lambda|sigma|phi|omega|infty|log|ln|sin|cos|tan)(?![A-Za-z]))"
    r"|(?:[\w'-]{1,20}\s){0,3}?(?:or\s(?:so|more|less|fewer|above|over|up|\$?\d)|and\s(?:up|above|over|more)"
    r"|and\s(?:a|one|two|three)\s(?:half|third|quarter|fourth|fifth|eighth|tenth)s?"
    r"|at\s(?:least|most|minimum|maximum)|(?:in\s)?base\b|modulo\b|\(\s?(?:mod|base)\s?\d)"
    r"|(?:,\s)?(?:which\s|that\s|this\s)?(?:is|was|isn't|wasn't|seems)?\s?(?:not|n't|never|wrong|incorrect|false)\b",
    rf"{SCALE}|{_FOREIGN_SCALE}|{_FOREIGN_NOT}|\(?(?:{_REJECTED})\b|(?:[\w'-]{{1,20}}\s){{0,3}}?(?:,\s?|\()?{_CONDITIONAL}",
    r"(?-i:[kMBT](?![\w'./^&-])|[kKMBT](?=\s(?:dollars?|euros?|pounds|rupees|usd|eur|yen|people)\b))"
    r"|[ap]\.?\s?m\b",
    r"(?:kk|tn|pp[mb]|bps?|basis\spoints?|gross|score|mio|mil|(?:in\s)?\(?(?:hex|hexadecimal|octal|binary)|ish|tens|plus|minus|below|squared|cubed|factorial|mod|tenths?|(?:hundred|thousand|[mb]illion)ths?|halves|thirds|fifths|eighths"
    r"|per\s?mille?)\b|(?:times|to|through|until)\s(?:the\s)?\$?\d|\(?(?:approximately|approx|roughly)\b|(?:,\s)?(?:with\s)?(?:an?\s)?remainder\b|\+(?!\s?\d)|[\u500d\u534a\u591a\u4f59\u9918]|\u5206\u4e4b|\u4ee5[\u4e0a\u4e0b])",
)
_CHANGES_AFTER = re.compile(f"(?i){'|'.join(_BEHIND)}")


def changes_after(after: str) -> bool:
    """Whether a text changes the number in front of it."""
    return _CHANGES_AFTER.match(after) is not None
