"""The rule for multiple choice: an answer is right if it gives the option's letter, or its text if that is known."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.around_answer import behind_answer
from cooper_verify.rules.answer.extraction import SENTENCE_END, TAIL_CHARS, text_answer
from cooper_verify.rules.asked.words import Words
from cooper_verify.rules.text.notation import one_notation
from cooper_verify.rules.text.plain_text import bare_text, differ_in_form, plain_text
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of

LETTERS = "ABCDEFGHIJ"
"""Of options."""
OPTION_LETTER = f"[{LETTERS}]"
_SMALL_LETTER = OPTION_LETTER.lower()
_LETTER_IN_BRACKETS = f"[{LETTERS}{LETTERS.lower()}]"
Options = Mapping[str, str]
"""Maps letters to texts, as `plain_text` gives them."""
_OTHERS = words_of("answer", "verb", "final", "conclusion", "option", "right", languages=LANGUAGES[1:])
_LEAD = (
    rf"(?i:(?:(?:the|my|it|so|is|are|correct|right|best|final|answer|options?|choices?|letters?)\b|(?:l[ae]s?|el|die)\b|{_OTHERS})"
    r"[\s:=,]*)*"
)
_OPTION = re.compile(
    rf"{_LEAD}(?:[(\[]\s*(?P<enclosed>{_LETTER_IN_BRACKETS})\s*[)\]]|(?P<bare>{OPTION_LETTER})|(?P<small>{_SMALL_LETTER})(?=\)))"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_SAID_WRONG = re.compile(
    r"\W*(?:(?:which|that|this|it)\s+)?(?:is|was|seems|looks)\s+(?:wrong|incorrect|false|not\s+(?:right|correct))\b",
    re.IGNORECASE,
)
_PRIMED = re.compile(r"\s*+[A-Za-z]\s*+(?:'++|\^\s*+(?:\{\s*+)?\\prime\s*+\}?)\s*+")
_SMALL = re.compile(rf"{_LEAD}((?![ai]){_SMALL_LETTER})[.)]?")  # a lone "a" or "i" may be a word
_ARROW = r"(?:->|\\to\b|\\rightarrow\b)"
_SEPARATOR = rf"(?:\s*[,;&<>]\s*(?:and\s+)?|\s*{_ARROW}\s*|\s+and\s+|\s+)"
_SEVERAL = re.compile(rf"{_LEAD}(?:\(?{OPTION_LETTER}\)?)(?:{_SEPARATOR}\(?{OPTION_LETTER}\)?)+")
_SINGLE = re.compile(rf"(?:(?i:option|choice)\s+)?(?:[(\[]\s*({_LETTER_IN_BRACKETS})\s*[)\]]|({OPTION_LETTER}))[.):]?")
_WITH_TEXT = re.compile(
    rf"(?:\(\s*({_LETTER_IN_BRACKETS})\s*\)|({OPTION_LETTER})\s*(?:\)|\.(?=\s*[^\sA-Za-z])))\s*(\S.*)", re.DOTALL
)
_RANKED = re.compile(rf">|{_ARROW}")
_RUN = re.compile(f"{OPTION_LETTER}{{2,6}}")
_DELIMITER = re.compile(r"\s*(?:[).:\]]|[,\u2014]\s|-\s)\s*")
_IS_RIGHT = rf"{words_of('verb', languages=LANGUAGES[1:])}\s?{words_of('right', languages=LANGUAGES[1:])}"
_REASON = re.compile(
    rf"[,\s]\s*(?:\(|because\b|since\b|is (?:the )?(?:correct|right|best|answer)\b|{_IS_RIGHT})", re.IGNORECASE
)
_ASIDE = re.compile(
    r"[)\]]?(?:,?\s+(?:because|since|as|while|whereas|although|though)\s"
    r"|,\s+(?:it|that|this|which)\s(?!could|may|might)"
    r"|\.\s+(?:it|that|this|neither|none)\s(?:is not|isn't|cannot|can't|of|can not)\b)",
    re.IGNORECASE,
)
"""What follows a chosen option and tells of others without choosing them."""
_LETTER = rf"{OPTION_LETTER}(?!\w|['\u2019]|(?<=[AI])\s[a-z])"  # "A dog" and "I think" name no option
_ANOTHER = re.compile(
    rf"(?:\b(?:or|and|nor|not)\s+|[,;/&+(\[]\s*)[(\[]?(?P<joined>{_LETTER})"
    rf"|(?<![^\s(])(?P<marked>{_LETTER_IN_BRACKETS})(?:[)\]:]|\.\s)"
)
_NAMES_OPTIONS = re.compile(
    rf"\(?{OPTION_LETTER}[).:]\s*(?i:(?:both|only|either)\s)?{OPTION_LETTER}\s(?i:and|&|or)\s{OPTION_LETTER}\b"
)
_BEST = re.compile(r"((?:\A|[.:,]\s|\n|\b[Ss]o )(?:[Tt]he|[Mm]y))\sbest\s(?=answer|choice|option)")
_FORMULA = re.compile(r"\\[A-Za-z]|[\^=]")
_ANY = re.compile(rf"(?<![\w'\u2019\\])(?:{_LETTER})")
_NEGATION = re.compile(
    r"(?i)\b(?:not|no|neither|nor|wrong|incorrect|false|eliminate|exclude|except|reject|unlike|cannot|rule out)\b|n't\b"
)
_REJECTED = re.compile(  # "B, not C" chooses B
    r"(?<=[\w)\]])\s*+(?:[,;(\u2014-]\s*+)?(?:(?:and|but)\s++)?"
    rf"(?:(?:not|rather than|instead of|no|nicht|pas|\u043d\u0435)\s++|\u4e0d\u662f\s*+)[(\[]?{OPTION_LETTER}[)\]]?"
    rf"(?>(?:(?:\s*+,(?:\s*+|\s++(?:or|nor)\s++)|\s++(?:or|nor)\s++)[(\[]?{OPTION_LETTER}[)\]]?)*)[)\s.]*+\Z"
)
_CONTRAST = re.compile(
    rf"\bnot\s+[(\[]?{OPTION_LETTER}[)\]]?(?>(?:\s*(?:,|\bn?or\b)\s*[(\[]?{OPTION_LETTER}[)\]]?)*),?\s+but\s+(?:rather\s+)?"
)
"""In front of the option that is chosen: "not A but B"."""
_ALTERNATIVE = re.compile(rf"(?i:\bor|\bnor)\s*\(?{OPTION_LETTER}(?!\w)")
_DENIED = re.compile(rf"(?:\\(?:neg|lnot|not)(?![A-Za-z])|\u00ac)[\s({{]*(?:\\text\s?\{{)?\s*\(?{OPTION_LETTER}(?!\w)")
"""A letter that a sign denies: `\\neg D`."""
_ELIMINATION = re.compile(
    r"\A\W*not\b|\b(?:rul(?:es?|ed|ing)\s+out|eliminat\w+|exclud\w+|discard\w*|leav(?:es?|ing)|remains?"
    r"|between|choose|pick|select|prefer|go(?:ing)? with)\b",
    re.IGNORECASE,
)
_CUE = re.compile(r"\b(?:so|thus|hence|therefore|answer|correct|choose|chosen|pick|select|go with)\b", re.IGNORECASE)
_MENTION = re.compile(
    rf"\b(?:option|choice)(?:\s+is)?:?\s+[(\[]?({OPTION_LETTER})[)\]]?(?=[.,:;!]|\s*\Z|\s+is\b)", re.IGNORECASE
)


OPTION_FIELDS = ("options", "choices")
"""Metadata fields that list options: as texts, as letters with texts, or as the two lists `label` and `text`."""


@dataclass(frozen=True)
class Choice:
    """Option letters in the order given, and the text of the option if there is one."""

    letters: tuple[str, ...]
    text: str = ""
    order: Literal["any", "may count", "counts"] = "any"
    """Whether their order counts: not in `A, C`, and in `C > B > A`; it may in `C, A` and in `AC`."""


@text_cache(4096)
def reference_choice(reference: str) -> Choice | None:
    """The choice that a reference names: `B`, `(b)`, `B) apple`, `A, C`, `ACF`; None for everything else.

    `b`, `x` and `K` are variables, `B. Apple` (unlike `B. 12`) may be a name, and `CAB` a word.
    """
    text = bare_text(reference).strip(' *"')
    if single := _SINGLE.fullmatch(text):
        return Choice(((single.group(1) or single.group(2)).upper(),))
    if _SEVERAL.fullmatch(text):
        return _several(text)
    if _RUN.fullmatch(text) and _is_ascending(text):
        return Choice(tuple(text), order="may count")  # the segment AB, an order
    option = _WITH_TEXT.fullmatch(text)
    if option is None or _ANOTHER.search(option.group(3)):
        return None
    return Choice(((option.group(1) or option.group(2)).upper(),), plain_text(option.group(3)))


def choice_verdict(expected: Choice, completion: str, options: Options, question: str = "") -> Verdict:
    """The verdict on `completion`, for which an option's text alone is an answer too; `unparsed` for neither."""
    answer = text_answer(_BEST.sub(r"\1 ", completion), letters=True)
    words = Words(question, expected.text, *options.values())
    if answer.whole is not None:
        return _free_verdict(expected, answer.whole, options, words)
    line = answer.line or ""
    end = SENTENCE_END.search(line)
    sentence, after = (line[: end.start()], line[end.end() :]) if end else (line, "")
    boxes = [", ".join(answer.boxes)] if len(expected.letters) > 1 else answer.boxes
    verdicts = {_text_verdict(expected, text, text in boxes, options) for text in (*boxes, sentence) if text}
    verdicts -= {"unparsed"}
    if not verdicts:
        return "unparsed"
    if not words.know((*answer.words, *behind_answer(after, ()))) or _ANY.search(after):
        return "unparsed"
    return "correct" if verdicts == {"correct"} else "wrong"


