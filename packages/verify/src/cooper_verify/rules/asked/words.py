r"""Which words around a value are read: frames ("in total", "exactly"), and words of the question or the reference.

A word that is neither may change the value, in any language: "12 doubled", "close to 12", "12. Strike that." So an
answer beside one is `unparsed`. Nothing here lists words that change a value. A language's row has its frames
(`Language.frames`); what a word of the question means is known from the question, unless it is a word of number, bound
or doubt, which say something about a value wherever they stand.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from cooper_verify.rules.asked.demands import DEMAND, figure_said, is_met
from cooper_verify.rules.asked.everyday_words import is_everyday, is_given_name, is_quality, is_thing, is_time, is_verb
from cooper_verify.rules.asked.word_forms import form_of
from cooper_verify.rules.text.plain_text import stem
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.counted_nouns import is_counted, plural
from cooper_verify.rules.vocabulary.languages import LANGUAGES
from cooper_verify.rules.vocabulary.number_words import ONES, PARTS, TIMES
from cooper_verify.rules.vocabulary.unit_table import measure_of
from cooper_verify.rules.vocabulary.unspaced_words import CJK, may_be_known, unread_of_run

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


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SPACED = [language for language in LANGUAGES if language.spaced]
_FRAMES = frozenset(word for language in _SPACED for word in language.frames.casefold().split())
_SUBJECTS = frozenset(word for language in _SPACED for word in language.subjects.casefold().split())
_NAMES = frozenset(form for row in _SPACED for word in row.names.casefold().split() for form in (word, plural(word)))
REASONING = frozenset(word for language in _SPACED for word in language.reasoning.split())
_COLUMNS = ("answer", "verb", "states", "conclusion", "final", "both", "option")
"""Of a language's row, the columns whose words are frames too."""
_IN_COLUMNS = re.compile("|".join(getattr(row, column) for row in _SPACED for column in _COLUMNS), re.IGNORECASE)


def _words_in(*columns: str) -> set[str]:
    """The words of columns, which are patterns."""
    patterns = " ".join(getattr(language, column) for language in _SPACED for column in columns)
    return {*re.findall(r"[^\W\d_]{2,}", re.sub(r"\\.|\(\?[:!=<]+|[\[\]]", " ", patterns))}


COMPARING = ("more", "less", "fewer", "than")
_DENIALS = frozenset(stem(word.casefold()) for word in _words_in("no"))
_RELATIONS = (*COMPARING, "before", "after", "since", "until")
"""Between a verb and a value they make it another one."""
_SPEAKS_OF_VALUES = frozenset(
    stem(word.casefold())
    for word in (
        *_words_in("no", "bound", "either", "unsure", "about"),
        *ONES,
        *PARTS,
        *TIMES,
        *("double", "triple", "twice", "thrice", "negative"),
    )
    if word not in (*COMPARING, "the", "longer", "can")
)
"""Stems of words of number, bound and doubt: that a question has them does not make them harmless."""


def _tokens(text: str, longest: int = _LONGEST) -> list[str]:
    """The words and numbers of a text. "two-digit" is two words."""
    text = text[:longest]
    return _WORD_OR_NUMBER.findall(_NUMBER_IN_WORD.sub(r"\1 ", text) if "-" in text else text)


def unread(text: str, is_subject: bool = False) -> list[str]:
    """The words of a text that are no frames. A subject, in front of a verb, may also have words that name a value."""
    return [*_unread_in(text, is_subject)]


@text_cache(4096)
def _unread_in(text: str, is_subject: bool) -> list[str]:
    tokens = _tokens(text)
    if is_subject:
        tokens = _without_counts(tokens, _COUNTS.search(text) is not None)
    words = [word for token in tokens if token[0].isalpha() for word in _unread(token, False)]
    return [word for word in words if not (_is_in_subject(word) if is_subject else is_given_name(word))]


_COUNTS = re.compile(
    r"\A[\s,.;:*$]*+(?:(?:so|thus|therefore|hence|then|finally|in total)\b,?\s*)?(?:the\s)?(?:total\s)?"
    r"(?:numbers? of|probability (?:of|that)|ways to|sum of|product of|first [a-z]+ (?:terms|numbers|primes))\b",
    re.IGNORECASE,
)
"""A subject that says which things it counts, or of which numbers it is made."""


