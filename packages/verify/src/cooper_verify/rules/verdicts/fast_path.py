"""The verdict of the rule `maths`. Computer algebra is asked only where nothing else can tell; it is not imported here.

The kind of a reference decides how answers are compared with it. In mathematics `ab` is `ba`, so a reference is that
only if it is all numbers, signs, LaTeX and single letters, or nothing but x, y and z. Tokyo, 2024-01-05, 9 pm, H2O and
A+ are text.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn

from cooper_base.data.thoughts import without_thoughts
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.extraction import TAIL_CHARS, FinalAnswer, clean, extract_answer, reference_text
from cooper_verify.rules.asked.demands import DEMAND, demands, is_of_name
from cooper_verify.rules.asked.names import is_only_asked, without_rank
from cooper_verify.rules.asked.notation import with_factor, with_point, without_asked_rate, without_asked_side
from cooper_verify.rules.asked.question import ASIDE, asked_part, copies_question, repeats_question
from cooper_verify.rules.asked.words import CJK, Words, speaks
from cooper_verify.rules.quantities.number import any_number, plain_number
from cooper_verify.rules.quantities.units import measures, unit_of, with_colons, with_kelvins, with_molars
from cooper_verify.rules.text.notation import one_notation
from cooper_verify.rules.text.plain_text import MONTH, bare_text, plain_text
from cooper_verify.rules.text.reply import code_of, reply_of
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.values.chemistry import are_same_formula, chemical
from cooper_verify.rules.values.collection import read_division
from cooper_verify.rules.values.expression import Symbolic
from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.values.parts import read_parts
from cooper_verify.rules.values.reading import (
    answer_readings,
    doubtful_readings,
    is_piecewise,
    ratio_readings,
    readings,
)
from cooper_verify.rules.values.relation import Named
from cooper_verify.rules.values.scalar import Scalar, read_scalar
from cooper_verify.rules.values.spelling import spelling
from cooper_verify.rules.values.table import Comparison
from cooper_verify.rules.values.tokens import DIFFERENTIAL, FUNCTION_NAMES
from cooper_verify.rules.values.tree import names
from cooper_verify.rules.verdicts.options import (
    OPTION_LETTER,
    Choice,
    choice_verdict,
    options_in,
    reference_choice,
    written_options,
)
from cooper_verify.rules.verdicts.texts import exact_verdict
from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of
from cooper_verify.rules.vocabulary.number_words import NUMBER_OF_WORD, changes_number, with_scales, without_asked_scale

# Dates, ranges, sizes and other figures that are not numbers to calculate with.
_SPELLED = re.compile(r"[A-Za-z-]+(?: [A-Za-z-]+){1,6}")
_FIGURES = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d+/\d+/\d+"  # 2024-01-05, 1/5/2024
    r"|\d+(?:\.\d+)?\s?-\s?\d+(?:\.\d+)?(?:\s?-\s?\d+)*"  # 10-12, 555-1234
    r"|\+\d+(?:[ -]\(?\d+\)?)+|#.*"  # +1 555 1234, #5
    r"|\d+(?:\.\d+){2,}"  # 1.2.3
    r"|\d+\s*(?:x|\\times|\u00d7)\s*\d+"  # 3x5 is a size
    r"|\d+'\s?(?:\d+\"?)?"  # 5'10"
)
# A+, N/A, p.m, (iv), A or B
_SIGNS = re.compile(
    rf"[a-z]+\s?[+-]|n/a|[a-z](?:\.\s?[a-z])+\.?|\(?[ivx]{{2,}}\)?|(?:{OPTION_LETTER}\s+or\s+)+{OPTION_LETTER}",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\d:.])(?<!:\s)\b\d{1,2}\s?:\s?[0-5]\d(?![\d:.]|\s:)")
_ATOM_GROUP = re.compile(r"[A-Z][a-z]?\)_?\{?\d")
"""A group of atoms and how many there are: `Ca(OH)2`."""
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b")
_NO_UNIT = re.compile(
    r"(?i)\d\s*(?:[ap]\.?\s?m\b\.?|(?-i:[ap])\.?\s*\Z)|o'clock|\b(?:noon|midnight|ad|bc|bce|ce)\b"
    r"|\b(?:north|south|east|west)(?:east|west|ern)?(?:ward)?s?\b"
)

_CHANGED = re.compile(r"\d\s[a-z]+ed\b(?!\s[a-z])")
"""A number with a participle, which is no unit: "10 doubled"."""
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=[A-Za-z])")  # LaTeX that went through JSON once too often
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{\w+\*?\}(?:\{[clr|]*\})?")
_SUBSCRIPT = re.compile(r"_\s*(?:\{[^{}]*\}|\w)")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?")
_NAMED_FIGURE = re.compile(r"\\(?:angle|overline|over(?:left)?rightarrow|triangle|widehat|measuredangle)\b")
_MATHEMATICAL_ALPHABETS = re.compile(r"[\u0370-\u03ff\u2100-\u214f\U0001d400-\U0001d7ff]")
_WORD = re.compile(r"[A-Za-z]{2,}")
_NO_PRODUCT = re.compile(r"\w{4,}|[A-Z][a-z]{2,}|yes|not?|the|is|are|to|of|if|by|in|on|at|up|all|any")
"""Of a reference that is a text. "for" and the like join the parts of a formula: `x+1 \\text{ for } x>2`."""
_OPERATOR = re.compile(r"[+*^=<>|(]|\\[A-Za-z]")
_SIGN_OF_A_FORMULA = re.compile(
    r"\\(?:[dt]?frac|sqrt|pi|cdot|times)(?![A-Za-z])|[\w)}]\s?[\^*]|=|\.\d*\\(?:overline|dot|bar)"
)
_IN_WORDS = re.compile(r"(?<!\\)\b[A-Za-z]{5,}|\\text|\\mbox")
_LETTER_AND_FIGURE = re.compile(r"[A-Za-z]\d")
_FACTORS = re.compile(r"(?<=\d)[A-Za-z]++(?!\w)")


@text_cache(16384)
def reference_kind(reference: str) -> Literal["maths", "choice", "exact"]:
    """The kind of `reference`, a text as `reference_text` gives it."""
    if reference_choice(reference) is not None:
        return "choice"
    if read_parts(reference) or read_division(reference) or is_piecewise(reference):
        return "maths"
    scalar = read_scalar(reference)
    if scalar and (scalar.base or (_SPELLED.fullmatch(reference) and scalar.unit.is_known)):
        return "maths"  # `101_2`, "forty percent"
    if _ATOM_GROUP.search(reference) and chemical(reference):
        return "exact"
    text = bare_text(with_scales(_DOUBLED.sub(r"\\", reference)))
    is_time = _CLOCK.search(text) and "=" not in text
    is_figure = _FIGURES.fullmatch(text) or _SIGNS.fullmatch(text) or _ORDINAL.search(text) or MONTH.search(text)
    if is_time or is_figure:
        return "exact"
    if _SIGN_OF_A_FORMULA.search(reference) and not _IN_WORDS.search(reference) and readings(reference):
        return "maths"
    if not plain_number(with_scales(reference)) and not unit_of(reference):
        return "maths" if _is_formula(text) else "exact"
    # A value with a unit, unlike "12 thousand", "9 pm" or "10 Downing Street".
    words = _COMMAND.sub(" ", text)
    if changes_number(words) or _NO_UNIT.search(text) or _CHANGED.search(words):
        return "exact"
    return "maths" if all(word == word.lower() or measures(word) for word in _WORD.findall(words)) else "exact"


def _is_formula(text: str) -> bool:
    """Whether every letter is a variable or part of a function's name."""
    if not re.search(r"\w|\\[A-Za-z]", text) or _NAMED_FIGURE.search(text):
        return False
    if any(letter.isalpha() and not letter.isascii() for letter in _MATHEMATICAL_ALPHABETS.sub("", text)):
        return False
    symbols = _COMMAND.sub(" ", _SUBSCRIPT.sub(" ", _ENVIRONMENT.sub(" ", text)))
    if re.search(r"\w\.\s", text) or (_LETTER_AND_FIGURE.search(symbols) and not re.search(r"[\\^]", text)):
        return False  # "a. 3, b. 4"; H2O, but N2^{-N}
    if _WORD.fullmatch(text.strip("()[]{} ")):
        return text == "pi" or (len({*text}) == len(text) and {*text} <= {*"xyz"})  # xy, a product
    words = [word for word in _WORD.findall(symbols) if not (word in FUNCTION_NAMES or DIFFERENTIAL.fullmatch(word))]
    if any(map(_NO_PRODUCT.fullmatch, words)) and formula(text) is None:
        return False
    # Letters in a row are a product of variables next to an operator or, in lower case, after a number: 2xy.
    return bool(_OPERATOR.search(text)) or {*words} <= {w for w in _FACTORS.findall(symbols) if w.islower()}


