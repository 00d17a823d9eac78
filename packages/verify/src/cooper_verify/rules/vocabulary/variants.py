"""Other words that may name the same: nobody can tell without knowing the things themselves."""

import re
from collections.abc import Sequence

_TRUTH = [{"yes", "no"}, {"true", "false"}, {"correct", "incorrect"}, {"right", "wrong"}]
_TRUTH += [{"yeah", "nope"}, {"yep", "nah"}, {"oui", "non"}, {"ja", "nein"}, {"si", "no"}, {"sim", "nao"}]
_TRUTH += [{"vrai", "faux"}, {"wahr", "falsch"}, {"richtig", "falsch"}, {"verdadero", "falso"}, {"vero", "falso"}]
"""Pairs of opposites. `yes` and `true` often say the same, and a question may be put the other way round."""
_WEEKDAYS = [
    {*names.split()}
    for names in (
        "monday lundi montag lunes lunedi",
        "tuesday mardi dienstag martes martedi",
        "wednesday mercredi mittwoch miercoles mercoledi",
        "thursday jeudi donnerstag jueves giovedi",
        "friday vendredi freitag viernes venerdi",
        "saturday samedi samstag sabado sabato",
        "sunday dimanche sonntag domingo domenica",
    )
]
_TRUTH_LETTERS = {"yes": "y", "no": "n", "true": "t", "false": "f"}
_VOWELS = {*"aeiouy"}
_SMALL_WORDS = {"of", "the", "and", "for", "in"}
_SHORTEST, _SHORTEST_SWAPPED = 4, 5
"""Letters of a word that may be misspelled: of shorter ones most neighbours are other words."""
_LEFT_OUT, _KEPT_SHARE = 3, 0.65
"""Letters that an abbreviation leaves out, at least, and the most that it keeps of a word: "Jim" is not "Jimmy"."""
_FEW_LETTERS = 3
"""Letters of an abbreviation that may leave out any others ("NE"). A longer one has consonants alone."""
_LONGEST_INITIALS = 12
_COMMON, _COMMON_SHARE = 6, 0.75
"""Letters with which two forms of a word begin, at least, and their share of the shorter ("triangular")."""
_ROMAN = re.compile(r"(?=\w)x{0,3}(?:ix|iv|v?i{0,3})")
_ROMAN_VALUES = {"x": 10, "v": 5, "i": 1}
_CLOCK = re.compile(r"\d:\d\d")
_SPOKEN_CLOCK = re.compile(r"\b(?:half|quarter|past|to|o'clock)\b")
_LETTER = re.compile(r"[^\W_]")
_NOT_KNOWN = re.compile(r"\b(?:cannot|can(?: not|'t)|insufficient|not enough|undetermined|unknown|indetermina\w+)\b")
"""Of a reference: nobody can tell, which has many names."""
_A_WORD = re.compile(r"[^\W\d]{4,}(?: [^\W\d]+)*")
_IN_BASE = re.compile(r"0x[\da-f]+|[\da-f]+_ ?\d+")
_WITH_FIGURES = re.compile(r"[^\W\d]+\d\w*")


def may_name_the_same(text: str, other: str) -> bool:
    """Whether two different `plain_text`s may mean one thing: an abbreviation ("Mon", "US", "N" for "north"), another
    spelling ("grey", "colour", "Tokio"), other words of yes and no, more or fewer words ("Newton"), letters apart
    ("C, B, A" for "CBA"), two letters in another order (the segment BA is AB), or figures in another notation
    ("World War 2", "half past twelve"). Signs may stand for words."""
    if not _LETTER.search(text) or not _LETTER.search(other):
        return bool(_LETTER.search(text + other))
    if re.search(r"\d", text + other):
        return _have_other_figures(text, other)
    words, others = (re.findall(r"[^\W_]+", side) for side in (text, other))
    if (text.isascii() != other.isascii() and not {*words} & {*others}) or _NOT_KNOWN.search(text):
        return True  # a name in another language; "not enough information"
    return (
        [*"".join(words)] == others
        or [*"".join(others)] == words
        or _are_other_truths(text, other)
        or any(_TRUTH_LETTERS.get(one) == two for one, two in ((text, other), (other, text)))
        or any({text, other} <= names for names in _WEEKDAYS)
        or _are_one_figure(text, other)
        or _are_turned("".join(words), "".join(others))
        or all(side[0].startswith(("infinit", "diverg")) for side in (words, others))
        or _are_initials(words, others)
        or _are_initials(others, words)
        or (len(words) == len(others) and all(map(_are_forms_of_a_word, words, others)))
        or ("," not in text + other and ({*words} < {*others} or {*others} < {*words}))
        or _share_a_word(words, others)
    )