def counts_things(subject: str) -> bool:
    """Whether a subject says how many things of a kind there are: its number words belong to these."""
    return _COUNTS.search(subject) is not None


_WHICH = _set(
    "not no even odd divisible greater less more fewer than least most exceeding smaller larger exactly if or while"
)


def _without_counts(tokens: Sequence[str], counts: bool) -> list[str]:
    """The words of a subject without numbers of things ("five notebooks", "the third day"). One that counts may also
    say which: "the number of integers that are not divisible by 3"."""
    kept: list[str] = []
    for place, token in enumerate(tokens):
        if counts and (token.casefold() in _WHICH or _is_number_word(token)):
            continue
        word, after = token.casefold(), tokens[place + 1 : place + 4]
        named = [other for other in after[:2] if not _is_number_word(other)][:1]
        is_rank = (word in _RANKS or ONES.get(word, 0) > 1) and bool(named) and named[0].casefold() in _NAMES
        is_part = word in PARTS and after[:1] in (["of"], ["the"])  # "half the sum"
        if is_part or not (is_rank or (_is_number_word(token) and _names_things(after))):
            kept.append(token)
    return kept


def _names_things(tokens: Sequence[str]) -> bool:
    """Whether words begin with what is counted: "notebooks", "tallest buildings", "of the twins", "term"."""
    while tokens and tokens[0].casefold() in _BEFORE_THINGS:
        tokens = tokens[1:]
    return bool(tokens) and (is_everyday(tokens[0].casefold()) or is_given_name(tokens[0]) or is_time(tokens[0]))


_BEFORE_THINGS = _set("of the his her their tallest oldest youngest fastest cheapest largest smallest longest shortest")


@lru_cache(4096)
def _is_number_word(token: str) -> bool:
    word = token.casefold()
    return ONES.get(word, 0) > 0 or word in PARTS or word in _ORDINALS


_ORDINALS = _set("first second seventh ninth last next other")
_RANKS = _ORDINALS - {"other"} | {"third", "fourth", "fifth", "sixth", "eighth", "tenth"}
"""Before a name of values: "the sixth term"."""


def _is_in_subject(word: str) -> bool:
    """Whether a word changes no value in front of a verb: it names one, or is an everyday word."""
    parts = re.split(r"['\u2019-]", word.removesuffix("'s").removesuffix("\u2019s"))
    return word.casefold() in _NAMES or all(is_everyday(part) or is_everyday(part.casefold()) for part in parts)


_MAIN_VERB = re.compile(
    r"(?<![\w'-])(?:could\s)?"
    r"(?:(?P<phrase>end(?:s|ed)? up with|adds? up to)|(?P<verb>[a-z]{2,}+)(?:\s(?:up|back|away))?)"
    r"(?>(?:\s(?:for|exactly|just|only|precisely|a total of|the|an?|additional))*)[\s($\\{*]*+\Z"
)
_MAIN_VERB_CHARS = 60
_NAMES_ANSWER = re.compile(r"(?i)\b(?:answers?|results?|solutions?|numbers?|values?|(?<!in )totals?|sums?|sets?)\b")


def main_verb(clause: str) -> int | None:
    """Where the everyday verb begins whose object is the value behind a clause: "Lucy picked". None if there is none.

    An answer does nothing of that kind: what "the answer leaves" or "the set holds" is another value.
    """
    verb = _MAIN_VERB.search(clause, max(0, len(clause) - _MAIN_VERB_CHARS))
    if verb is None or _NAMES_ANSWER.search(clause, 0, verb.start()):
        return None
    if not (verb["phrase"] or is_verb(verb["verb"])):
        return None
    if not verb["phrase"] and not verb["verb"].endswith(("ed", "ing")) and _BEFORE_NOUN.search(clause, 0, verb.start()):
        return None  # "in row 12"
    return verb.start()


_BEFORE_NOUN = re.compile(r"(?i)\b(?:in|on|at|from|with|by|of|the|an?|is|are|was|were|be|my|his|her|their|its)\s+\Z")
_AGENT = re.compile(r"(?i)\b(the|an?|his|her|their|each|every)\s+[a-z]{2,}(?![\w-])")


