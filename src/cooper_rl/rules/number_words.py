r"""Words beside a number: those that scale it ("12 million"), and those that make it another one or none at all.

A word beside a number is a unit only if it is none of these: they scale ("half of 12"), negate ("12 is wrong"), bound
("under 12", "12 or more") or continue it ("12 in base 7", "12 and a half", `12\pi`).
"""

import re
from fractions import Fraction

_SCALES = {
    **{"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12},
    **{
        "lakh": 10**5,
        "lac": 10**5,
        "crore": 10**7,
        "bn": 10**9,
        "mn": 10**6,
        "\u767e": 100,
        "\u5343": 1000,
        "\u4e07": 10**4,
        "\u842c": 10**4,
    },
    **{"\u4ebf": 10**8, "\u5104": 10**8},
}
TIMES = {word: size for word, size in _SCALES.items() if len(word) > 3} | {"score": 20}
"""Words that multiply the number in front of them, or stand for it."""
ONES = {"a": 1, "an": 1, "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
ONES |= {"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15}
ONES |= {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40}
ONES |= {"fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8}
PARTS |= {"tenth": 10}
_SYMBOLS = {"k": 1000, "m": 10**6, "mn": 10**6, "mm": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12}
_SCALE = (
    r"(?:(?:hundred|thousand|million|billion|trillion|dozen|lakh|lac|crore)s?\b|[bm]n\b"
    r"|[\u767e\u5343\u4e07\u842c\u4ebf\u5104])"
)
_FIGURES = (
    r"(?:\d{1,9}\s?)?+\\[dt]?frac(?:\{\d{1,9}\}\{[1-9]\d{0,9}\}|\d[1-9])|\d{1,9} \d{1,9}/[1-9]\d{0,9}"
    r"|(?:\d{1,3}(?:,\d{3}){1,9}+|\d{1,40}+)(?:\.\d{1,40}+|/[1-9]\d{0,9}+)?+"
)
_SCALED = re.compile(
    rf"(?<![\d.,/^_])(?P<currency>\\?[$\u20ac\u00a3\u00a5\u20b9]\s?)?+(?P<figures>{_FIGURES})"
    rf"(?:(?P<close>\s?\$)?+[\s~-]?(?:\\[,; ])?\s?(?P<open>\\(?:text|mathrm|mbox|textrm)\{{\s?)?+"
    rf"(?P<words>{_SCALE}(?:\s{_SCALE})*+)|(?(currency)\s?(?P<symbol>[kmbt]|[mb]n|tn|mm)\b|(?!)))",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\\[dt]?frac\{?(?:(\d++)\}\{(\d++)\}|(\d)(\d))")


def with_scales(text: str) -> str:
    r"""The text with "12 million", `12\text{ dozen}`, "$3.5M" and "12万" as 12000000, 144, $3500000 and 120000."""
    return _SCALED.sub(_multiplied, text)


def without_scales(text: str) -> str:
    """The text without words of scale: `12` for "12 million"."""
    return _SCALED.sub(lambda scaled: _replaced(scaled, scaled["figures"]), text)


def _multiplied(scaled: re.Match[str]) -> str:
    figures = _FRACTION.sub(r" \1\3/\2\4", scaled["figures"]).replace(",", "")
    value = sum(map(Fraction, figures.split()), Fraction(0))
    for word in re.findall(r"[a-z]+|\w", (scaled["words"] or "").lower()):
        value *= _SCALES[word.removesuffix("s")]
    return _replaced(scaled, str(value * _SYMBOLS.get((scaled["symbol"] or "").lower(), 1)))


def _replaced(scaled: re.Match[str], number: str) -> str:
    return f"{scaled['currency'] or ''}{number}{scaled['close'] or ''}{scaled['open'] or ''}"


CHANGES_NUMBER = re.compile(
    r"(?i)\b(?:tens?|dozens?|hundreds?|thousands?|[mb]illions?|trillions?|lakhs?|lacs?|crores?|over|half|halves|thirds?"
    r"|fourths?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|(?:hundred|thousand|[mb]illion|trillion)ths?|squared|cubed"
    r"|times(?=\s(?:\d|the\b|as\b|more\b|less\b))|plus|minus|divided|percent|percentage|pct|per ?mille?|pi|sqrt|root"
    r"|or|and|point|degrees?|factorial|choose|mod|modulo|base|basis|gross|score|grand|thou|remainder|not|never|isn't|wasn't|cannot"
    r"|wrong|incorrect|false|at (?:least|most|minimum|maximum)|minimum|maximum|max|below"
    r"|mil|mille|mila|millones|million(?:en|i)|mill(?:\u00f3n|iard\w{0,3})|mio|mrd|mld|tausend|hundert|cento|cien|und"
    r"|oder|ou|et|nicht|pas|\u043d\u0438|\u043d\u0435|\u0438\u043b\u0438|\u0442\u044b\u0441\w{0,6}"
    r"|\u043c\u0438\u043b\u043b\u0438(?:\u043e\u043d|\u0430\u0440\u0434)\w{0,3})\b"
    r"|[\u4e07\u842c\u4ebf\u5104\u5343\u767e\u5146\u500d\u534a\u591a\u4f59\u9918\u6216\u975e\u8d1f\u8ca0\u70b9\u9ede]"
    r"|\u5206\u4e4b|\u4ee5[\u4e0a\u4e0b\u5185]|\u5de6\u53f3|\u4e0d\u662f"  # parts of, at least, at most, about, not
)
"""Words that change the numbers next to them, so that the digits alone would be misread."""
CONDITION = re.compile(r"\b(?:if|iff|unless|otherwise|whenever|even|odd)\b", re.IGNORECASE)
"""Words that say when a value holds: elsewhere it is another one."""
_COUNTED = re.compile(r"\b(?:percent|percentage|pct|degrees?|times|points?|quarters?)\b", re.IGNORECASE)


def changes_number(words: str) -> bool:
    """Whether words beside a number change it; percent, degrees, points and the like may be its unit."""
    return CHANGES_NUMBER.search(_COUNTED.sub("", words)) is not None


CHANGES_BEFORE = re.compile(
    r"(?i)(?:\b(?:at\s(?:the\s)?(?:least|most|minimum|maximum)|(?:anything|everything|all)\sbut|up\sto|(?:more|less|fewer|greater|larger|smaller|higher|lower|bigger"
    r"|older|younger|longer|shorter|rather|other)\sthan|instead\sof|under|over|above|below|beyond|nearly|almost"
    r"|exceed(?:s|ing)?|not|never|isn't|wasn't|minus|negative|plus|twice|thrice|double|triple|half|base|modulo|mod|except"
    r"|without|between|(?:square|cube|root|half|double|third|quarter|fifth|tenth|multiples?|factors?|divisors?|powers?"
    r"|inverse|reciprocal|opposite|negative|logarithm|factorial|percent|tens|dozens|hundreds|thousands|[mb]illions)\sof"
    r"|%\s?of|mindestens|h\u00f6chstens|unter|\u00fcber|au\s(?:moins|plus)|al\smenos)"
    r"|%\sof|\u4e0d\u662f|[\u81f3\u6700][\u5c11\u591a]|\u8d85\u8fc7|\u4e0d\u5230|[\u5927\u5c0f]\u4e8e)"
    r"\s?(?:the\s|an?\s|exactly\s)?[\s($\\{*]{0,6}-?\Z"
)
"""The end of a text that changes the number behind it."""

APPROXIMATELY_BEFORE = re.compile(
    r"(?i)(?:\b(?:about|around|approximately|approx\.?|roughly|circa)|\u7ea6\u4e3a?|\u5927\u7ea6)\s?[$\\({*]{0,4}\Z"
)
"""The end of a text that makes the number behind it an estimate."""
_BEHIND = (
    r"[)}\]$]{0,4}(?-i:[a-fijkn-rt-zBDEGHIKMO-UX-Z](?![\w'.])|[bmt]n\b)",  # 12x, 12M
    r"[\s)}\]$*]{0,8}(?:\\(?:text|textrm|mathrm|mbox)\s?\{\s?)?+(?:"
    r"(?-i:[\u2030\u2031\u221a\u0370-\u03a8\u03b1-\u03bb\u03bd-\u03c9])"  # 5\u2030, 5\u03c0
    r"|(?-i:\\(?:pi|sqrt|[dt]?frac|alpha|beta|gamma|delta|theta|lambda|sigma|phi|omega|infty|log|ln|sin|cos|tan)(?![A-Za-z]))"
    r"|(?:[\w'-]{1,20}\s){0,3}?(?:or\s(?:so|more|less|fewer|above|over|up|\$?\d)|and\s(?:up|above|over|more)"
    r"|and\s(?:a|one|two|three)\s(?:half|third|quarter|fourth|fifth|eighth|tenth)s?"
    r"|at\s(?:least|most|minimum|maximum)|(?:in\s)?base\b|modulo\b)"
    r"|(?:,\s)?(?:which\s|that\s|this\s)?(?:is|was|isn't|wasn't|seems)?\s?(?:not|n't|never|wrong|incorrect|false)\b",
    rf"{_SCALE}",
    r"(?:tens|plus|minus|below|squared|cubed|factorial|mod|tenths?|(?:hundred|thousand|[mb]illion)ths?|halves|thirds|fifths|eighths"
    r"|per\s?mille?)\b|(?:times|to|through|until)\s\$?\d|\(?(?:approximately|approx|roughly)\b|(?:,\s)?(?:with\s)?(?:an?\s)?remainder\b|\+(?!\s?\d)|[\u500d\u534a\u591a\u4f59\u9918]|\u5206\u4e4b|\u4ee5[\u4e0a\u4e0b])",
)
_CHANGES_AFTER = re.compile(f"(?i){'|'.join(_BEHIND)}")


def changes_after(after: str) -> bool:
    """Whether a text changes the number in front of it."""
    return _CHANGES_AFTER.match(after) is not None