def _free_verdict(expected: Choice, text: str, options: Options, words: Words) -> Verdict:
    """The verdict on a completion without a box or a statement: its last line must be an option or name one."""
    *earlier, last = [bare_text(line) for line in text.splitlines() if line.strip()]
    if any(map(_read, earlier)):
        return "unparsed"  # the completion repeats the options
    end = SENTENCE_END.search(last)
    after = last[end.end() :] if end else ""
    verdict = _text_verdict(expected, last[: end.start()] if after.strip() and end else last, False, options)
    if verdict != "unparsed" and (not words.know(behind_answer(after, ())) or _ANY.search(after)):
        return "unparsed"
    mentioned = {letter.upper() for letter in _MENTION.findall(last)}
    if verdict != "unparsed" or not mentioned or not _CUE.search(last) or _NEGATION.search(last):
        return verdict
    return "correct" if len(mentioned) == 1 and mentioned == {*expected.letters} else "wrong"


def _text_verdict(expected: Choice, text: str, is_boxed: bool, options: Options) -> Verdict:
    if _PRIMED.fullmatch(text):
        return "unparsed"  # an event's complement, or a point's image
    bare = _REJECTED.sub("", _CONTRAST.sub("", bare_text(text).strip(" *\"'!")))
    if _NAMES_OPTIONS.match(bare):
        return "unparsed"  # "B) A and C only"
    given, plain = _read(bare, is_boxed), plain_text(text)
    if expected.text and plain == expected.text:
        return "correct"
    for letter, option in options.items():
        if option == plain:
            return "correct" if expected.letters == (letter,) else "wrong"
    if given is None:
        return "wrong" if {*_ANY.findall(bare)} == {*expected.letters} and _NEGATION.search(bare) else "unparsed"
    if any(given.text == option and (letter,) != given.letters for letter, option in options.items()):
        return "wrong"  # the letter of one option with the text of another
    if given.letters != expected.letters:
        if {*given.letters} - {"?"} == {*expected.letters}:
            return _other_order(expected, given)
        # "rules out C, leaving D": which of them it chooses takes a reader
        tells_of_others = any(words.search(bare) for words in (_ELIMINATION, _NEGATION))
        may_choose = {*expected.letters} < {*given.letters} or (len(expected.letters) > 1 and "?" in given.letters)
        return "unparsed" if tells_of_others and may_choose else "wrong"
    if _DENIED.search(text) or (len(expected.letters) > 1 and _ALTERNATIVE.search(bare)):
        return "unparsed"  # "A, C or D"
    if not given.text or not expected.text or given.text == expected.text:
        return "correct"
    return "unparsed" if differ_in_form(given.text, expected.text) else "wrong"