def unread_agent(text: str) -> list[str]:
    """The words in front of an everyday verb that are no frames. Whoever does it may have any name behind an article:
    "the mechanic earned"."""
    return unread(_AGENT.sub(r"\1", text), is_subject=True)


_SENTENCE_END = re.compile(r"[.!?;:](?=\s|\Z)|\n|[\u3002\uff01\uff1f]")


def unread_behind(text: str, figures: Container[str] = (), has_unit: bool = False) -> list[str]:
    """The words of a text behind a value that are no frames, and its numbers but those `figures`. To the end of the
    value's own sentence, phrases of everyday words are read: "in the garden", "that she bought".

    A number, and a word that says something about values, is known only with a neighbour: of "12 half full glasses"
    with "half full". It is given with both, as `"12 half|half full"`.
    """
    end = _SENTENCE_END.search(text)
    first = text[: end.start()] if end else text
    if added := _AND_NOUN.fullmatch(first):
        return [added[1]]
    tokens = _tokens(first)
    phrases = _in_phrases(tokens, has_unit)
    return [*_with_neighbours(text, figures, False, phrases), *figure_said(tokens, figures, phrases, has_unit)]


_AND_NOUN = re.compile(r"[\s$)}]*and\s+([a-z]+)\s*")
"""What is added to a value: "12 and change"."""
_OPENS_PHRASE = _set(
    "in on at from for to with into onto per each every during after within through across over by of and"
)
_INSIDE_PHRASE = _set("the a an his her their its my our your this that these those all both one's")
_BEFORE_VERB = _set("to he she they we it i you who that was were is are has have had")


def _in_phrases(tokens: Sequence[str], has_unit: bool) -> frozenset[int]:
    """The places of everyday words in phrases: behind a preposition, and verbs behind their subject. Times have numbers
    there ("over the next 30 days"), and behind a value with a unit other things have too ("$12 for 5 apples")."""
    is_comparison = len(tokens) > 1 and tokens[0] in COMPARING and is_everyday(tokens[1])
    read = {1} if is_comparison else set[int]()
    preposition, opened, may_be_verb = "", 0, False
    for place, token in enumerate(tokens):
        word = token.casefold()
        is_word = is_everyday(token) or is_everyday(word)
        if place in read:
            continue
        if is_comparison and (word == "than" or (preposition and word in ("other", "others"))):
            read.add(place)  # "12 more apples than pears"
            preposition = "than"
        elif preposition and (span := _counted_span(tokens[place : place + 4], preposition, has_unit)):
            read.update((opened, *range(place, place + span)))
            preposition = "in"
        elif not has_unit and preposition and place == opened + 1 and (is_thing(word) or is_time(word)):
            preposition = ""  # "12 on paper", "12 at times": an idiom, unlike "12 in the garden"
        elif is_word and not _lacks_noun(tokens, place) and (preposition or (may_be_verb and is_verb(word))):
            read.add(place)
            if is_verb(word) and preposition in ("", "to"):
                preposition = "in"  # "to dig 30 holes"
        elif word in _OPENS_PHRASE and not (word == "and" and preposition):
            preposition, opened = word, place
        elif word not in _INSIDE_PHRASE and word != "and":
            preposition = ""
        may_be_verb = word in _BEFORE_VERB or (is_word and token[0].isupper())
    return frozenset(read)


def _lacks_noun(tokens: Sequence[str], place: int) -> bool:
    """Whether a word is an adjective that nothing follows: "in the red"."""
    return is_quality(tokens[place]) and not any(map(is_everyday, tokens[place + 1 : place + 2]))


_POINTS = _set("now then today here there")
"""Frames that say when or where the value holds behind a preposition."""
_COUNTING = _set("in of for on from after within during across at than")
"""Prepositions before so many things. Others may say another value: "12 feet by 5 feet", "12 hours and 5 minutes"."""


def _counted_span(tokens: Sequence[str], preposition: str, has_unit: bool) -> int:
    """How many words are a number of things with what is counted: "next three days", "5 small boxes"; 0 if none."""
    number = next((place for place, token in enumerate(tokens) if token.isdecimal() or _is_number_word(token)), None)
    if number is None or not all(word in ("next", "first", "last", "past") for word in tokens[:number]):
        return 0
    for place in range(number + 1, len(tokens)):
        if is_time(tokens[place]):
            return place + 1 if preposition not in ("and", "by", "with", "to") else 0
        is_thing = is_counted(tokens[place], may_be_one=True) or measure_of(tokens[place])
        if has_unit and preposition in _COUNTING and is_thing:
            return place + 1
        if not is_everyday(tokens[place]) and not _is_number_word(tokens[place]):
            return 0
    return 0