class FastReading(NamedTuple):
    """What is known of a completion before Math-Verify is asked."""

    verdict: Verdict | None
    """None if only Math-Verify can tell."""
    key: str = ""
    """All that Math-Verify's verdict depends on: completions of a group often end in the same answer."""
    tail: str = ""
    """What Math-Verify must read of the completion."""
    question: str = ""
    """The question, with the words of the completion's programs: what they speak of is known."""


def fast_reading(question: str, answer: str, completion: str, expressions: bool) -> FastReading:
    """The reading of a completion. The question again is wrong, unless `expressions` count."""
    if question and not expressions and copies_question(question, without_thoughts(completion)):
        return FastReading("wrong")
    reply = reply_of(completion)
    known = question
    verdict = fast_verdict(answer, reply, expressions, known)
    if verdict in (None, "unparsed") and (code := code_of(completion)):
        known = f"{question}\n{topics(code)}"
        verdict = fast_verdict(answer, reply, expressions, known)
    if verdict is not None:
        return FastReading(verdict)
    if len(answer) > TAIL_CHARS:
        return FastReading(None, reply, reply, known)
    final = extract_answer(reply, factorials="!" in reference_text(answer))
    seen = reply if final.kind == "unmarked" else (tuple(final.texts), final.counted)
    is_known = Words(known, reference_text(answer)).know(final.words)
    return FastReading(None, repr((known, final.kind, seen, is_known)), reply, known)


