"""Numbers in the subject of an answer, which say of which things it is: "the probability of at most two heads"."""

import re

from cooper_verify.rules.vocabulary.number_words import ONES

_CARDINALS = "|".join(word for word, value in ONES.items() if value > 1)
_ORDINALS = "second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_NUMBERED = re.compile(
    rf"(?<![\w-])(?:(?:at least|at most|(?:more|less|fewer) than)\s(?:\d+|one|{_CARDINALS})"
    rf"|first \d+|(?<=exactly )one|{_CARDINALS}|{_ORDINALS})(?![\w-])"
)
_OF_SUBJECT = re.compile(
    r"\b(?:numbers? of|probability (?:of|that)|ways to|sum of|product of"
    r"|first (?:[a-z]+|\d+) (?:terms|numbers|primes))\b"
    rf"|\bthe (?:{_ORDINALS}) [a-z]+\b"
)
"""In front of a verb: what may have numbers that say which things are meant."""


def numbers_of_things(before: str) -> list[str]:
    """The numbers of such a subject, with their bounds."""
    text = before.casefold()
    return _NUMBERED.findall(text) if _OF_SUBJECT.search(text) else []


def has_numbers(text: str, words: str) -> bool:
    """Whether a question says these numbers with these bounds: "at least two" is not "two"."""
    said, figures = _NUMBERED.findall(text.casefold()), _in_figures(words)
    is_said_alone = re.search(rf"(?<!least )(?<!most )(?<!than )\b{figures}\b", text) is not None
    return is_said_alone or figures in map(_in_figures, said)


def _in_figures(words: str) -> str:
    """The words with their number in figures."""
    return " ".join(str(ONES[word]) if ONES.get(word, 0) > 1 or word == "one" else word for word in words.split())


_TERMS = re.compile(r"\b(?:(sum|product|average|mean|number) of )?(?:the )?first [a-z]+ (?:terms|numbers|primes)\b")


def terms_themselves(before: str) -> list[str]:
    """Whether a value is said to be the first terms of a sequence, and not their sum."""
    found = _TERMS.search(before.casefold()) if "irst " in before else None
    return [""] if found and not found[1] else []


def asks_terms(asked: str) -> bool:
    """Whether a question does not ask for a sum or the like of such terms."""
    found = _TERMS.search(asked)
    return found is None or not found[1]
