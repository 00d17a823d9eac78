r"""Which words around a value are read: frames ("in total", "exactly"), and words of the question or the reference.

A word that is neither may change the value, in any language: "12 doubled", "close to 12", "12. Strike that." So an
answer beside one is `unparsed`. Nothing here lists words that change a value. A language's row has its frames
(`Language.frames`); what a word of the question means is known from the question, unless it is a word of number, bound
or doubt, which say something about a value wherever they stand.
"""

import re
from collections.abc import Container, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from cooper_verify.rules.counted_nouns import is_counted
from cooper_verify.rules.languages import LANGUAGES
from cooper_verify.rules.number_words import ONES, PARTS, TIMES
from cooper_verify.rules.plain_text import stem
from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.unit_table import measure_of

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LETTER = rf"(?:(?![{CJK}])[^\W\d_])"
_WORD = re.compile(
    rf"(?<!\\)(?<![A-Za-z])(?>{_LETTER}{{2,}})(?>(?:['\u2019-](?>{_LETTER}+))*)"
    rf"|(?<!\\)(?<![A-Za-z]){_LETTER}(?>(?:['\u2019](?>{_LETTER}+))?)|[{CJK}]++"
)
"""A word, a single letter, or a run of a script that has no spaces between words."""
_WORD_OR_NUMBER = re.compile(rf"{_WORD.pattern}|\d+(?:[.,]\d+)*")
_NUMBER_IN_WORD = re.compile(rf"(?i)\b({'|'.join(word for word, value in ONES.items() if value > 1)})-")
_LONGEST = 4000
_FUNCTIONS = {"sin", "cos", "tan", "log", "ln", "pi", "sqrt", "exp", "mod", "gcd", "lcm", "max", "min"}


_SPACED = [language for language in LANGUAGES if language.spaced]
_UNSPACED = [language for language in LANGUAGES if not language.spaced]
_FRAMES = frozenset(word for language in _SPACED for word in language.frames.casefold().split())
_SUBJECTS = frozenset(word for language in _SPACED for word in language.subjects.casefold().split())
_NAMES = frozenset(word for language in _SPACED for word in language.names.casefold().split())
_COLUMNS = ("answer", "verb", "states", "conclusion", "final", "both", "option")
"""Of a language's row, the columns whose words are frames too."""
_IN_COLUMNS = re.compile("|".join(getattr(row, column) for row in _SPACED for column in _COLUMNS), re.IGNORECASE)


def _words_in(*columns: str) -> set[str]:
    """The words of columns, which are patterns."""
    patterns = " ".join(getattr(language, column) for language in _SPACED for column in columns)
    return {*re.findall(r"[^\W\d_]{2,}", re.sub(r"\\.|\(\?[:!=<]+|[\[\]]", " ", patterns))}


_COMPARING = ("more", "less", "fewer", "than")
_SPEAKS_OF_VALUES = frozenset(
    stem(word.casefold())
    for word in (
        *_words_in("no", "bound", "either", "unsure", "about"),
        *ONES,
        *PARTS,
        *TIMES,
        *("hundred", "thousand", "million", "billion", "trillion", "double", "triple", "twice", "thrice", "negative"),
    )
    if word not in (*_COMPARING, "the", "longer")
)
"""Stems of words of number, bound and doubt: that a question has them does not make them harmless."""


def _unspaced(*columns: str) -> re.Pattern[str]:
    # Japanese before Chinese, whose words are shorter.
    rows = reversed(_UNSPACED)
    parts = [getattr(row, column) for row in rows for column in columns if getattr(row, column)]
    words = [word for language in _UNSPACED for word in language.frames.split()]
    return re.compile("|".join([*parts, *sorted(words, key=len, reverse=True)]))


_UNSPACED_FRAMES = _unspaced("answer", "verb", "states", "ending", "final", "conclusion", "option")
_UNSPACED_VALUES = re.compile(
    "|".join(
        filter(None, (getattr(row, name) for row in _UNSPACED for name in ("no", "bound", "bound_after", "unsure")))
    )
)
_UNSPACED_SUBJECTS = re.compile(
    "|".join(
        sorted((word for language in _UNSPACED for word in language.subjects.split()), key=len, reverse=True)
        or [r"(?!)"]
    )
)


