"""Verdicts on multiple choice: an answer is right if it gives the option's letter, or its text if that is known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from cooper_rl.rewards.rule.extraction import SENTENCE_END
from cooper_rl.rewards.rule.plain_text import bare_text, plain_text
from cooper_rl.rewards.rule.text_answer import is_retracted, text_answer
from cooper_rl.rewards.rule.verdict import Verdict

_LEAD = r"(?i:(?:the|my|it|so|is|correct|right|best|final|answer|options?|choices?|letters?)\b[\s:=]*)*"
_OPTION = re.compile(
    rf"{_LEAD}(?:[(\[]\s*(?P<enclosed>[A-Ja-j])\s*[)\]]|(?P<bare>[A-J])|(?P<small>[a-j])(?=\)))(?P<rest>.*)", re.DOTALL
)
_SMALL = re.compile(rf"{_LEAD}([b-hj])[.)]?")  # a lone "a" or "i" may be a word
_SEPARATOR = r"(?:\s*[,;&>]\s*(?:and\s+)?|\s*(?:->|\\to\b|\\rightarrow\b)\s*|\s+and\s+|\s+)"
_SEVERAL = re.compile(rf"{_LEAD}(?:\(?[A-J]\)?)(?:{_SEPARATOR}\(?[A-J]\)?)+")
_RUN = re.compile(r"[A-J]{2,6}")
_DELIMITER = re.compile(r"\s*(?:[).:\]]|[,\u2014]\s|-\s)\s*")
_REASON = re.compile(r"[,\s]\s*(?:\(|because\b|since\b|is (?:the )?(?:correct|right|best|answer)\b)", re.IGNORECASE)
_LETTER = r"[A-J](?!\w|['\u2019]|(?<=[AI])\s[a-z])"  # "A dog" and "I think" name no option
_ANOTHER = re.compile(
    rf"(?:\b(?:or|and|nor|not)\s+|[,;/&+(\[]\s*)[(\[]?(?P<joined>{_LETTER})|(?<![^\s(])(?P<marked>[A-Ja-j])(?:[)\]:]|\.\s)"
)
_ANY = re.compile(rf"(?<![\w'\u2019\\])(?:{_LETTER})")
_NEGATION = re.compile(
    r"\b(?:not|no|neither|nor|wrong|incorrect|false|eliminate|exclude|except|reject|unlike|cannot|rule out)\b|n't\b",
    re.IGNORECASE,
)
_REJECTED = re.compile(  # "B, not C" chooses B
    r"(?<=[\w)\]])\s*[,;(\u2014-]?\s*(?:and\s+|but\s+)?(?:not|rather than|instead of)\s+[(\[]?[A-J][)\]]?"
    r"(?:(?:\s*,\s*|\s*,?\s+(?:or|nor)\s+)[(\[]?[A-J][)\]]?)*[)\s.]*\Z"
)
_CUE = re.compile(r"\b(?:so|thus|hence|therefore|answer|correct|choose|chosen|pick|select|go with)\b", re.IGNORECASE)
_MENTION = re.compile(r"\b(?:option|choice)(?:\s+is)?:?\s+[(\[]?([A-J])[)\]]?(?=[.,:;!]|\s*\Z|\s+is\b)", re.IGNORECASE)
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Choice:
    """Option letters in the order given, and the text of the option if there is one."""

    letters: tuple[str, ...]
    text: str = ""


@lru_cache(maxsize=4096)
def reference_choice(reference: str) -> Choice | None:
    """The choice that a reference names: `B`, `(b)`, `B) apple`, `A, C`; None for everything else.

    `b`, `x` and `K` are variables, and `B. Apple` (unlike `B. 12`) may be a name. The order of several letters counts,
    because the question may ask for it.
    """
    text = bare_text(reference).strip(' *"')
    if single := re.fullmatch(r"(?:(?i:option|choice)\s+)?(?:[(\[]\s*([A-Ja-j])\s*[)\]]|([A-J]))[.):]?", text):
        return Choice(((single.group(1) or single.group(2)).upper(),))
    if _SEVERAL.fullmatch(text):
        return Choice(tuple(re.findall(r"\b[A-J]\b", text)))
    with_text = re.fullmatch(
        r"(?:\(\s*([A-Ja-j])\s*\)|([A-J])\s*(?:\)|\.(?=\s*[^\sA-Za-z])))\s*(\S.*)", text, re.DOTALL
    )
    if with_text and not _ANOTHER.search(with_text.group(3)):
        return Choice(((with_text.group(1) or with_text.group(2)).upper(),), plain_text(with_text.group(3)))
    return None


def choice_verdict(reference: str, completion: str, options: Mapping[str, str] = _NO_OPTIONS) -> Verdict:
    """The verdict on `completion` against a `reference` that names a choice.

    `options` maps letters to texts as `plain_text` gives them; an option's text alone is an answer too. The verdict is
    `unparsed` if the completion gives neither letter nor text: a number in the box may be the text of the right
    option. Raises ValueError if the reference is not a choice.
    """
    expected = reference_choice(reference)
    if expected is None:
        raise ValueError(f"{reference!r} names no option")
    answer = text_answer(completion, letters=True)
    if answer.whole is not None:
        return _free_verdict(expected, answer.whole, options)
    sentence, after = _first_sentence(answer.line or "")
    boxes = [", ".join(answer.boxes)] if len(expected.letters) > 1 else answer.boxes
    verdicts = {_text_verdict(expected, text, text in boxes, options) for text in (*boxes, sentence) if text}
    verdicts -= {"unparsed"}
    if not verdicts:
        return "unparsed"
    retracted = is_retracted(answer.after) or is_retracted(after)
    return "correct" if verdicts == {"correct"} and not retracted else "wrong"


def _first_sentence(line: str) -> tuple[str, str]:
    end = SENTENCE_END.search(line)
    return (line[: end.start()], line[end.end() :]) if end else (line, "")


def _free_verdict(expected: Choice, text: str, options: Mapping[str, str]) -> Verdict:
    """The verdict on a completion without a box or a statement: its last line must be an option or name one."""
    *earlier, last = [bare_text(line) for line in text.splitlines() if line.strip()]
    listed = {choice.letters for line in earlier if (choice := _read(line)) is not None}
    if listed:
        return "unparsed"  # the completion repeats the options
    verdict = _text_verdict(expected, last, False, options)
    if verdict != "unparsed":
        return verdict
    mentioned = {letter.upper() for letter in _MENTION.findall(last)}
    if not mentioned or not _CUE.search(last) or _NEGATION.search(last):
        return "unparsed"
    return "correct" if mentioned == set(expected.letters) and len(mentioned) == 1 else "wrong"


def _text_verdict(expected: Choice, text: str, is_boxed: bool, options: Mapping[str, str]) -> Verdict:
    bare = _REJECTED.sub("", bare_text(text).strip(" *\"'!"))
    given = _read(bare, is_boxed)
    if expected.text and plain_text(text) == expected.text:
        return "correct"
    named = [letter for letter, option in options.items() if option == plain_text(text)]
    if named:
        return "correct" if expected.letters == (named[0],) else "wrong"
    if given is not None and any(given.text == text for letter, text in options.items() if (letter,) != given.letters):
        return "wrong"  # the letter of one option with the text of another
    if given is None:
        return "wrong" if _ANY.search(bare) and _NEGATION.search(bare) else "unparsed"
    is_other_text = bool(given.text and expected.text) and given.text != expected.text
    return "wrong" if given.letters != expected.letters or is_other_text else "correct"


def _read(text: str, is_boxed: bool = False) -> Choice | None:
    """The choice in a text that states a choice and nothing else; it has several letters if the text names several."""
    if _SEVERAL.fullmatch(text):
        return Choice(tuple(re.findall(r"\b[A-J]\b", text)))
    if _RUN.fullmatch(text):
        return Choice(tuple(text))
    if small := _SMALL.fullmatch(text) or (re.fullmatch(r"([a-j])", text) if is_boxed else None):
        return Choice((small.group(1).upper(),))
    if (option := _OPTION.fullmatch(text)) and (choice := _option_with_rest(option)):
        return choice
    letters = tuple(dict.fromkeys(_ANY.findall(text)))
    return Choice((*letters, "?")) if len(letters) > 1 else None  # "B or C" does not choose both


def _option_with_rest(option: re.Match[str]) -> Choice | None:
    """The choice in "B", "B) apple" or "B because ..."; None if something else begins with that letter."""
    letter, rest = (option["enclosed"] or option["bare"] or option["small"]).upper(), option["rest"]
    delimiter, reason = _DELIMITER.match(rest), _REASON.match(rest)
    if rest.strip(" .:)") and not delimiter and not reason and not (option["enclosed"] and rest[0] == " "):
        return None
    others = {(other["joined"] or other["marked"]).upper() for other in _ANOTHER.finditer(rest)}
    if delimiter and delimiter.group().strip() in (",", "\u2014", "-"):
        others |= set(_ANY.findall(rest))  # "A, then B"
    others -= {letter}
    text = "" if reason or others else plain_text(rest[delimiter.end() :] if delimiter else rest)
    return Choice((letter, *sorted(others)), text)
