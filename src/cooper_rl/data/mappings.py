"""Turns rows into problems: which fields to read, and how; with mappings for widely used data sets."""

import math
import re
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from cooper_rl.data.problem import Problem
from cooper_rl.data.readers import Row
from cooper_rl.data.strict_json import parse_json
from cooper_rl.data.text import without_end
from cooper_rl.errors import InputError, did_you_mean

_DEMAND = "set {0}.format, or {0}.question and {0}.answer"
_RULE_DEMAND = "choose another {0}.rule_field, or write null in rows that leave the rule to the run"


class BadValue(ValueError):
    """The row cannot be used, and the message says why. It is skipped and counted."""


def text_of(value: Any) -> str:
    """A field as text: 43.0 becomes `43`, null empty. Raises TypeError for a list, an object, true, false, infinity."""
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
    messages: str | None = None
    """Field with the chat. Without `question` fields, its last user turn is the question."""
    pass_rate: str | None = None
    """Field with the share of right answers that was measured before."""
    solution_required: bool = True
    """If false, a row may lack the field with the solution, as in held-out problems, whose solutions nothing reads."""
    section: str = "problems"
    """Where these settings stand in the configuration, for messages."""


def map_row(row: Row, mapping: Mapping, fallback_id: str) -> Problem:
    """Make a problem from a row. `metadata` gets all fields that are not read or omitted.

    Raises InputError for a field that is missing or of the wrong type, and BadValue for one without an answer.
    """
    messages = _read_messages(row, mapping.messages, mapping.section) if mapping.messages else None
    demand = _DEMAND.format(mapping.section)
    parts = [_read(row, name, mapping.read_question, demand) for name in mapping.question]
    if messages and not parts:
        parts = [next(turn["content"].strip() for turn in reversed(messages) if turn["role"] == "user")]
    question = mapping.question[-1] if mapping.question else mapping.messages
    required, answer = mapping.answer_required, ""
    if required or mapping.answer in row.fields:
        with nullcontext() if required else suppress(InputError, BadValue):
            answer = _read(row, mapping.answer, mapping.read_answer, demand)
    for name, text in ((question, parts[-1]), (mapping.answer, answer)):
        if not text and (required or name != mapping.answer):
            raise BadValue(f"field {name!r} is empty")
    has_solution = mapping.solution and (mapping.solution_required or mapping.solution in row.fields)
    solution = _read(row, mapping.solution, mapping.read_solution, demand) if mapping.solution and has_solution else ""
    if solution and answer and mapping.box_solution and "\\boxed" not in solution:
        solution = f"{solution}\nThe answer is \\boxed{{{answer}}}."
    rule = _read(row, mapping.rule_field, text_of, _RULE_DEMAND.format(mapping.section)) if mapping.rule_field else ""
    used = {*mapping.question, mapping.solution, mapping.rule_field, *mapping.omit, mapping.messages}
    used |= {mapping.answer if answer else None, mapping.pass_rate}
    metadata = {name: value for name, value in row.fields.items() if name not in used}
    return Problem(
        id=(_read(row, mapping.id, text_of, demand) if mapping.id else "") or row.name or fallback_id,
        question=join_sentences(parts),
        answer=answer,
        solution=solution or None,
        metadata=metadata,
        rule=rule or mapping.rule,
        messages=messages,
        pass_rate=_read_share(row, mapping.pass_rate, mapping.section) if mapping.pass_rate else None,
        location=row.location,
    )


def _read(row: Row, name: str, read: Callable[[Any], str], demand: str) -> str:
    if name not in row.fields:
        remedy = did_you_mean(name, row.fields, f"the row has {', '.join(map(repr, row.fields))};")
        raise InputError(f"{row.location}: field {name!r} is missing; {remedy} {demand}")
    try:
        return read(row.fields[name]).strip()
    except TypeError as error:
        raise InputError(f"{row.location}: field {name!r}: {error}; choose another field or change the data") from error
    except BadValue as error:
        raise BadValue(f"field {name!r} {error}") from error


def _read_messages(row: Row, name: str, section: str) -> list[dict[str, str]]:
    """A chat: turns with `role` and `content`, also as JSON text. It ends with the user, or with the reply's start."""
    if name not in row.fields:
        remedy = did_you_mean(name, row.fields, f"the row has {', '.join(map(repr, row.fields))};")
        raise InputError(f"{row.location}: field {name!r} is missing; {remedy} set {section}.messages")
    turns = row.fields[name]
    if isinstance(turns, str):
        try:
            turns = parse_json(turns)
        except ValueError as error:
            raise BadValue(f"field {name!r} is text that is no JSON list of messages ({error})") from error
    if not isinstance(turns, list) or not turns:
        raise BadValue(f"field {name!r} is no list of messages such as {{'role': 'user', 'content': '...'}}")
    for number, turn in enumerate(turns, start=1):
        if not isinstance(turn, dict) or not all(isinstance(turn.get(key), str) for key in ("role", "content")):
            raise BadValue(f"field {name!r}: message {number} has no role and content that are text")
    chat = [{"role": turn["role"], "content": turn["content"]} for turn in turns]
    if chat[-1]["role"] not in ("user", "assistant", "tool"):
        raise BadValue(f"field {name!r} ends with a message of the {chat[-1]['role']}; end with the user's")
    if all(turn["role"] != "user" for turn in chat):
        raise BadValue(f"field {name!r} has no message of the user")
    return chat