def _share_a_word(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a word of both stands elsewhere in each: "world war ii" and "second world war"."""
    shared = [word for word in words if len(word) >= _SHORTEST and word in others]
    return any(words.index(word) != others.index(word) for word in shared)


def _have_other_figures(text: str, other: str) -> bool:
    """Whether figures stand for words or other figures: times in words, formulas of chemistry, another base."""
    sides = (text, other), (other, text)
    spoken = any(_CLOCK.search(one) and _SPOKEN_CLOCK.search(two) for one, two in sides)
    named = any(_WITH_FIGURES.fullmatch(one.replace("_", "")) and _A_WORD.fullmatch(two) for one, two in sides)
    return spoken or named or any(map(_IN_BASE.fullmatch, (text, other))) or _are_arranged_otherwise(text, other)


def _are_arranged_otherwise(text: str, other: str) -> bool:
    """Whether the same figures stand in other places or beside other signs: "john: 3" and "john 3", "2:30" and "2 hours
    30 minutes", "9:00" and "9 o'clock", "world war 2" and "world war ii". In the same places, another word is another
    text; so is another order, date or half of the day. Numbers and words with figures (H2O, HO2) are none of these."""
    text, other = (re.sub(r"[^\W_]+", _in_figures, side.replace("_", "")) for side in (text, other))
    if all(map(_SIZE.fullmatch, (text, other))):
        return sorted(text.split("x")) == sorted(other.split("x"))
    if (text.isalnum() and other.isalnum() and text != other) or text.isdecimal() or other.isdecimal():
        return False
    figures = [[*filter(None, map(int, re.findall(r"\d{1,9}", side)))] for side in (text, other)]
    if not figures[0] or sorted(figures[0]) != sorted(figures[1]) or all(map(_WHOLE_DATE.fullmatch, (text, other))):
        return False
    shapes = [re.sub(r"[^\W\d_]+", "w", re.sub(r"\d+", "0", side)) for side in (text, other)]
    words = [re.findall(r"[^\W\d_]+", side) for side in (text, other)]
    return shapes[0] != shapes[1] or (figures[0] == figures[1] and all(map(_are_forms_of_a_word, *words)))


_SIZE = re.compile(r"\d+(?:x\d+)+")
_WHOLE_DATE = re.compile(r"\d*-\d\d-(?:\d\d)?")


def _in_figures(word: re.Match[str]) -> str:
    """A Roman numeral in figures."""
    if not _ROMAN.fullmatch(word.group()):
        return word.group()
    values = [_ROMAN_VALUES[letter] for letter in word.group()]
    return str(sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True)))


_FIGURE = re.compile(r"\\(?:(angle)|triangle) ?([a-z]{3})")


def _are_one_figure(text: str, other: str) -> bool:
    """Whether they are an angle from either side, or a triangle from any corner."""
    one, two = _FIGURE.fullmatch(text), _FIGURE.fullmatch(other)
    if one is None or two is None or one[1] != two[1]:
        return False
    return one[2] == two[2][::-1] if one[1] else sorted(one[2]) == sorted(two[2])


def _are_turned(letters: str, others: str) -> bool:
    """Whether they are two letters in another order, and not "no" and "on"."""
    is_word = any(letters in pair or others in pair for pair in _TRUTH)
    return len(letters) == 2 and letters == others[::-1] and not is_word


def _are_other_truths(text: str, other: str) -> bool:
    """Whether they are of two different pairs of `_TRUTH`."""
    of = [[pair for pair in _TRUTH if side in pair] for side in (text, other)]
    return bool(of[0] and of[1]) and not any(pair in of[1] for pair in of[0])


def _are_initials(short: Sequence[str], words: Sequence[str]) -> bool:
    """Whether one word is made of the beginnings of all others in turn: "wwii". Small words may be left out."""
    full = [word for word in words if word not in _SMALL_WORDS]
    if len(short) != 1 or not 1 < len(full) <= len(short[0]) <= _LONGEST_INITIALS:
        return False
    return any(_begin(short[0], some) for some in (words, full) if len(some) > 1)


def _begin(short: str, words: Sequence[str]) -> bool:
    if not words:
        return not short
    word, rest = words[0], words[1:]
    return any(_begin(short[size:], rest) for size in range(1, len(short) + 1) if word.startswith(short[:size]))


def _are_forms_of_a_word(word: str, other: str) -> bool:
    if word == other or (_ROMAN.fullmatch(word) and _ROMAN.fullmatch(other)):
        return word == other
    short, long = sorted((word, other), key=len)
    return _shortens(short, long) or _is_respelled(word, other)


def _shortens(short: str, word: str) -> bool:
    """Whether the letters begin a word, or are a few of it from its first on: "kg", "Mt", "NE"."""
    rest = iter(word)
    is_inside = short[0] == word[0] and all(letter in rest for letter in short)
    is_skeleton = is_inside and (len(short) <= _FEW_LETTERS or not _VOWELS & {*short})
    is_short = len(word) - len(short) >= _LEFT_OUT and len(short) <= _KEPT_SHARE * len(word)
    return is_short and (word.startswith(short) or is_skeleton)


def _is_respelled(word: str, other: str) -> bool:
    """Whether a word has one letter more ("colour"), another vowel ("grey") or two letters swapped ("centre") behind
    its first, or another ending behind most of it. Another consonant makes another word ("Mark" and "Mary")."""
    short, long = sorted((word, other), key=len)
    if len(short) < _SHORTEST or word[0] != other[0] or not (word + other).isalpha():
        return False
    common = next((at for at, pair in enumerate(zip(word, other, strict=False)) if pair[0] != pair[1]), len(short))
    if common >= max(_COMMON, _COMMON_SHARE * len(short)):
        return True
    if len(word) == len(other):
        rest = common + 1
        swapped = word[common : rest + 1] == other[common : rest + 1][::-1] and word[rest + 1 :] == other[rest + 1 :]
        swapped = swapped and len(word) >= _SHORTEST_SWAPPED
        return swapped or (word[rest:] == other[rest:] and {word[common], other[common]} <= _VOWELS)
    return len(long) == len(short) + 1 and long[common + 1 :] == short[common:]