def _tokens(text: str, longest: int = _LONGEST) -> list[str]:
    """The words and numbers of a text. "two-digit" is two words."""
    return _WORD_OR_NUMBER.findall(_NUMBER_IN_WORD.sub(r"\1 ", text[:longest]))


def unread(text: str, is_subject: bool = False) -> list[str]:
    """The words of a text that are no frames. A subject, in front of a verb, may also have words that name a value."""
    return [*_unread_in(text, is_subject)]


@text_cache(4096)
def _unread_in(text: str, is_subject: bool) -> list[str]:
    words = [word for token in _tokens(text) if token[0].isalpha() for word in _unread(token, False)]
    return [word for word in words if word.casefold() not in _NAMES] if is_subject else words


def unread_behind(text: str, figures: Container[str] = ()) -> list[str]:
    """The words of a text behind a value that are no frames, and its numbers but those `figures`.

    A number, and a word that says something about values, is known only with a neighbour: of "12 half full glasses"
    with "half full". It is given with both, as `"12 half|half full"`.
    """
    return _with_neighbours(text, figures, False)


def unread_beside(text: str) -> list[str]:
    """The words between a verb, with which the text begins, and a value that are no frames."""
    return _with_neighbours(text, (), True)


def _speaks(word: str) -> bool:
    """Whether a word is a number, or says something about values."""
    form = _form(word)
    return form[0].isdecimal() or form in _SPEAKS_OF_VALUES


def _with_neighbours(text: str, figures: Container[str], beside: bool) -> list[str]:
    tokens = _tokens(text)
    content = [place for place, token in enumerate(tokens) if _is_content(token)]
    found: list[str] = []
    for place, token in enumerate(tokens):
        if token in figures or (token == "more" and place + 1 < len(tokens) and tokens[place + 1] not in _COMPARING):
            continue  # "12 more apples": the apples must be known
        if token[0].isdecimal() and tokens[place + 1 : place + 2] == ["steps"]:
            continue  # "in 7 steps", of the working
        for word in [token] if token[0].isdecimal() else _unread(token, beside):
            found.append(_beside_neighbours(tokens, content, place) if _speaks(word) else word)
    return found


def _beside_neighbours(tokens: Sequence[str], content: Sequence[int], place: int) -> str:
    """A word with each of the words beside it, and beside it but for frames."""
    before = [place - 1, *(other for other in content if other < place)][-1:]
    before += [place - 1] if place else []
    after = [*(other for other in content if other > place)][:1] + ([place + 1] if place + 1 < len(tokens) else [])
    pairs = [(other, place) for other in before if other >= 0] + [(place, other) for other in after]
    return "|".join(f"{tokens[one]} {tokens[other]}" for one, other in dict.fromkeys(pairs)) or "|"


def _is_content(token: str) -> bool:
    return not _is_frame(token.casefold(), True)


def _unread(token: str, beside: bool) -> list[str]:
    if token[0] > "\u2e80":
        return _unread_of_run(token, beside)
    return [token] if len(token) > 1 and not _is_frame(token.casefold().replace("\u2019", "'"), beside) else []


@lru_cache(4096)
def _is_frame(word: str, beside: bool) -> bool:
    if not beside and len(word) > 3 and measure_of(word):
        return True
    if word in _FRAMES or word in _FUNCTIONS or (not beside and word in _SUBJECTS) or _IN_COLUMNS.fullmatch(word):
        return True
    if "'" in word or "-" in word:
        return all(len(part) < 2 or _is_frame(part, beside) for part in re.split(r"['-]", word)) and "n't" not in word
    return False


def _unread_of_run(run: str, beside: bool) -> list[str]:
    rest = _UNSPACED_FRAMES.sub(" ", run)
    return (rest if beside else _UNSPACED_SUBJECTS.sub(" ", rest)).split()