_DOCSTRING = re.compile(r"\"\"\"((?:[^\"]|\"(?!\"\")){20,4000}?)\"\"\"")
_NAME = re.compile(r"(?<!\\)[^\W\d_]{2,}")
_PROGRAM_CHARS = 4000


def topics(program: str) -> str:
    """What a program speaks of, as an aside to a question: the words of its docstrings, which restate the question,
    and those elsewhere that say nothing about values, such as its names."""
    text = program[-_PROGRAM_CHARS:]
    names = [name for name in dict.fromkeys(_NAME.findall(text)) if not speaks(name)]
    return "\n".join([f"{ASIDE}{' '.join(_DOCSTRING.findall(text))}", " ".join(names)])


def reference_readings(answer: str) -> int:
    """In how many ways a reference is read: 2 if several types of values may be meant, 1 for options and text."""
    reference = reference_text(answer)
    return min(len({*map(type, readings(reference))}), 2) if reference_kind(reference) == "maths" else 1


def fast_verdict(answer: str, completion: str, expressions: bool = False, question: str = "") -> Verdict | None:
    """The verdict on a completion, or None if only Math-Verify can tell. For `expressions`, see `MathsRule`.

    Also None for a reference that is longer than what is read of a completion: a process that can be killed reads it.
    """
    if len(answer) > TAIL_CHARS:
        return None
    try:
        return verdict_by(_undecided, _undecided, answer, completion, expressions, question)
    except _UndecidedError:
        return None


class _UndecidedError(Exception):
    pass


def _undecided(*asked: Any) -> NoReturn:
    raise _UndecidedError


def verdict_by(
    symbolic: Symbolic,
    solutions: Symbolic,
    answer: str,
    completion: str,
    expressions: bool = False,
    question: str = "",
) -> Verdict:
    """The verdict on a completion against the reference `answer`. `symbolic` tells whether two formulas are equal, and
    `solutions` whether they have the same zeros, where nothing else can. Words of the `question` are known: they change
    no value."""
    reference = with_molars(with_point(reference_text(answer), question), question)
    choice = reference_choice(reference) if reference else None
    if choice:
        verdict = choice_verdict(choice, completion, options_in(question), question)
        if verdict != "unparsed" or not {*choice.letters} < written_options(question).keys():
            return verdict
    final = extract_answer(completion, factorials="!" in reference)
    words = Words(question, answer, *final.counted)
    comparison = Comparison(symbolic, solutions, expressions, words)
    if choice:
        return _verdict_by_value(choice, final, question, comparison)
    if reference and reference_kind(reference) == "exact":
        verdict = _exact_verdict(reference, completion, final.texts, comparison, question)
        if verdict == "unparsed" and words.know(final.words) and _is_rank(reference, final.texts, question):
            return "correct"
        return verdict
    if (
        final.kind == "unmarked"
        and len(completion) <= _MOST_OF_A_LINE
        and _are_spelled_alike(clean(one_notation(completion)), reference)
    ):
        return "correct" if reference else "unparsed"
    texts, around = [_as_asked(text, reference, question) for text in final.texts], final.words
    line = clean(one_notation(completion)) if final.kind == "unmarked" else ""
    if line and ("!" in reference or "!" not in line) and _is_answer(line):
        said = [word for word in around if word.startswith(DEMAND)]
        texts, around = [_as_asked(line, reference, question)], (*said, *demands("", [line], ""))
    texts, around = _of_asked_name(texts, around, question)
    is_asked = expressions and final.kind == "unmarked" and bool(_CALCULATION.search(" ".join(texts)))
    if not texts or not reference or not (is_asked or words.know(around)):
        return "unparsed"
    if final.kind == "unmarked" and question and repeats_question(question, completion):
        return "unparsed"
    verdict = _verdict_on_all(texts, reference, comparison)
    if verdict == "wrong" and len(texts) == 1 and _names_option(texts[0], reference, question):
        return "unparsed"
    if verdict == "wrong" and _may_be_marked(texts, final.kind, reference, comparison):
        return "unparsed"
    return verdict


