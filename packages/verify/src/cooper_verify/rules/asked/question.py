"""What a question asks for, of all that it says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cooper_base.data.text import has_content
from cooper_verify.rules.asked.word_forms import form_of
from cooper_verify.rules.text.text_cache import text_cache

ASIDE = "\2"
"""In the text of a question: what follows is no part of it."""
WORDS = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"(?>(?:[^.!?\n]|[.!?](?!\s|\Z))+)[.!?]*+")
TELLS = (
    r"bestimme|berechne|trouve[rz]?|d[eé]termine[rz]?|calcule[rz]?|encuentr[ae]|hall[ae]|calcul[ae]|encontre|determin[ae]"
    r"|trova|найдите|найти|вычислите"
)
"""Verbs that ask in other languages: "find"."""
_ASKS = re.compile(
    rf"\b(?:how|what|which|whose|find|determine|calculate|compute|evaluate|express|give|state|write|{TELLS})\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r",?\s\b(?:if|when|given|assuming|because|since|but|while|suppose|provided)\b[^,?]*+"
    r"|,\s(?:who|which|whose|where|with)\b[^,?]*+",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Question:
    """A question with its reference answer."""

    text: str
    asked: str
    """What `asked_part` gives; empty if nobody knows what is asked for."""
    reference: str


@text_cache(4096)
def asked_part(question: str) -> str:
    """The sentences of a question that ask, from "how many" on and without conditions; empty if none asks."""
    asking = []
    for sentence in _SENTENCE.findall(question):
        if word := _ASKS.search(sentence):
            asking.append(_CONDITION.sub("", sentence[word.start() :]))
        elif sentence.endswith("?"):
            asking.append(sentence)
    return " ".join(asking).casefold()


def asks_once(asked: str) -> bool:
    """Whether one thing alone is asked for."""
    asks = len(_ASKS.findall(asked))
    return asks == 1 or (not asks and asked.count("?") == 1)


_ORDERED = re.compile(
    r"\b(?:first|next|last|missing) (?:[a-z]+ )?(?:terms|numbers|elements|values|rows|digits)\b"
    r"|\bsequence\b|\brespectively\b"
    r"|\bin (?:[a-z]+ )?order\b|\bfrom (?:least|smallest|lowest|greatest|largest|highest) to\b"
    r"|(?<![a-z])([a-z])\$?,? and \$?(?!\1)[a-z](?![a-z(])"
)


@text_cache(4096)
def asks_order(question: str) -> bool:
    """Whether a question asks for values in an order: of a sequence, by size, of x and y."""
    return _ORDERED.search(asked_part(question) or question.casefold()) is not None


_COMMAND_OF_NAME = re.compile(r"\\(?:operatorname|text|mathrm)|[{}\\ ]")


def places_of(names: Sequence[str], question: str) -> list[int]:
    """Where the part of a question that asks has these names first; empty if it lacks one."""
    asked = asked_part(question) or question.casefold()
    bare = [_COMMAND_OF_NAME.sub("", name.casefold()) for name in names]
    found = [re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", asked) for name in bare]
    return [place.start() for place in found if place] if all(found) else []


def says(text: str, words: str) -> bool:
    """Whether a text has these words in this order, in any form."""
    return f" {_spoken(words)} " in f" {_spoken(text)} "


@text_cache(4096)
def _spoken(text: str) -> str:
    return " ".join(form_of(word) for word in WORDS.findall(text) if word not in ("the", "a", "an"))


def copies_question(question: str, text: str) -> bool:
    """Whether a completion is the question again and nothing else."""
    if len(text) - text.count(" ") - text.count("\n") > len(question) + _MARKS:
        return False
    return has_content(text) and _letters(text) == _letters(question)


_MARKS = 100
"""Marks that a copy may add."""


def repeats_question(question: str, text: str) -> bool:
    """Whether the last line of a completion ends in the question: "So simplify 6/8." """
    last = text.rstrip()[-len(question) - _MARKS :]
    of_question = _letters(question)
    return " " in of_question and _letters(last).endswith(of_question)


def _letters(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .?!:*")
