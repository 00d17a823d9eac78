"""Canonical forms for answers in words (whatever their LaTeX, Markdown or punctuation), for dates and for times."""

import re
import unicodedata
from collections.abc import Callable

from cooper_base.data.text import without_end
from cooper_verify.rules.text.marks import APPROVING
from cooper_verify.rules.text.notation import composed
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.number_words import NUMBER_OF_WORD

TEXT_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|normal)?|math(?:rm|bf|it|sf|tt|normal)?|[mh]box|emph|underline|operatorname\*?)"
    r"\s*\{((?>(?:[^{}]++|\{[^{}]*+\})*))\}"
)
_SPACES = re.compile(r"\\[,;:!>]|\\ |\\\\|\\(?:q?quad|noindent|displaystyle)\b|\s+")
_DELIMITERS = re.compile(r"\\[()\[\]]|\\left\b|\\right\b|\\?\$|\*\*|__|`")
_ESCAPED = re.compile(r"\\([%&#_{}])")
_DEGREE = re.compile(r"(?:(?<!\s)\s++)?\^\s*+(?:\{\s*+)?\\circ\s*+\}?|\\degree\b")
_QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'") | dict.fromkeys("\u201c\u201d\u00ab\u00bb", '"'))
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_EMOJI_AT_START = re.compile(rf"\A(?>(?:{APPROVING}\s*+)+)")
_EMOJI = re.compile(rf"(?:(?<!\s)\s++)?(?>(?:{APPROVING}[\s!]*+)+)")
_EDGES = " \t.,;:!*_\"'"
_ARTICLE = re.compile(r"\A(?:the|an?)\s+(?=\S)", re.IGNORECASE)
_ORDINAL_WORDS = (
    "1st first 2nd second 3rd third 4th fourth 5th fifth 6th sixth 7th seventh 8th eighth 9th ninth 10th tenth "
    "11th eleventh 12th twelfth 13th thirteenth 14th fourteenth 15th fifteenth 16th sixteenth 17th seventeenth "
    "18th eighteenth 19th nineteenth 20th twentieth"
)
_FIGURES = {word: str(number) for word, number in NUMBER_OF_WORD.items() if number <= 20}
_FIGURES |= zip(_ORDINAL_WORDS.split()[1::2], _ORDINAL_WORDS.split()[::2], strict=True)
_TENS = {word: number // 10 for word, number in NUMBER_OF_WORD.items() if number >= 20}
_IN_TENS = re.compile(
    rf"\b({'|'.join(_TENS)})(?: ({'|'.join([*_FIGURES][1:10] + _ORDINAL_WORDS.split()[1:18:2])}))?\b", re.IGNORECASE
)


def without_accents(text: str) -> str:
    return "".join(
        character for character in unicodedata.normalize("NFD", text) if not unicodedata.combining(character)
    )


@text_cache(4096)
def bare_text(text: str) -> str:
    r"""The text without LaTeX and Markdown formatting, and emoji around it: `\text{(B)}\ $12$` is `(B) 12`."""
    if not text.isascii():
        text = _EMOJI_AT_START.sub("", without_end(_EMOJI, composed(text)))
        text = text.translate(_QUOTES).translate(_DASHES)
    text = text.replace("{,}", ",").replace("~", " ")
    if "\\" in text:
        for _ in range(3):  # \textbf{\text{...}}; nobody nests deeper
            text = TEXT_COMMAND.sub(r" \1 ", text)
        text = _DEGREE.sub("\u00b0", _SPACES.sub(" ", text))
    return " ".join(_ESCAPED.sub(r"\1", _DELIMITERS.sub("", text)).split())


@text_cache(4096)
def plain_text(text: str, fold_case: bool = True) -> str:
    """The form in which answers in words are compared. Equal forms mean equal answers.

    It ignores case (unless `fold_case` is False), a leading article, outer quotation marks and punctuation, full stops
    after letters ("p.m.") and hyphens between words. "and" is a comma in lists, `twelve` is `12`, `first` is `1st`, a
    date with a named month is one written year-month-day, and `9 pm` is `21:00`.
    """
    text = bare_text(text).strip(_EDGES)
    if len(text) > 2 and text[0] + text[-1] in ("()", "[]") and not set("()[]") & set(text[1:-1]):
        text = text[1:-1].strip(_EDGES)
    if text.isdecimal():
        return text
    for pattern, form in _FORMS:
        text = pattern.sub(form, text)
    text = _ERA.sub(lambda era: " bc" if era.group(1) else " ad", _ERA_IN_FRONT.sub(r"\2 \1", text))
    text = _IN_TENS.sub(_in_figures, text)
    text = " ".join(_TIME.sub(_clock, with_iso_dates(_ARTICLE.sub("", text))).split()).strip(_EDGES)
    return " ".join(_FIGURES.get(word.casefold(), word) for word in (text.casefold() if fold_case else text).split(" "))


def _in_figures(tens: re.Match[str]) -> str:
    """Tens with what follows them: `95` for "ninety five", `21st` for "twenty first"."""
    return f"{_TENS[tens[1].casefold()]}{_FIGURES[tens[2].casefold()] if tens[2] else 0}"


def _joined(between: re.Match[str]) -> str:
    """Nothing before the ending of an ordinal, and "x" between the figures of a size."""
    return "x" if between.group().strip(" ^") else ""


_FORMS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=[A-Za-z)])_\s?\{(\d{1,9})\}"), r"_\1"),
    (re.compile(r"\\infty\b|\u221e"), " infinity "),
    (re.compile(r"[{}]"), " "),
    (re.compile(r"(?:(?<!\s)\s++)?([_^])\s*+"), r"\1"),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (re.compile(r"(?<=\d)\s?\^?\s?(?=(?:st|nd|rd|th)\b)|(?<=\d)\s?(?:\\times|\u00d7|by|x)\s?(?=\d)"), _joined),
    (re.compile(r"(?<=[^\W\d_])\."), ""),
    (re.compile(r"(?i)\b(north|south)[ -]?(east|west)"), r"\1\2"),
    (re.compile(r"(?i)\b(?:due|to the)\s(?=(?:north|south|east|west)(?:east|west)?\b)"), ""),
    (re.compile(r"(?i)\b((?:north|south|east|west)(?:east|west)?)wards?\b"), r"\1"),
    (re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])"), " "),
    (re.compile(r"(?:(?<!\s)\s++)?([:/])\s*+|(?<=\d)\s*+(-)\s*+(?=\d)"), r"\1\2"),
    (re.compile(r"(?:(?<!\s)\s++)?[,;]\s*+|(?<!\s)\s++(?:and|&)(?=\s)\s*+"), ", "),
)
"""Signs, spaces and separators in one way of writing, in this order."""
_IN_FORMULA = re.compile(
    r"\\(?:[dt]?frac|sqrt|(?:measured)?angle|triangle|overline|overrightarrow|vec|widehat|parallel|perp|cong|sim)(?![A-Za-z])|[\^=]"
)


