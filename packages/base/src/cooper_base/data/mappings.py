"""Turns rows into problems: which fields to read, and how; with mappings for widely used data sets."""

import math
import re
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cooper_base.data.problem import Problem
from cooper_base.data.readers import DataRow
from cooper_base.data.strict_json import parse_json
from cooper_base.data.text import without_end
from cooper_base.errors import InputError, did_you_mean

_DEMAND = "set {0}.format, or {0}.question and {0}.answer"
LONGEST_BEGINNING = 200
"""Characters; a longer turn of the assistant that names the answer in its last line is no mere beginning of a reply."""
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
    if isinstance(value, int):
        return str(value)
    text = format(Decimal(repr(float(value))), "f")  # the shortest digits that give the number back, without exponent
    return text.rstrip("0").rstrip(".") if "." in text else text


MISSING = object()
"""What `field_of` returns for a field that a row does not have."""


def field_of(fields: Any, name: str) -> Any:
    """The field of this name. By a dotted name such as `reward_model.ground_truth`, a field inside another one, which
    may be JSON text; with a number (`golden_answers.0`), an item of a list. `MISSING` if there is none."""
    if isinstance(fields, str):
        try:
            fields = parse_json(fields)
        except ValueError:
            return MISSING
    if isinstance(fields, list):
        first, _, rest = name.partition(".")
        item = fields[int(first)] if first.isdecimal() and int(first) < len(fields) else MISSING
        return item if item is MISSING or not rest else field_of(item, rest)
    if not isinstance(fields, dict):
        return MISSING
    if name in fields:
        return fields[name]
    dots = [place for place, character in enumerate(name) if character == "."]
    outer = next((place for place in reversed(dots) if name[:place] in fields), None)
    return MISSING if outer is None else field_of(fields[name[:outer]], name[outer + 1 :])


@dataclass(frozen=True)
class Mapping:
    """The fields of a row and how to read each. `question` fields are joined as sentences; the last must have text. A
    name may be dotted; see `field_of`."""

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
    question_of_chat: str | None = None
    """Field with the bare question of a chat, which rows may lack; else it is the last user turn."""
    drops_reply: bool = False
    """Whether a last turn of the assistant is always an answer and no part of the prompt."""
    pass_rate: str | None = None
    """Field with the share of right answers that was measured before."""
    solution_required: bool = True
    """If false, a row may lack the field with the solution, as in held-out problems, whose solutions nothing reads."""
    section: str = "problems"
    """Where these settings stand in the configuration, for messages."""


def map_row(row: DataRow, mapping: Mapping, fallback_id: str, without_reply: list[str] | None = None) -> Problem:
    """Make a problem from a row. `metadata` gets all fields that are not read or omitted.

    A last turn of the assistant that already holds the reference answer is left out of the chat; `without_reply` then
    gets the row's location.
    Raises InputError for a field that is missing or of the wrong type, and BadValue for one without an answer.
    """
    messages = _read_messages(row, mapping.messages, mapping.section) if mapping.messages else None
    demand = _DEMAND.format(mapping.section)
    parts = [_read(row, name, mapping.read_question, demand) for name in mapping.question]
    if mapping.question_of_chat and field_of(row.fields, mapping.question_of_chat) not in (MISSING, None, ""):
        parts = [_read(row, mapping.question_of_chat, text_of, demand)]
    if messages and not parts:
        parts = [next(turn["content"].strip() for turn in reversed(messages) if turn["role"] == "user")]
    question = mapping.question[-1] if mapping.question else mapping.messages
    required, answer = mapping.answer_required, ""
    if required or field_of(row.fields, mapping.answer) is not MISSING:
        with nullcontext() if required else suppress(InputError, BadValue):
            answer = _read(row, mapping.answer, mapping.read_answer, demand)
    for name, text in ((question, parts[-1]), (mapping.answer, answer)):
        if not text and (required or name != mapping.answer):
            raise BadValue(f"field {name!r} is empty")
    has_reply = messages and messages[-1]["role"] == "assistant"
    if messages and has_reply and (mapping.drops_reply or states(messages[-1]["content"], answer)):
        messages = messages[:-1]
        if without_reply is not None:
            without_reply.append(row.location)
    solution = ""
    if mapping.solution and (mapping.solution_required or field_of(row.fields, mapping.solution) is not MISSING):
        solution = _read(row, mapping.solution, mapping.read_solution, demand)
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


