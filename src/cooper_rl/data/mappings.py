"""Turns rows into problems: which fields to read, and how."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cooper_rl.data.problem import Problem
from cooper_rl.data.readers import Row
from cooper_rl.errors import InputError, did_you_mean

_DEMAND = "set problems.format, or problems.question and problems.answer"
_RULE_DEMAND = "choose another problems.rule_field, or write null in rows that leave the rule to the run"


class BadValue(ValueError):
    """The row cannot be used, and the message says why. It is skipped and counted."""


def text_of(value: Any) -> str:
    """A field as text: 43.0 becomes `43`, null becomes empty.

    Raises:
        TypeError: the value is a list, an object, a truth value or infinity, which have no single form as text.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected text or a number, found {type(value).__name__}")
    if value in (math.inf, -math.inf):
        raise TypeError("expected text or a number, found infinity")
    return str(value) if isinstance(value, int) else np.format_float_positional(value, trim="-")


@dataclass(frozen=True)
class Mapping:
    """The fields of a row and how to read each. `question` fields are joined as sentences; the last must have text."""

    question: tuple[str, ...]
    answer: str
    solution: str | None = None
    id: str | None = None
    read_question: Callable[[Any], str] = text_of
    read_answer: Callable[[Any], str] = text_of
    read_solution: Callable[[Any], str] = text_of
    box_solution: bool = False
    """Append the boxed answer to a solution that has no box, so that it ends in the answer."""
    answer_required: bool = True
    """If false, an answer that is missing or not readable as text becomes empty, and its field is kept as metadata."""
    omit: tuple[str, ...] = ()
    """Fields not kept as metadata."""
    rule: str | None = None
    """The rule of every problem whose row does not name one."""
    rule_field: str | None = None
    """Field in which a row names its rule."""


def map_row(row: Row, mapping: Mapping, fallback_id: str) -> Problem:
    """Make a problem from a row. `metadata` gets all fields that are not read or omitted, and `location`.

    Raises:
        InputError: a field is missing or has the wrong type. The message names file, line, field and remedy.
        BadValue: a field is empty or holds no answer.
    """
    parts = [_read(row, name, mapping.read_question) for name in mapping.question]
    required = mapping.answer_required
    answer = _read(row, mapping.answer, mapping.read_answer) if required else _answer_if_any(row, mapping)
    for name, text in ((mapping.question[-1], parts[-1]), (mapping.answer, answer)):
        if not text and (required or name != mapping.answer):
            raise BadValue(f"field {name!r} is empty")
    solution = _read(row, mapping.solution, mapping.read_solution) if mapping.solution else ""
    if solution and answer and mapping.box_solution and "\\boxed" not in solution:
        solution = f"{solution}\nThe answer is \\boxed{{{answer}}}."
    rule = _read(row, mapping.rule_field, text_of, _RULE_DEMAND) if mapping.rule_field else ""
    used = {*mapping.question, mapping.solution, mapping.rule_field, *mapping.omit} | (
        {mapping.answer} if answer else set()
    )
    metadata = {name: value for name, value in row.fields.items() if name not in used}
    return Problem(
        id=(_read(row, mapping.id, text_of) if mapping.id else "") or row.name or fallback_id,
        question=join_sentences(parts),
        answer=answer,
        solution=solution or None,
        metadata={**metadata, "location": row.location},
        rule=rule or mapping.rule,
    )


def _answer_if_any(row: Row, mapping: Mapping) -> str:
    try:
        return mapping.read_answer(row.fields.get(mapping.answer)).strip()
    except (TypeError, BadValue):
        return ""


def _read(row: Row, name: str, read: Callable[[Any], str], demand: str = _DEMAND) -> str:
    if name not in row.fields:
        remedy = did_you_mean(name, row.fields, f"the row has {', '.join(map(repr, row.fields))};")
        raise InputError(f"{row.location}: field {name!r} is missing; {remedy} {demand}")
    try:
        return read(row.fields[name]).strip()
    except TypeError as error:
        raise InputError(f"{row.location}: field {name!r}: {error}; choose another field or change the data") from error
    except BadValue as error:
        raise BadValue(f"field {name!r} {error}") from error


def join_sentences(parts: list[str]) -> str:
    """Join with spaces. A part that ends without punctuation, as SVAMP's bodies often do, first gets a full stop."""
    kept = [part for part in parts if part]
    closed = [part if part[-1] in ".?!:;," else f"{part}." for part in kept[:-1]]
    return " ".join([*closed, *kept[-1:]])
