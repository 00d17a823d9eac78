"""A canonical form for answers in words, whatever their LaTeX, Markdown or punctuation."""

import re
import unicodedata
from functools import lru_cache

from cooper_rl.rewards.rule.extraction import EMOJI
from cooper_rl.rewards.rule.written_date import with_clock_times, with_iso_dates

_TEXT_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|normal)?|math(?:rm|bf|it|sf|tt|normal)?|[mh]box|emph|underline|operatorname\*?)"
    r"\s*\{([^{}]*)\}"
)
_SPACES = re.compile(r"\\[,;:!>]|\\ |\\\\|\\(?:q?quad|noindent|displaystyle)\b|~|\s+")
_DELIMITERS = re.compile(r"\\[()\[\]]|\\left\b|\\right\b|\\?\$|\*\*|__|`")
_ESCAPED = re.compile(r"\\([%&#_{}])")
_DEGREE = re.compile(r"\s*\^\s*\{?\s*\\circ\s*\}?|\\degree\b")
_QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'") | dict.fromkeys("\u201c\u201d\u00ab\u00bb", '"'))
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_EMOJI_AT_END = re.compile(rf"\s*{EMOJI}[\s!]*(?:{EMOJI}[\s!]*)*\Z|\A(?:{EMOJI}\s*)+")
_EDGES = " \t.,;:!*_\"'"
_ARTICLE = re.compile(r"(?:the|an?)\s+(?=\S)", re.IGNORECASE)
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())}


def without_accents(text: str) -> str:
    """The text with `ã` as `a`."""
    return "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.combining(one))


@lru_cache(maxsize=4096)
def bare_text(text: str) -> str:
    r"""The text without LaTeX and Markdown formatting, and emoji around it: `\text{(B)}\ $12$` is `(B) 12`.

    Letters keep their case.
    """
    text = _EMOJI_AT_END.sub("", unicodedata.normalize("NFC", text)).translate(_QUOTES).translate(_DASHES)
    for _ in range(3):  # \textbf{\text{...}}; nobody nests deeper
        text = _TEXT_COMMAND.sub(r" \1 ", text)
    text = _SPACES.sub(" ", text.replace("{,}", ","))
    text = _DELIMITERS.sub("", _DEGREE.sub("\u00b0", text))
    return re.sub(r"\s+", " ", _ESCAPED.sub(r"\1", text)).strip()


@lru_cache(maxsize=4096)
def plain_text(text: str, fold_case: bool = True) -> str:
    """The form in which answers in words are compared. Equal forms mean equal answers.

    It ignores case (unless `fold_case` is False), a leading article, outer quotation marks and punctuation, full stops
    after letters ("p.m."), and hyphens between words. It also makes no difference between "and" and a comma in lists,
    between `twelve` and `12`, between a date with a named month and one written year-month-day, or between `9 pm` and
    `21:00`.
    """
    text = _unbracketed(bare_text(text).strip(_EDGES))
    text = re.sub(r"\s*([_^])\s*", r"\1", re.sub(r"[{}]", " ", re.sub(r"\\infty\b|\u221e", " infinity ", text)))
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"(?<=[^\W\d_])\.", "", text)
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", text)
    text = re.sub(r"\s*([:/])\s*|(?<=\d)\s*(-)\s*(?=\d)", r"\1\2", text)
    text = re.sub(r"\s*(?:[,;]|,?\s(?:and|&)(?=\s))\s*", ", ", text)
    text = _ARTICLE.sub("", re.sub(r"\s+", " ", text).strip(), count=1) if _ARTICLE.match(text) else text
    text = re.sub(r"\s+", " ", with_clock_times(with_iso_dates(text))).strip(_EDGES)
    if fold_case:
        text = text.casefold()
    return " ".join(_NUMBERS.get(word.casefold(), word) for word in text.split(" "))


def case_matters(text: str) -> bool:
    """Whether an answer is so short that its case may carry meaning: Co is cobalt, CO is a gas, and mW is not MW."""
    letters = bare_text(text).strip(_EDGES)
    return len(letters) == 2 and letters.isalpha() and letters != letters.lower() and letters.casefold() != "no"


def _unbracketed(text: str) -> str:
    inner = text[1:-1]
    is_wrapped = len(text) > 2 and text[0] + text[-1] in ("()", "[]") and not set("()[]") & set(inner)
    return inner.strip(_EDGES) if is_wrapped else text
