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
_SYMBOLS = {"k": 1000, "m": 10**6, "mn": 10**6, "mm": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12}
_SCALE = r"(?:(?:hundred|thousand|million|billion|trillion|dozen|lakh|lac|crore)s?\b|[bm]n\b|[\u767e\u5343\u4e07\u842c\u4ebf\u5104])"
_FIGURES = (
    r"(?:\d{1,9}\s?)?+\\[dt]?frac(?:\{\d{1,9}\}\{[1-9]\d{0,9}\}|\d[1-9])|\d{1,9} \d{1,9}/[1-9]\d{0,9}"
    r"|(?:\d{1,3}(?:,\d{3}){1,9}+|\d{1,40}+)(?:\.\d{1,40}+|/[1-9]\d{0,9}+)?+"
)
_SCALED = re.compile(
    rf"(?<![\d.,/^_{{])(?P<currency>\\?[$\u20ac\u00a3\u00a5\u20b9]\s?)?+(?P<figures>{_FIGURES})"
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
    r"|fourths?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?|squared|cubed"
    r"|times(?=\s(?:\d|the\b|as\b|more\b|less\b))|plus|minus|divided|percent|percentage|pct|per ?mille?|pi|sqrt|root|or|and|point|degrees?|factorial|choose"
    r"|mod|modulo|base|not|never|isn't|wasn't|cannot|(?:is|was|are|seems) (?:wrong|incorrect|false)"
    r"|at (?:least|most|minimum|maximum)|minimum|maximum|max|below|gross|score"
    r"|mil|mille|mila|millones|million(?:en|i)|mill(?:ón|iard\w{0,3})|mio|mrd|mld|tausend|hundert|cento|cien"
    r"|und|oder|ou|et|nicht|pas|ни|не|или|тыс\w{0,6}|миллион\w{0,3}|миллиард\w{0,3})\b"
    r"|[万萬亿億千百兆倍半多余餘或非负負点點]|分之|以上|以下|以内|左右|不是"
)
"""Words that change the numbers next to them, so that the digits alone would be misread."""

CHANGES_BEFORE = re.compile(
    r"(?i)(?:\b(?:at\s(?:least|most|minimum|maximum)|up\sto|(?:more|less|fewer|greater|larger|smaller|higher|lower|bigger"
    r"|older|younger|longer|shorter|rather|other)\sthan|instead\sof|under|over|above|below|beyond|nearly|almost|exceed(?:s|ing)?"
    r"|not|never|isn't|wasn't|minus|negative|plus|twice|thrice|double|triple|half|base|modulo|mod|except|without|between"
    r"|(?:square|cube|root|half|double|third|quarter|fifth|tenth|multiples?|factors?|divisors?|powers?|inverse|reciprocal"
    r"|opposite|negative|logarithm|factorial|percent|tens|dozens|hundreds|thousands|millions|billions)\sof|%\s?of"
    r"|mindestens|höchstens|unter|über|au\s(?:moins|plus)|al\smenos|не\s(?:более|менее))"
    r"|不是|至少|至多|最多|最少|超过|不到|大于|小于)\s?(?:the\s|an?\s|exactly\s)?[\s($\\{*]{0,6}-?\Z"
)
"""The end of a text that changes the number behind it."""

_CLOSING = r"[\s)}\]$*]{0,8}"
_CHANGES_AFTER = re.compile(
    rf"(?i)[)}}\]$]{{0,4}}(?-i:[a-fijkn-rt-zBDEGHIKMO-UX-Z](?![\w'.])|(?:bn|mn|tn)\b)|{_CLOSING}(?:(?-i:[\u2030\u2031\u221a\u0370-\u03a8\u03b1-\u03bb\u03bd-\u03c9])"
    r"|(?-i:\\(?:pi|sqrt|[dt]?frac|alpha|beta|gamma|delta|theta|lambda|sigma|phi|omega|infty|log|ln|sin|cos|tan)(?![A-Za-z]))"
    rf"|(?:[\w'-]{{1,20}}\s){{0,3}}?(?:or\s(?:so|more|less|fewer|above|over|up)|and\s(?:a|one|two|three)\s(?:half|third|quarter"
    r"|fourth|fifth|eighth|tenth)s?|and\s(?:up|above|over|more)|at\s(?:least|most|minimum|maximum)|(?:in\s)?base\b|modulo\b"
    rf"|or\s\$?\d)|(?:,\s)?(?:which\s|that\s|this\s)?(?:is|was|isn't|wasn't|seems)?\s?(?:not|n't|never|wrong|incorrect|false)\b"
    rf"|{_SCALE}|times\s\$?\d|(?:tens|plus|minus|below|squared|cubed|factorial|mod|tens|tenths?|hundredths?|thousandths?|halves|thirds"
    r"|fifths|eighths|per\s?mille?)\b|\+(?!\s?\d)|[百千万萬亿億倍半多余餘]|分之|以上|以下)"
)


def changes_after(after: str) -> bool:
    """Whether a text changes the number in front of it."""
    return _CHANGES_AFTER.match(after) is not None