def _may_be_marked(texts: Sequence[str], kind: str, reference: str, comparison: Comparison) -> bool:
    """Whether a text may be the reference with a label ("(C) 12", "- 12"), or prose, such as "hm", which in a formula
    would be a product."""
    labels = _OPTION if kind == "boxed" else _LABEL
    if len(texts) == 1 and (label := labels.match(texts[0])):
        return _text_verdict(texts[0][label.end() :], reference, comparison) == "correct"
    return kind == "unmarked" and any(map(_WORD_ALONE.fullmatch, texts))


def _verdict_by_value(choice: Choice, final: FinalAnswer, question: str, comparison: Comparison) -> Verdict:
    """The verdict on a value where the reference is one of the options that the question lists: which of them it is.
    All others must differ from it."""
    options = {letter: clean(text) for letter, text in written_options(question).items()}
    if len(final.texts) != 1 or not comparison.words.know(final.words):
        return "unparsed"
    verdicts = {letter: _text_verdict(final.texts[0], text, comparison) for letter, text in options.items()}
    others = [verdicts[letter] for letter, text in options.items() if readings(text) and verdicts[letter] != "correct"]
    chosen = [letter for letter, verdict in verdicts.items() if verdict == "correct"]
    is_alike = len(chosen) == 1 and _text_verdict(options[chosen[0]], final.texts[0], comparison) == "correct"
    if not is_alike or {*others} != {"wrong"}:
        return "unparsed"
    return "correct" if chosen == [*choice.letters] else "wrong"


@text_cache(8192)
def letters_of(reference: str) -> frozenset[str]:
    """The names in a formula."""
    found = [names(value.tree) for value in readings(reference) if isinstance(value, Scalar)]
    return frozenset().union(*found)


def _is_rank(reference: str, texts: Sequence[str], question: str) -> bool:
    """Whether one answer is what a reference ranks, as the question asks for it: 15 for "15th day"."""
    rank, *ranks = (without_rank(bare_text(text), asked_part(question)) for text in (reference, *texts))
    return rank != reference and ranks == [rank]


def _as_asked(text: str, reference: str, question: str) -> str:
    """An answer in the notation of its reference, or in the scale of its question."""
    text = with_molars(with_colons(with_kelvins(text, reference), reference), question)
    asked = asked_part(question)
    text = without_asked_rate(without_asked_side(text, question), reference, asked)
    if text[-1:].isalpha() and (letters := letters_of(reference)):
        text = with_factor(text, letters)
    text = without_rank(text, asked) if reference.isdecimal() else text
    if with_scales(reference) != reference or plain_number(with_scales(text)) == reference:
        return text
    return without_asked_scale(text, asked)


def _exact_verdict(
    reference: str, completion: str, texts: Sequence[str], comparison: Comparison, question: str
) -> Verdict:
    """The verdict against a reference that is compared as text; a single other text may be the same value."""
    verdict = exact_verdict(reference, completion, question)
    if verdict != "wrong" or len(texts) > 1:
        return verdict
    text = texts[0] if texts else clean(one_notation(completion)[:_MOST_OF_A_LINE])
    is_value = _are_equal_values(reference, text, comparison) or _names_option(text, reference, question)
    return "unparsed" if is_value else verdict  # 12:22 for the ratio 6:11