class Words:
    """The words that a question and a reference give to their answers."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def know_unit(self, words: Iterable[str], may_be_one: bool) -> bool:
        """Whether these words behind a number are known, or name things that are counted."""
        return all(is_counted(word, may_be_one) or self._knows(word) for word in words)

    def know(self, words: Iterable[str]) -> bool:
        """Whether each of these words, or a word with its neighbour, occurs in the question or the reference, in any
        form."""
        return all(map(self._knows, words))

    def _knows(self, word: str) -> bool:
        if "|" in word or " " in word:
            pairs = [tuple(map(_form, pair.split(" "))) for pair in word.split("|")]
            return any(pair in _known(text).pairs for pair in pairs for text in self._texts)
        if not word[:1].isalpha():
            return False
        if word[0] > "\u2e80":
            return len(word) > 1 and any(word in text for text in self._texts) and not _UNSPACED_VALUES.search(word)
        known = [*map(_known, self._texts)]
        if any(word.casefold() in text.words for text in known) or any(_form(word) in text.forms for text in known):
            return True
        letters = "".join(sorted(word))  # a name that is misspelled: Micheal
        return word[0].isupper() and any(letters in text.names for text in known)


_IRREGULAR: dict[str, str] = dict(
    re.findall(
        r"(\w+)=(\w+)",
        """
made=make paid=pay took=take gave=give sold=sell bought=buy went=go gone=go slept=sleep threw=throw spent=spend
ate=eat eaten=eat drank=drink ran=run got=get had=have has=have kept=keep lost=lose won=win found=find
grew=grow grown=grow wrote=write written=write drove=drive driven=drive rode=ride swam=swim flew=fly
built=build caught=catch taught=teach brought=bring thought=think told=tell sent=send lent=lend held=hold
stood=stand sat=sit met=meet led=lead fed=feed shot=shoot wore=wear broke=break broken=break chose=choose
stole=steal rose=rise fell=fall began=begin sang=sing drew=draw knew=know saw=see seen=see came=come
became=become did=do does=do done=do said=say heard=hear felt=feel left=leave laid=lay dug=dig hung=hang
people=person men=man women=woman children=child feet=foot mice=mouse knives=knife shelves=shelf loaves=loaf
leaves=leave halves=half wolves=wolf bore=bear given=give taken=take worn=wear thrown=throw known=know
""",
    )
)
"""Forms of words that have another stem than the word."""


@lru_cache(8192)
def _form(word: str) -> str:
    word = word.casefold().removesuffix("'s").removesuffix("\u2019s")
    return str(ONES[word]) if ONES.get(word, 0) > 1 else stem(_IRREGULAR.get(word, word))


_DENIES = re.compile(r"\b(?:cannot|no)\b|n't\b")


class _Known:
    """The words of a text, of which each table is made when it is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text, len(text))
        self.words = frozenset(token.casefold() for token in self._tokens)

    @cached_property
    def forms(self) -> frozenset[str]:
        forms = {*map(_form, self._tokens)}
        forms |= {_form(part) for token in self._tokens if "-" in token for part in token.split("-")}
        if not forms.isdisjoint((*_COMPARING, "compar", "differenc")):
            forms.update(_COMPARING)
        if _DENIES.search(self._text):
            forms.add("not")
        return frozenset(forms)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, ...]]:
        """Words beside each other, or with one word between them, in both orders."""
        forms = [*map(_form, self._tokens)]
        content = [form for form, token in zip(forms, self._tokens, strict=True) if _is_content(token)]
        near = [pair for row in (forms, content) for pair in (*pairwise(row), *zip(row, row[2:], strict=False))]
        return frozenset([*near, *(pair[::-1] for pair in near)])

    @cached_property
    def names(self) -> frozenset[str]:
        """The letters of words that begin with a capital, in order."""
        return frozenset("".join(sorted(token)) for token in self._tokens if token[0].isupper())


@text_cache(4096)
def _known(text: str) -> _Known:
    return _Known(text)


def unread_outside(words: Sequence[str], earlier: str) -> list[str]:
    """Those of some words that an earlier text has not. Words that say something about values it gives to none."""
    if not words or not earlier:
        return [*words]
    before = " " + _NO_LETTERS.sub(" ", earlier[-_WORKING:].casefold())
    return [
        word
        for word in words
        if "|" in word or (form := _form(word)) in _SPEAKS_OF_VALUES or f" {form.removesuffix('i')}" not in before
    ]


_NO_LETTERS = re.compile(r"[\W\d_]+")
_WORKING = 3000
"""Characters of a working that are read for its words."""


def topics(text: str) -> str:
    """The words of a text that say nothing about values, such as the names in a program."""
    words = dict.fromkeys(_WORD.findall(text[-_LONGEST:].replace("_", " ")))
    return " ".join(word for word in words if _form(word) not in _SPEAKS_OF_VALUES)