def _read_share(row: Row, name: str, section: str) -> float | None:
    """A number in [0, 1], or None for an empty field."""
    text = _read(row, name, text_of, f"set {section}.pass_rate")
    try:
        share = float(text) if text else None
    except ValueError:
        share = math.nan
    if share is not None and not 0 <= share <= 1:
        raise BadValue(f"field {name!r} is {text!r}, no share between 0 and 1")
    return share


def join_sentences(parts: list[str]) -> str:
    """Join with spaces. A part that ends without punctuation, as SVAMP's bodies often do, first gets a full stop."""
    kept = [part for part in parts if part]
    closed = [part if part[-1] in ".?!:;," else f"{part}." for part in kept[:-1]]
    return " ".join([*closed, *kept[-1:]])


def last_boxed(value: Any) -> str:
    r"""The content of the last `\boxed{}` (or `\fbox{}`, or `\boxed 3`). Raises BadValue without one that is closed."""
    text = text_of(value)
    last_box = deque(re.finditer(r"\\(?:boxed|fbox)(?![A-Za-z])", text), maxlen=1)
    if not last_box:
        raise BadValue("has no \\boxed{} answer")
    rest = text[last_box[0].end() :].lstrip()
    if not rest.startswith("{"):
        return re.split(r"[\s$]", rest, maxsplit=1)[0]
    depth = 0
    for index, character in enumerate(rest):
        escaped = index > 0 and rest[index - 1] == "\\"
        depth += 0 if escaped else (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:index]
    raise BadValue("has a \\boxed{ that is never closed")


def _gsm8k_answer(value: Any) -> str:
    _, mark, answer = text_of(value).rpartition("####")
    if mark:
        return answer.replace(",", "")
    raise BadValue("has no '#### answer' line")


def _without_unit(value: Any) -> str:
    """`9 (apples)` becomes `9`. An answer that is entirely in parentheses stays as it is."""
    text = text_of(value)
    return re.sub(r"(?:(?<!\s)\s++)?\([^()]*+\)$", "", text) or text


def _without_dollars(value: Any) -> str:
    answers = value if isinstance(value, list) else [value]
    return ", ".join(text_of(answer).replace("$", "") for answer in answers)


_LATEX_DEBRIS = re.compile(r"(?:\s|\\\\|\\noindent|\\end\{problem\})++")


def _odyssey_question(value: Any) -> str:
    return without_end(_LATEX_DEBRIS, text_of(value))


def _odyssey_answer(value: Any) -> str:
    bare = without_end(_LATEX_DEBRIS, text_of(value)).replace("\\$", "").replace("$", "")
    return bare.strip().removesuffix(".")


READY_MADE: dict[str, Mapping] = {
    # openai/gsm8k
    "gsm8k": Mapping(
        ("question",),
        "answer",
        "answer",
        read_answer=_gsm8k_answer,
        read_solution=lambda value: re.sub(r"<<[^<>]*>>", "", text_of(value).rpartition("####")[0]),
        box_solution=True,
    ),
    # arkilpatel/SVAMP
    "svamp": Mapping(("Body", "Question"), "Answer", id="ID"),
    # Fields as in the evaluation harness of Qwen2.5-Math
    "asdiv": Mapping(("body", "question"), "answer", read_answer=_without_unit),
    "mawps": Mapping(("input",), "target"),
    # Hendrycks et al. 2021
    "math": Mapping(("problem",), "solution", "solution", read_answer=last_boxed),
    # HuggingFaceH4/MATH-500
    "math500": Mapping(("problem",), "answer", "solution", id="unique_id", box_solution=True),
    # OpenBMB/OlympiadBench, English and text only
    "olympiadbench": Mapping(
        ("context", "question"),
        "final_answer",
        "solution",
        id="id",
        read_answer=_without_dollars,
        read_solution=lambda value: text_of((value or [""])[0] if isinstance(value, list) else value),
        box_solution=True,
    ),
    # protagolabs/odyssey-math; a row's id is its key
    "math_odyssey": Mapping(
        ("question",),
        "answer",
        "reasoning",
        read_question=_odyssey_question,
        read_answer=_odyssey_answer,
        read_solution=_odyssey_question,
        box_solution=True,
    ),
    # zwhe99/DeepMath-103K; each row has three solutions of about 16 KB
    "deepmath": Mapping(
        ("question",),
        "final_answer",
        "r1_solution_1",
        read_answer=_without_dollars,
        box_solution=True,
        omit=("r1_solution_2", "r1_solution_3"),
    ),
}