def states(reply: str, answer: str) -> bool:
    """Whether an assistant's turn already holds the answer: in a box, at its end, or in the last line of a long turn.

    Else the turn is the beginning of a reply, such as `<think>` or "Let us see."
    """
    with suppress(BadValue):
        if last_boxed(reply) == answer:
            return True
    bare, line = (text.strip(" .!$*()[]{}\n\t") for text in (answer, reply.rstrip().rpartition("\n")[2]))
    start = line.rfind(bare) if bare else -1
    if start < 0:
        return False
    before, after = line[:start], line[start + len(bare) :]
    in_number = before[-1:] in (".", ",") and before[-2:-1].isdigit()
    is_word = not (before[-1:].isalnum() or after[:1].isalnum() or in_number)
    return is_word and (not after or len(reply) > LONGEST_BEGINNING)


def _value(row: DataRow, name: str, demand: str) -> Any:
    """The field of this name. Raises InputError if it is missing."""
    if (value := field_of(row.fields, name)) is not MISSING:
        return value
    names: dict[str, Any] = row.fields
    inside = ""
    outer = name.rpartition(".")[0]
    while outer and not isinstance(field_of(row.fields, outer), dict):
        outer = outer.rpartition(".")[0]
    if outer:
        names, inside = field_of(row.fields, outer), f" in {outer!r}"
    remedy = did_you_mean(name, names, f"the row has{inside} {', '.join(map(repr, names))};")
    raise InputError(f"{row.location}: field {name!r} is missing; {remedy} {demand}")


def _read(row: DataRow, name: str, read: Callable[[Any], str], demand: str) -> str:
    value = _value(row, name, demand)
    try:
        return read(value).strip()
    except TypeError as error:
        raise InputError(f"{row.location}: field {name!r}: {error}; {_remedy(value, name)}") from error
    except BadValue as error:
        raise BadValue(f"field {name!r} {error}") from error


def _remedy(value: Any, name: str) -> str:
    """What to do about a field that is no text."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
        return f"a chat is read with messages: {name}"
    if isinstance(value, list):
        return f"name one of its items, such as {name}.0, or change the data"
    return "choose another field or change the data"


def _read_messages(row: DataRow, name: str, section: str) -> list[dict[str, str]]:
    """A chat: turns with `role` and `content`, also as JSON text. It ends with the user, or with the reply's start."""
    turns = _value(row, name, f"set {section}.messages")
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


def _read_share(row: DataRow, name: str, section: str) -> float | None:
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


def _single_answer(value: Any) -> str:
    """The answer of a list of one, also as JSON text (Skywork-OR1), and of `{"target": …}` (Search-R1)."""
    if isinstance(value, str) and value.lstrip()[:2] in ('["', "['"):
        with suppress(ValueError):
            value = parse_json(value)
    if isinstance(value, dict) and "target" in value:
        return _single_answer(value["target"])
    if not isinstance(value, list):
        return text_of(value)
    if len(value) != 1:
        raise BadValue(f"is a list of {len(value)} answers; a problem has one reference answer")
    return _single_answer(value[0])


_LATEX_DEBRIS = re.compile(r"(?>(?:\s|\\\\|\\noindent|\\end\{problem\})+)")


def _odyssey_question(value: Any) -> str:
    return without_end(_LATEX_DEBRIS, text_of(value))


def _odyssey_answer(value: Any) -> str:
    bare = without_end(_LATEX_DEBRIS, text_of(value)).replace("\\$", "").replace("$", "")
    return bare.strip().removesuffix(".")


READY_MADE: dict[str, Mapping] = {  # a name also stands in `Format` of cooper_verify.problems.config, for its users
    # What verl's scripts in examples/data_preprocess write. The prompt wraps the question in instructions; some keep
    # the bare question, which a reward model should read.
    "verl": Mapping(
        (),
        "reward_model.ground_truth",
        messages="prompt",
        question_of_chat="extra_info.question",
        read_answer=_single_answer,
    ),
    # allenai's RLVR data sets, as rlvr_tokenize_v3 reads them: a last turn of the assistant is left out. `dataset`
    # names the verifier of a row; `rule_field: dataset` makes it the rule.
    "open_instruct": Mapping((), "ground_truth", messages="messages", drops_reply=True, read_answer=_single_answer),
    # PrimeIntellect's data sets for prime-rl (INTELLECT-2, SYNTHETIC-2): `verification_info` is JSON text
    "prime_rl": Mapping(("prompt",), "verification_info.ground_truth", id="problem_id", read_answer=_single_answer),
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