def unread_beside(text: str) -> list[str]:
    """The words between a verb, with which the text begins, and a value that are no frames."""
    return _with_neighbours(text, (), True, frozenset())


def may_name(word: str) -> bool:
    """Whether a word may stand in front of a symbol whose value is given: "side a", unlike "take n"."""
    return not is_verb(word) and (word.casefold() in _NAMES or not unread(word))


def speaks(word: str) -> bool:
    """Whether a word is a number, or says something about values."""
    form = form_of(word)
    return form[0].isdecimal() or form in _SPEAKS_OF_VALUES


def _with_neighbours(text: str, figures: Container[str], beside: bool, read: Container[int]) -> list[str]:
    tokens = _tokens(text)
    content = [place for place, token in enumerate(tokens) if _is_content(token)]
    found: list[str] = []
    for place, token in enumerate(tokens):
        if token in figures or place in read or (beside and is_given_name(token)):
            continue
        if place and token in _POINTS and tokens[place - 1] in _OPENS_PHRASE - {"from"}:
            found.append(token)  # "12 for now"; "in 12 years from now"
            continue
        if token == "more" and place + 1 < len(tokens) and tokens[place + 1] not in COMPARING:
            continue  # "12 more apples": the apples must be known
        if token[0].isdecimal() and tokens[place + 1 : place + 2] == ["steps"]:
            continue  # "in 7 steps", of the working
        for word in [token] if token[0].isdecimal() else _unread(token, beside):
            found.append(_in_company(tokens, content, place, word, beside))
    return found


NEVER_KNOWN = "|"
"""In place of a word that no question makes harmless."""


def _in_company(tokens: Sequence[str], content: Sequence[int], place: int, word: str, beside: bool) -> str:
    """A word, with its neighbours if it speaks of values. Right in front of the value ("half of 12", "after 12"), and
    as a number that is joined to it ("12 and 3 dozen"), it says another value whatever the question has."""
    is_relation = word.casefold() in _RELATIONS
    if not (speaks(word) or is_relation):
        return word
    if beside and not word[0].isdecimal() and all(_says_nothing(tokens[other]) for other in content if other > place):
        return NEVER_KNOWN if is_relation else f"{_ASKED} {word}{NEVER_KNOWN}"
    if is_relation:
        return word if beside else f"{_ASKED} {word}"
    is_second = place == 1 and tokens[0].casefold() not in _COUNTING
    if not beside and is_second and (word[0].isdecimal() or _is_number_word(word)):
        return NEVER_KNOWN
    return _beside_neighbours(tokens, content, place)


def _says_nothing(token: str) -> bool:
    """Whether a word names nothing that could be counted or compared instead of the value."""
    return speaks(token) or token.casefold() in _RELATIONS or token.casefold() in _SUBJECTS


_ASKED = "?"
"""Stands before a word for which a question asks, as its neighbour: "how many more", "at least how many"."""


def _beside_neighbours(tokens: Sequence[str], content: Sequence[int], place: int) -> str:
    """A word with each of the words beside it, and beside it but for frames."""
    start, end = bisect_left(content, place), bisect_right(content, place)
    before = [content[start - 1] if start else place - 1]
    before += [place - 1] if place else []
    if form_of(tokens[place]) in _DENIALS:
        before = []  # "are not the answer" is not "are not left"
    after = [*content[end : end + 1]] + ([place + 1] if place + 1 < len(tokens) else [])
    pairs = [(other, place) for other in before if other >= 0] + [(place, other) for other in after]
    return "|".join(f"{tokens[one]} {tokens[other]}" for one, other in dict.fromkeys(pairs)) or "|"


def _is_content(token: str) -> bool:
    return not _is_frame(token.casefold(), True)


def _unread(token: str, beside: bool) -> list[str]:
    if token[0] > "\u2e80":
        return unread_of_run(token, beside)
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


