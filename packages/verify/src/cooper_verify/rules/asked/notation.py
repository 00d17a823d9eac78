r"""An answer in the notation of its reference or of its question, so that both say the same: "$480 per week" is $480
where the question asks how much per week, `\lim f(x) = 2` is 2 where it asks for that limit, and a reference `2,5 kg`
has a decimal comma where the question is German.
"""

import re

from cooper_verify.rules.asked.rates import TIMES_OF_ADVERBS, names_rate
from cooper_verify.rules.quantities.units import unit_of
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.languages import LANGUAGES

_RATE_AT_END = re.compile(
    r"(?:\s|\\[,; ])*(?:\\(?:text|mathrm)\s?\{\s?)?(?:(?:\bper\b|\ban?\b|\beach\b|\bevery\b"
    r"|/(?:\s?\\(?:text|mathrm)\s?\{)?)\s?(?P<noun>[a-z]{2,})|\b(?P<adverb>[a-z]{3,6}ly))\s?(?P<close>\}?)\s*\Z"
)


def without_asked_rate(text: str, reference: str, asked: str) -> str:
    """The text without the time for which its value is, if the question asks for that time and the reference leaves it
    out: "$480 per week"."""
    found = _RATE_AT_END.search(text) if asked else None
    if found is None or any(power < 0 for _, power in unit_of(reference).powers):
        return text
    if not names_rate(asked, found["noun"] or TIMES_OF_ADVERBS.get(found["adverb"], "")):
        return text
    closes = "}" if found["close"] and "{" not in found.group() else ""
    return text[: found.start()] + closes


_LAYOUT = re.compile(
    r"\\(?:left|right|displaystyle|limits|[,;:! ])(?![A-Za-z])|\\(?:text|mathrm|operatorname)(?=\s?\{)|[{}]"
)
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SIGN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+|\S")
_NAMED_SIDE = re.compile(r"\\(?:int|iint|oint|lim|sum|prod|det)(?![A-Za-z])|[A-Za-z]\s?\\?(?:left)?\s?\(")
"""A side of an equation that may say what is asked for."""
_CONTINUES = re.compile(r"[-+*/^_()=<>\[\]|!']|\d|\\[A-Za-z]|[A-Za-z]\Z")
_MOST_SIGNS = 100


def without_asked_side(text: str, question: str) -> str:
    r"""The text without its left side, if the question asks for just that: `\lim_{x\to 0} f(x) = 2`."""
    side, value = _sides(text) if "=" in text and question else ("", "")
    if not value or not _NAMED_SIDE.search(side):
        return text
    own, asked = _signs(side), _signs_of_question(question)
    if not 1 < len(own) <= _MOST_SIGNS:
        return text
    for place in range(len(asked) - len(own) + 1):
        if asked[place] == own[0] and asked[place : place + len(own)] == own:
            around = (*asked[max(0, place - 1) : place], *asked[place + len(own) : place + len(own) + 1])
            if not any(map(_CONTINUES.match, around)):
                return value
    return text


def _sides(text: str) -> tuple[str, str]:
    """The two sides of the only sign of equality outside all brackets; two empty texts if there is none."""
    depth, places = 0, []
    for place, sign in enumerate(text):
        depth += (sign in "({[") - (sign in ")}]")
        if sign == "=" and depth == 0:
            places.append(place)
    if len(places) != 1:
        return "", ""
    return text[: places[0]].strip(" $&"), text[places[0] + 1 :].strip()


def _signs(text: str) -> tuple[str, ...]:
    return tuple(_SIGN.findall(_FRACTION.sub(r"\\frac", _LAYOUT.sub(" ", text))))


@text_cache(4096)
def _signs_of_question(question: str) -> tuple[str, ...]:
    return _signs(question[-2000:])


_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d{1,9}),(\d{1,2})(?=\s?(?:\\text|\\mathrm|[^\W\d_\\]|[\u20ac%\u00b0]|\\?%))")
_WITH_COMMAS = [language for language in LANGUAGES if language.name in ("French", "German", "Spanish")]
_WITH_COMMAS += [language for language in LANGUAGES if language.name in ("Portuguese", "Italian", "Russian")]
_FRAMES = frozenset(word for row in _WITH_COMMAS for word in f"{row.frames} {row.subjects}".casefold().split())
_ENGLISH = frozenset(f"{LANGUAGES[0].frames} {LANGUAGES[0].subjects} {LANGUAGES[0].names} of to".split())
_WORD = re.compile(r"[^\W\d_]{2,}")
_ASKS = re.compile(
    r"(?i)\b(?:wie|welche[rsn]?|wann|was|combien|quel(?:le)?s?|cu[aá]nt[oa]s?|cu[aá]l(?:es)?|quant[oaie]s?|quale?|qual|quais"
    r"|сколько|как(?:ой|ая|ое|ова|ов))\b"
)


def with_point(reference: str, question: str) -> str:
    """A reference with a unit in which a decimal comma is a point, if its question is in a language that has them."""
    if "," not in reference or not question or not has_commas(question):
        return reference
    whole = _DECIMAL_COMMA.match(reference)
    return f"{whole[1]}.{whole[2]}{reference[whole.end() :]}" if whole and reference.count(",") == 1 else reference


@text_cache(1024)
def has_commas(question: str) -> bool:
    """Whether a question is in a language that writes decimals with a comma."""
    words = [word.casefold() for word in _WORD.findall(question)]
    own = sum(word in _FRAMES for word in words) + 2 * bool(_ASKS.search(question))
    return own > sum(word in _ENGLISH for word in words)


_LETTER_UNIT = re.compile(r"(?<=[\d}])(?:\s|\\[,; ])*([a-zA-Z])\Z")


def with_factor(text: str, letters: frozenset[str]) -> str:
    r"""The text with its last letter as a factor, if it is a name in the reference and no unit: `\frac{1}{3} g`."""
    found = _LETTER_UNIT.search(text)
    if found is None or found[1] not in letters:
        return text
    return f"{text[: found.start()]} \\cdot {{{found[1]}}}"