_CODE = re.compile(
    r"\b(?:[A-Za-z]*[A-Z][a-z]?\d|(?=[a-z]*[A-Z])([A-Za-z])(?i:\1)(?![^\W_])"
    r"|(?=[A-Za-z]*[a-z][A-Z])(?:[A-Za-z]{2,4}|(?:[A-Z][a-z]?){2,})(?![^\W_]))"
)


def has_code(text: str) -> bool:
    """Whether a text has a word in which the case of a letter counts: CO2, NaCl, AaBb, TT; not McDonald and iPhone."""
    return _CODE.search(text) is not None


def case_matters(text: str) -> bool:
    """Whether the case of an answer may carry meaning: in a formula or a code, and where it is so short that Co is
    cobalt, CO is a gas, and mW is not MW."""
    if _IN_FORMULA.search(text) or has_code(text):
        return True
    letters = bare_text(text).strip(_EDGES)
    return len(letters) == 2 and letters.isalpha() and letters != letters.lower() and letters.casefold() != "no"


_INFLECTION = re.compile(r"(?:'s|s'|s|es|ed|ing|ly)\Z")
_FORM_WORDS = {"a", "an", "the", "of", "to", "is", "are", "it", "and"}


def differ_in_form(text: str, other: str) -> bool:
    """Whether two plain texts without figures have the same words in other forms: "cat" and "the cats"."""
    if re.search(r"\d", text + other):
        return False
    words, others = ([stem(word) for word in re.findall(r"[\w']+", phrase)] for phrase in (text, other))
    words, others = ([word for word in words_of_text if word not in _FORM_WORDS] for words_of_text in (words, others))
    return bool(words) and sorted(words) == sorted(others)