_CALCULATION = re.compile(r"\d\s*[-+*/]\s*\d")
"""What Math-Verify's reading computes wherever it stands: "Find 19 - 10"."""
_OPTION = re.compile(rf"\(?{OPTION_LETTER}\)\s*(?=\S)")
_LABEL = re.compile(rf"{_OPTION.pattern}|-\s+(?=\S)")
"""An option's letter, or a dash with a space, which may be a list's and no minus."""


def _names_option(text: str, reference: str, question: str) -> bool:
    """Whether a text is the letter of the option of the question that is the reference."""
    choice = reference_choice(text)
    return choice is not None and options_in(question).get(choice.letters[0]) == plain_text(reference)


def _are_equal_values(reference: str, text: str, comparison: Comparison) -> bool:
    """Whether two texts are the same value in other words: ratios, numbers in words, ranges."""
    try:
        sides = [_RANGE.sub("-", plain_text(side)).replace("=", " ") for side in (reference, text)]
        if sides[0] == sides[1] or sorted(sides[0].split(", ")) == sorted(sides[1].split(", ")):
            return True
        turned = [_DIRECTION.search(side) for side in sides]
        if turned[0] and turned[1] and turned[0].group() == turned[1].group():
            bare = [side[: place.start()] for side, place in zip(sides, turned, strict=True) if place]
            return comparison(readings(bare[0]), answer_readings(bare[1])) == "correct"  # "5000 m north"
        if _SEVERAL_WORDS.search(reference) and _IS_FORMULA.search(text) and readings(text):
            return True
        if _WORDS_ON_LETTER.search(bare_text(reference)) and _SAYS_OF_LETTER.search(text):
            return True  # `n = 2k` for "even n"
        if any_number(text) and (changes_number(reference) or (not _WORD.search(text) and _may_compute(reference))):
            return True  # 144 for "12 squared", 5 for "half of 10"
        may_be_value = _CLOCK.fullmatch(reference) or (
            re.search(r"[^\W\d_]", reference) and not MONTH.search(reference)
        )
        is_equal = bool(may_be_value) and comparison(ratio_readings(reference), ratio_readings(text)) == "correct"
        return is_equal or _may_be_equal(reference, text, comparison)
    except _UndecidedError:
        return False


def _may_compute(reference: str) -> bool:
    """Whether a reference in words has a number that its words may compute with: "20% of 50", "twice 6"."""
    return bool(_BESIDE_NUMBER.search(reference)) and not (_NO_UNIT.search(reference) or MONTH.search(reference))


_NUMERAL = rf"(?:(?<![\d.,])\d[\d.,]*+\\?%?|\b(?:{'|'.join(NUMBER_OF_WORD)})\b)"
_BESIDE_NUMBER = re.compile(rf"(?i){_NUMERAL} [a-z]{{2,}}|(?<![a-z])[a-z]{{2,}}+ {_NUMERAL}")
_SEVERAL_WORDS = re.compile(r"[^\W\d_]{2}\s[^\W_]")
_IS_FORMULA = re.compile(r"[<>=\u2264\u2265\u2260]|\\(?!text|math|mbox)[A-Za-z{]|[(\[][^(\[,]*,|\d\s?[/:]\s?\d")
"""Of an answer: what the several words of a reference say, it may say in signs: `x \\ge 5` for "at least 5"."""
_WORDS_ON_LETTER = re.compile(r"[^\W\d_]{2} (?![ai]\b)[A-Za-z]\b|(?<![\w'])(?!a)[b-hj-z] [^\W\d_]{2}")
_SAYS_OF_LETTER = re.compile(r"[A-Za-z]\s?(?:[=<>\u2264\u2265\u2260\u2261\u2208]|\\(?:in|equiv|[lg]e|ne)(?![A-Za-z]))")
_DIRECTION = re.compile(r"\s(?:north|south|east|west)(?:east|west)?\Z")
_RANGE = re.compile(r"(?<=\d) (?:to|through) (?=\d)")
_WORD_ALONE = re.compile(r"[^\W\d_]{2,}")
_MOST_OF_A_LINE = 300


def _is_answer(line: str) -> bool:
    """Whether a completion of one line is nothing but a value: a formula, a matrix, conditions."""
    is_formula = len(line) <= _MOST_OF_A_LINE and "\n" not in line and not _IN_WORDS.search(_CONNECTIVES.sub("", line))
    is_formula = is_formula and not _HAS_VERB.search(line)
    return is_formula and not line.endswith("?") and not _LEADS_TO_EQUATION.match(line) and bool(readings(line))


