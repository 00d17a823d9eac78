"""The options of a multiple-choice problem, listed in its question or its metadata."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from cooper_rl.data.problem import Problem
from cooper_rl.rewards.rule.plain_text import bare_text, plain_text

Options = Mapping[str, str]
"""Maps letters to texts, as `plain_text` gives them."""

FIELDS = ("options", "choices")
"""Metadata fields that list options: as texts, as letters with texts, or as the two lists `label` and `text`."""
LETTERS = "ABCDEFGHIJ"

_MARK = re.compile(r"(?<![\w.)])(?:\(\s*([A-J])\s*\)|([A-J])\s*[).:](?=\s|$)|([A-J])\)(?=\S))")


def options_of(problem: Problem) -> Options:
    """The options that a problem lists; empty if there are fewer than two. Metadata takes precedence over the question.

    Options with equal texts and options whose text is a letter are left out, because such a text is ambiguous.
    """
    for field in FIELDS:
        if found := _listed(problem.metadata.get(field)):
            return distinct(found)
    return _in_question(problem.question)


@lru_cache(maxsize=4096)
def _in_question(question: str) -> Options:
    """The last run of marks A, B, C, ... in a question, each with the text up to the next mark."""
    text = "\n".join(bare_text(line) for line in question.splitlines())
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
    texts = [text[mark.end() : end].strip() for mark, end in zip(run, ends, strict=True)]
    texts[-1] = texts[-1].split("\n", 1)[0]  # what follows the last option does not belong to it
    return distinct(zip(LETTERS, texts, strict=False))


def _listed(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and {"label", "text"} <= value.keys():
        labels, texts = value["label"], value["text"]
        return _listed(dict(zip(labels, texts, strict=False))) if isinstance(labels, list) else []
    if isinstance(value, Mapping):
        named = [(str(letter).strip("(). "), text) for letter, text in value.items()]
        return [(letter.upper(), str(text)) for letter, text in named if letter.upper() in LETTERS and letter]
    if isinstance(value, list | tuple):
        return list(zip(LETTERS, [_unmarked(str(text)) for text in value], strict=False))
    return []


def _unmarked(text: str) -> str:
    mark = _MARK.match(text.strip())
    return text.strip()[mark.end() :] if mark else text


def distinct(options: Iterable[tuple[str, str]]) -> Options:
    """The options whose text is unambiguous; empty if there are fewer than two options."""
    plain = [(letter, plain_text(text)) for letter, text in options]
    if len(plain) < 2:
        return {}
    counts = Counter(text for _, text in plain)
    return {letter: text for letter, text in plain if text and counts[text] == 1 and not _is_letters(text)}


def _is_letters(text: str) -> bool:
    return re.fullmatch(r"[a-j](?:\W+[a-j])*", text) is not None