def stem(word: str) -> str:
    """A word without its ending: `cat` for "cats", `citi` for "city" and "cities", `increas` for "increasing"."""
    if not word.isalpha() and "'" not in word:
        return word
    stem = re.sub(r"(?:y|ies|ied)\Z", "i", word) if len(word) > 3 else word
    stem = _INFLECTION.sub("", stem) if len(stem) > 3 else stem
    stem = stem.removesuffix("e") if len(stem) > 3 else stem
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] != "i" else stem  # no Roman numeral


_MONTHS = """
january february march april may june july august september october november december
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
januar februar märz april mai juni juli august september oktober november dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
"""
_NAMES = {name: number for row in _MONTHS.splitlines() for number, name in enumerate(row.split(), start=1)}
_NAMES |= {name[:3]: number for name, number in [*_NAMES.items()][:12]} | {"sept": 9}
_MONTH = rf"(?P<month>{'|'.join(sorted(_NAMES, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s*\b(?:de\s)?(?P<year>\d{4}))?"
_WRITTEN = (
    re.compile(rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}\b(?!\d|:){_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\.?\s+(?:(?:of|de)\s+)?{_MONTH}{_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}(?P<day>),?\s+(?:of\s+)?(?P<year>\d{{4}})\b", re.IGNORECASE),
    re.compile(r"(?<![\d-])(?P<year>\d{4})[-/\u5e74](?P<month>\d{1,2})[-/\u6708](?P<day>\d{1,2})\u65e5?(?![\d-])"),
)
_FIGURE = re.compile(r"\d")
_ERA_IN_FRONT = re.compile(r"\b(AD|BCE?|CE)\s(\d{1,4})\b", re.IGNORECASE)
_ERA = re.compile(r"(?<=\d)\s?(?:(BC)E?|AD|CE)\b", re.IGNORECASE)
_NAMED_TIME = {"noon": "12:00 pm", "midnight": "0:00 am"}
_TIME = re.compile(
    r"(?<![\w:.])(?:(?:12(?::00)?\s)?(?P<name>noon|midnight)\b|(?P<hour>\d{1,2})(?:(?::|\.(?=\d\d\s(?:Uhr|[ap]\.?m)))(?P<minute>[0-5]\d))?"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?|\s?(?P<clock>Uhr|[\u70b9\u9ede\u6642\u65f6\uc2dc]))?(?![\w:]|\.\d))",
    re.IGNORECASE,
)
MONTH = re.compile(rf"\b(?:{'|'.join(_NAMES)})\b", re.IGNORECASE)


def with_iso_dates(text: str) -> str:
    """`text` with dates as year-month-day: "Jan. 5th, 2024", "5 January 2024" and "2024/1/5" become `2024-01-05`.

    A missing year or day is left empty (`-01-05`, `2024-01-`). In 1/5/2024 either figure may be the month: it stays.
    """
    for pattern in _WRITTEN if _FIGURE.search(text) else ():
        text = pattern.sub(_iso, text)
    return text


def _iso(date: re.Match[str]) -> str:
    month = _NAMES.get(date["month"].lower()) or int(date["month"])
    day = int(date["day"] or 0)
    if not 1 <= month <= 12 or day > 31:
        return date.group()
    return f"{date['year'] or ''}-{month:02}-{f'{day:02}' if day else ''}"


def _clock(time: re.Match[str]) -> str:
    """A time by a clock of 12 hours: `21:00`, `21 Uhr` and `9 P.M.` become `9:00 pm`, `09:00` is am, `9:00` may be
    either."""
    if time["name"]:
        return _NAMED_TIME[time["name"].lower()]
    hour, minute, half = int(time["hour"]), time["minute"], (time["half"] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif hour > 23 or half or (minute is None and not time["clock"]):
        return time.group()
    elif hour <= 12 and time["hour"][0] != "0":
        return f"{hour}:{minute or '00'}"
    return f"{hour if hour <= 12 else hour - 12}:{minute or '00'} {'am' if hour < 12 else 'pm'}"