_HAS_VERB = re.compile(rf"(?i)[a-z]{{3,4}}\s{words_of('verb', 'states', languages=LANGUAGES[:1])}(?=\s)")
"""Of a sentence of short words: "12 eggs are left"."""
_LEADS_TO_EQUATION = re.compile(rf"(?:(?:[A-Za-z]{{2,}}+\s){{2,}}|[{CJK}]{{1,20}}\s)[^=]{{1,20}}=")
"""Words in front of an equation, which are no name: `So we have $AB = 12$`."""
_CONNECTIVES = re.compile(r"\\(?:text|mbox|mathrm)\s*\{\s*(?:or|and)\s*\}|\\(?:begin|end)\s*\{\w+\}")


def _names_of(texts: Sequence[str]) -> list[str]:
    """The names of values, if all have one, each another; else none."""
    if len(texts) < 2:
        return []
    named = [value.name for text in texts for value in readings(text)[:1] if isinstance(value, Named)]
    return named if len({*named}) == len(texts) else []


def _of_asked_name(texts: Sequence[str], around: Sequence[str], question: str) -> tuple[Sequence[str], Sequence[str]]:
    """Of values with different names, the one whose name the question asks for."""
    for name, text in zip(_names_of(texts), texts, strict=False):
        if is_only_asked(name, question):
            return [text], [word for word in around if not is_of_name(word)]
    return texts, around


def _verdict_on_all(texts: Sequence[str], reference: str, comparison: Comparison) -> Verdict:
    """The verdict on all texts of an answer. Several may be the elements of one answer: `\\boxed{1}` and `\\boxed{2}`
    for the reference 1, 2."""
    verdicts = {_text_verdict(text, reference, comparison) for text in texts}
    if verdicts == {"correct"}:
        return "correct"
    if len(texts) > 1 and not all(isinstance(value, Scalar) for value in readings(reference)):
        return _text_verdict(", ".join(texts), reference, comparison)
    is_part = "correct" in verdicts and _names_of(texts)  # "a = 3, b = 12" for 12
    return "wrong" if "wrong" in verdicts and not is_part else "unparsed"


def _are_spelled_alike(text: str, reference: str) -> bool:
    return spelling(text) == spelling(reference) or bool(are_same_formula(reference, text))


def _text_verdict(text: str, reference: str, comparison: Comparison) -> Verdict:
    """The verdict on one text as a whole. What cannot be read is `correct` only in the reference's spelling."""
    if text == reference:
        return "correct"
    if _are_spelled_alike(text, reference):
        units = unit_of(reference), unit_of(text)
        return "unparsed" if all(units) and units[0] != units[1] else "correct"  # 2 ms, 2 m s
    expected = readings(reference)
    verdict = comparison(expected, answer_readings(text)) if expected else "unparsed"
    if verdict == "wrong" and _may_be_equal(reference, text, comparison):
        return "unparsed"
    return verdict


def _may_be_equal(reference: str, text: str, comparison: Comparison) -> bool:
    """Whether two texts whose readings differ may be one value in a notation that is not known: separators, Roman
    numerals, parts with labels, letters with other signs between them."""
    sides = reference, text
    is_other = bool(_ROMAN.fullmatch(reference)) != bool(_ROMAN.fullmatch(text)) or any(map(_LABELLED.match, sides))
    if is_other or (any("floor" in side for side in sides) and any("[" in side for side in sides)):
        return True
    if _RATE_IN_CHINESE.search(reference) and not _RATE_IN_CHINESE.search(text):
        return True  # the time may stand in front of the value
    letters = [_LETTERS_IN_ORDER.fullmatch(side) and re.findall(r"\w", side) for side in sides]
    if letters[0] and letters[0] == letters[1]:
        return True
    # What was compared already is not compared again: most texts have no further readings.
    expected, found = map(doubtful_readings, sides)
    is_read_again = (expected, found) != (readings(reference), answer_readings(text))
    return is_read_again and comparison(expected, found) == "correct"


_RATE_IN_CHINESE = re.compile(rf"\d\s?(?:\\text\{{)?\s?[{CJK}]+/[{CJK}]")
_ROMAN = re.compile(r"[IVXLCDM]{2,12}")
_LABELLED = re.compile(r"\(?a\)\s*\S.{0,200}?[\s,;]\(?b\)|\(?(?:i|1)\)\s*\S.{0,200}?[\s,;]\(?(?:ii|2)\)")
_LETTERS_IN_ORDER = re.compile(r"[A-Za-z](?:\s?[-,;\u2192>]+\s?[A-Za-z]){1,12}")
