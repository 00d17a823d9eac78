"""What a question asks for, of all that it says."""

import re
from dataclasses import dataclass

from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.word_forms import form_of

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
    return len(_ASKS.findall(asked)) == 1


def says(text: str, words: str) -> bool:
    """Whether a text has these words in this order, in any form."""
    return f" {_spoken(words)} " in f" {_spoken(text)} "


@text_cache(4096)
def _spoken(text: str) -> str:
    return " ".join(form_of(word) for word in WORDS.findall(text) if word not in ("the", "a", "an"))