class Words:
    """The words that a question and a reference give to their answers."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def know_unit(self, words: Sequence[str], may_be_one: bool, is_measured: bool) -> bool:
        """Whether these words behind a number are known, or name things that are counted: "red apples". What
        `is_measured` is not counted: "cups of flour"."""
        counted = [is_counted(word, may_be_one) for word in words]
        is_thing = is_measured or any(counted)
        return all(
            is_named or self._knows_in_unit(word, place == 0) or (is_thing and is_everyday(word.casefold()))
            for place, (word, is_named) in enumerate(zip(words, counted, strict=True))
        )

    def _knows_in_unit(self, word: str, is_first: bool) -> bool:
        """A word that speaks of values makes no unit because the question has it: "12 twice", "12 more"."""
        if word.casefold() in COMPARING:
            return self._knows(f"{_ASKED} {word}")
        if _RUSSIAN.fullmatch(word):
            return any(word.casefold()[: max(4, len(word) - 3)] in text.casefold() for text in self._texts)
        return Words(*self._texts[1:])._knows(word) if is_first and speaks(word) else self._knows(word)

    @property
    def question(self) -> str:
        """The question; empty if it is unknown."""
        return self._texts[0] if self._texts else ""

    def know(self, words: Iterable[str]) -> bool:
        """Whether each of these words, or a word with its neighbour, occurs in the question or the reference, in any
        form."""
        return all(map(self._knows, words))

    def _knows(self, word: str) -> bool:
        if word.startswith(DEMAND):
            return is_met(word, *(*self._texts, "", "")[:2])
        if "|" in word or " " in word:
            pairs = [tuple(map(form_of, pair.split(" "))) for pair in word.split("|")]
            return any(pair in _known(text).pairs for pair in pairs for text in self._texts)
        if not word[:1].isalpha():
            return False
        if word[0] > "\u2e80":
            return may_be_known(word) and any(word in text for text in self._texts)
        known = [*map(_known, self._texts)]
        if any(word.casefold() in text.words for text in known) or any(form_of(word) in text.forms for text in known):
            return True
        letters = "".join(sorted(word))  # a name that is misspelled: Micheal
        return word[0].isupper() and any(letters in text.names for text in known)


_RUSSIAN = re.compile(r"[\u0430-\u044f]{5,}")
"""A noun that may be declined."""
_ASKS_TO_COMPARE = re.compile(
    r"(?i)\b(?:how|what)\b[^.?!]{0,80}\b(?:more|less|fewer|[a-z]{3,}er than)\b|\bhow (?:many|much) [a-z]{3,}er\b"
    r"|\bcompar|\bdifferenc"
)
_ASKED_ABOUT = re.compile(r"(?i)\b([a-z]+) how (?:many|much)\b")
_DENIES = re.compile(r"\b(?:cannot|no)\b|n't\b")


class _Known:
    """The words of a text, of which each table is made when it is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text, len(text))
        self.words = frozenset(token.casefold() for token in self._tokens)

    @cached_property
    def forms(self) -> frozenset[str]:
        forms = {*map(form_of, self._tokens)}
        forms |= {form_of(part) for token in self._tokens if "-" in token for part in token.split("-")}
        if not forms.isdisjoint((*COMPARING, "compar", "differenc")):
            forms.update(COMPARING)
        if _DENIES.search(self._text):
            forms.add("not")
        return frozenset(forms)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, ...]]:
        """Words beside each other, or with one word between them, in both orders."""
        forms = [*map(form_of, self._tokens)]
        content = [form for form, token in zip(forms, self._tokens, strict=True) if _is_content(token)]
        near = [pair for row in (forms, content) for pair in (*pairwise(row), *zip(row, row[2:], strict=False))]
        asked = [*_ASKED_ABOUT.findall(self._text), *(COMPARING if _ASKS_TO_COMPARE.search(self._text) else ())]
        return frozenset([*near, *(pair[::-1] for pair in near), *((form_of(_ASKED), form_of(word)) for word in asked)])

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
        if "|" in word or (form := form_of(word)) in _SPEAKS_OF_VALUES or f" {form.removesuffix('i')}" not in before
    ]


_NO_LETTERS = re.compile(r"[\W\d_]+")
_WORKING = 3000
"""Characters of a working that are read for its words."""