def _several(text: str) -> Choice:
    letters = re.findall(rf"\b{OPTION_LETTER}\b", text)
    if "<" in text:
        return Choice(tuple(letters[::-1]), order="may count" if _RANKED.search(text) else "counts")
    if _RANKED.search(text):
        return Choice(tuple(letters), order="counts")
    return Choice(tuple(letters), order="any" if _is_ascending(letters) else "may count")


def _other_order(expected: Choice, given: Choice) -> Verdict:
    """The verdict on the same letters in another order, or joined by other words."""
    if expected.order == "counts":
        return "wrong"
    is_list = given.order != "counts" and sorted(given.letters) == sorted(expected.letters)
    return "correct" if expected.order == "any" and is_list else "unparsed"


def _is_ascending(letters: Sequence[str]) -> bool:
    return [*letters] == sorted({*letters})


def _read(text: str, is_boxed: bool = False) -> Choice | None:
    """The choice in a text that states a choice and nothing else; it has several letters if the text names several."""
    if _SEVERAL.fullmatch(text):
        return _several(text)
    if _RUN.fullmatch(text):
        return Choice(tuple(text), order="may count")
    if small := _SMALL.fullmatch(text) or (re.fullmatch(f"({_SMALL_LETTER})", text) if is_boxed else None):
        return Choice((small.group(1).upper(),))
    if (option := _OPTION.fullmatch(text)) and (choice := _option_with_rest(option)):
        return choice
    if is_boxed and "\\" in text:
        return None  # a formula, whose letters are no options
    letters = tuple(dict.fromkeys(_ANY.findall(text)))
    return Choice((*letters, "?")) if len(letters) > 1 else None  # "B or C" does not choose both


