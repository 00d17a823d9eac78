"""The reference answers of a row, or, where a trainer does not write them down, that of its prompt in a file of
problems."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cooper_audit.rollouts.unrolling import as_json
from cooper_base.data.labelled import read_rows
from cooper_base.data.mappings import text_of
from cooper_base.data.readers import DataRow
from cooper_base.errors import InputError

QUESTIONS = ("question", "prompt", "problem", "input")
ANSWERS = ("answer", "reference_answer", "ground_truth", "expected_answer", "solution", "target")
FIRST_WORDS = 6
"""A question is looked for by its first words, and then compared as a whole."""
_MARKS = re.compile(r"<\|[^|<>]*+\|>")


class References:
    """Reference answers by question. A prompt holds its question among the words of a template."""

    def __init__(self, answers: dict[str, str]) -> None:
        self._answers: dict[tuple[str, ...], list[tuple[list[str], str]]] = {}
        for question, answer in answers.items():
            words = _words(question)
            if words:
                self._answers.setdefault(tuple(words[:FIRST_WORDS]), []).append((words, answer))
        self._lengths = sorted({len(key) for key in self._answers}, reverse=True)

    def __repr__(self) -> str:
        """All questions with their answers, so that two that are equal look equal."""
        return repr(sorted(self._answers.items()))

    def of(self, prompt: str) -> tuple[str, ...]:
        """The answer to the longest question in the prompt; none without a question that is known."""
        words = _words(prompt)
        held = [
            (len(question), answer)
            for start in range(len(words))
            for length in self._lengths
            for question, answer in self._answers.get(tuple(words[start : start + length]), ())
            if words[start : start + len(question)] == question
        ]
        return (max(held, key=lambda one: one[0])[1],) if held else ()


def _words(text: str) -> list[str]:
    return _MARKS.sub(" ", text).casefold().split()


def read_references(path: Path) -> References:
    """The questions and answers of a JSONL, JSON, CSV, TSV or Parquet file. Raises InputError for a row without."""
    return References(dict(read_rows(path, _pair, ("question", "answer"))))


def _pair(row: DataRow) -> tuple[str, str]:
    question, answer = ("".join(_texts(row, names)) for names in (QUESTIONS, ANSWERS))
    if not question or not answer:
        raise InputError(f"{row.location}: needs question and answer; the row has {', '.join(map(str, row.fields))}")
    return question, answer


def _texts(row: DataRow, names: tuple[str, ...]) -> Iterator[str]:
    """The first of these fields that has text, or the last message of it."""
    for name in names:
        value = row.fields.get(name)
        if isinstance(value, list) and value and isinstance(value[-1], dict):
            value = value[-1].get("content")
        try:
            text = text_of(value)
        except TypeError:
            continue
        if text:
            yield text
            return


def references_in(value: Any, decode: Callable[[list[int]], str] | None = None) -> Iterator[str]:
    """Reference answers as texts: of a list each, of an object its answer, or else its JSON, also where a writer made
    a text of them. A list of several numbers, or of lists, is one answer: an interval, a point, a matrix or what a
    program prints.
    """
    text = value.strip() if isinstance(value, str) else ""
    if text[:1] in ("[", "{"):
        value = as_json(text)
    if isinstance(value, list) and len(value) > 1 and all(type(item) is int for item in value) and decode is not None:
        value = [decode(value)]
    if isinstance(value, list) and _is_an_answer(value):
        if text or value:
            yield text or json.dumps(value)
    elif isinstance(value, list):
        for item in value:
            yield from references_in(item, decode)
    elif isinstance(value, Mapping):
        named = next((value[name] for name in ("answer", "ground_truth", "target", "value") if value.get(name)), None)
        whole = json.dumps(value, ensure_ascii=False, default=str)
        yield from [whole] if named is None else references_in(named, decode)
    elif value is not None and value != "" and value == value:
        yield (f"{value:g}" if isinstance(value, float) else str(value)).strip()


def _is_an_answer(value: list[Any]) -> bool:
    """Whether a list has nothing but numbers and lists; of one number it may be that of the alternatives."""
    return len(value) != 1 and all(isinstance(item, int | float | list) for item in value)