def _option_with_rest(option: re.Match[str]) -> Choice | None:
    """The choice in "B", "B) apple" or "B because ..."; None if something else begins with that letter."""
    letter, rest = (option["enclosed"] or option["bare"] or option["small"]).upper(), option["rest"]
    if _SAID_WRONG.match(rest):
        return None
    delimiter, reason = _DELIMITER.match(rest), _REASON.match(rest)
    if (
        rest.strip(" .:)")
        and not delimiter
        and not reason
        and not _ASIDE.match(rest)
        and not (option["enclosed"] and rest[0] == " ")
    ):
        return None
    if reason and "(" in reason.group() and {*_ANY.findall(rest)} - {letter} and not _NEGATION.search(rest):
        return None  # "B (but C is possible too)"
    aside = _ASIDE.match(rest)
    is_formula = _FORMULA.search(rest) is not None  # "B) x^2 + C"
    others = {
        (other["joined"] or other["marked"]).upper()
        for other in ([] if aside else _ANOTHER.finditer(rest))
        if not (is_formula and other.group()[0] in "+(")
    }
    if not aside and delimiter and delimiter.group().strip() in (",", "\u2014", "-"):
        others |= set(_ANY.findall(rest))  # "A, then B"
    others -= {letter}
    text = "" if reason or aside or others else plain_text(rest[delimiter.end() :] if delimiter else rest)
    return Choice((letter, *sorted(others)), text)


_LAYOUT = " \t\n&"
"""Around an option in a table of LaTeX."""
_QUESTION_CHARS = 32_000
"""Only this many characters at the end of a question are read: options are its last part."""
_MARK = re.compile(
    rf"(?<![\w.)])(?:\(\s*({OPTION_LETTER})\s*\)|({OPTION_LETTER})\s*[).:](?=\s|$)|({OPTION_LETTER})\)(?=\S))"
)


def options_of(problem: Problem) -> Options:
    """The options in a problem's metadata or question, without ambiguous texts; empty if fewer than two are listed."""
    found = next(filter(None, (_listed(problem.metadata.get(field)) for field in OPTION_FIELDS)), None)
    return _distinct(found) if found else options_in(problem.question)


@text_cache(4096)
def options_in(question: str) -> Options:
    """The options that a question lists, as `plain_text` gives them."""
    return _distinct(written_options(question).items())


@text_cache(4096)
def written_options(question: str) -> Options:
    """The last run of marks A, B, C, ... in a question, each with the text up to the next mark."""
    text = "\n".join(bare_text(line) for line in one_notation(question[-_QUESTION_CHARS:]).splitlines())
    run: list[re.Match[str]] = []
    for mark in _MARK.finditer(text):
        letter = next(filter(None, mark.groups()))
        if letter == "A":
            run = [mark]
        elif run and letter == LETTERS[len(run) : len(run) + 1]:
            run.append(mark)
    if not run:
        return {}
    ends = [mark.start() for mark in run[1:]] + [len(text)]
    texts = [text[mark.end() : end].strip(_LAYOUT) for mark, end in zip(run, ends, strict=True)]
    texts[-1] = texts[-1].split("\n", 1)[0].strip(_LAYOUT)  # what follows the last option does not belong to it
    return dict(zip(LETTERS, texts, strict=False))


def _listed(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and {"label", "text"} <= value.keys():
        labels, texts = value["label"], value["text"]
        return _listed(dict(zip(labels, texts, strict=False))) if isinstance(labels, list) else []
    if isinstance(value, Mapping):
        named = [(str(letter).strip("(). ").upper(), str(text)) for letter, text in value.items()]
        return [(letter, text) for letter, text in named if letter and letter in LETTERS]
    if isinstance(value, list | tuple):
        unmarked = [re.sub(rf"\A\s*(?:{_MARK.pattern})", "", str(text)) for text in value]
        return list(zip(LETTERS, unmarked, strict=False))
    return []


def _distinct(options: Iterable[tuple[str, str]]) -> Options:
    # No completion could give a text that is longer than what is read of it.
    plain = [(letter, plain_text(one_notation(text)) if len(text) <= TAIL_CHARS else "") for letter, text in options]
    if len(plain) < 2:
        return {}
    counts = Counter(text for _, text in plain)
    only_letters = re.compile(rf"{_SMALL_LETTER}(?:\W+{_SMALL_LETTER})*")
    return {letter: text for letter, text in plain if text and counts[text] == 1 and not only_letters.fullmatch(text)}
