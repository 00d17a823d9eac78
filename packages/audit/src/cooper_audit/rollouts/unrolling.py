"""Makes rows of what trainers write as tables of columns, as lists of one, as graphs of messages and as episodes, and
values of texts that hold them."""

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from cooper_base.data.strict_json import check_values

DumpRecord = dict[str, Any]
"""A record of a trainer's dump, before it is read as a rollout."""
CUT = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length", "compaction_failed")
"""Conditions by which verifiers ends a rollout that is not finished."""
_SAYS_HOW_IT_ENDED = ("ok", "error", "errors", "is_timeout", "timed_out", "failure_reason", "termination_reason")
"""Fields of a trace that say what went wrong with it."""
INSPECT_SCORES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters for a right answer, a part of one, a wrong one and none."""
_COLUMNS = (("prompt", "completion"), ("prompt", "responses"))
_TEXTS, _PAID = ("completions", "responses", "outputs", "generations", "samples"), ("rewards", "scores")
"""Columns of a line that holds a group: its completions, and what each was paid."""
TRACKIO_TYPES = ("trackio.table", "trackio.trace")
"""How trackio marks a table, and a trace of messages with what a trainer says of them."""
LOGGED = "logged step"
"""The field of a record of trackio with the step under which it was logged."""
EVALUATION = re.compile(r"(?:^|[/_. -])(?:eval|evaluation|val|valid|validation|test)(?:[/_. -]|$)", re.IGNORECASE)
"""What a table, a trace or a file is called that holds evaluations."""


def unrolled(record: DumpRecord) -> list[DumpRecord]:
    """The rows of a line: those of a W&B table (`columns` and `data`), of trackio's tables and traces, of an
    Inspect log, of a table whose values are columns or of a group, the line with its lists of one opened, or else the
    line itself.
    """
    names, data = record.get("columns"), record.get("data")
    if isinstance(names, list) and _all_are(data, list):
        return [dict(zip(map(str, names), row, strict=False)) for row in data]
    if logged := [(name, entry) for name, value in record.items() for entry in _logged(value)]:
        return [row for name, entry in logged for row in _rows_of(entry, record.get(LOGGED), name)]
    if "eval" in record and _all_are(samples := record.get("samples"), dict):
        return samples
    for pair in _COLUMNS:
        first, second = (record.get(name) for name in pair)
        if isinstance(first, list) and isinstance(second, list) and len(first) == len(second) and _is_column(second):
            columns = {name: value for name, value in record.items() if _has_length(value, len(first))}
            whole = {name: value for name, value in record.items() if not isinstance(value, list | Mapping)}
            return [whole | {name: column[i] for name, column in columns.items()} for i in range(len(first))]
    if group := _group_of(record):
        return group
    values = [value for name, value in record.items() if name != "idx"]
    if "idx" in record and values and all(_has_length(value, 1) for value in values):
        return [{name: value if name == "idx" else value[0] for name, value in record.items()}]
    return [record]


def _group_of(record: DumpRecord) -> list[DumpRecord]:
    """The completions of a line that is a group, several texts and as many rewards to one prompt; empty if not."""
    paid = next((name for name in _PAID if isinstance(record.get(name), list)), None)
    length = len(record[paid]) if paid else 0
    texts = next((name for name in _TEXTS if _has_length(record.get(name), length) and _is_column(record[name])), None)
    if paid is None or texts is None:
        return []
    columns = {texts: "completion", paid: "reward", "advantages": "advantage"}
    rest = {name: value for name, value in record.items() if name not in columns}
    columns = {name: column for name, column in columns.items() if _has_length(record.get(name), length)}
    return [rest | {column: record[name][i] for name, column in columns.items()} for i in range(length)]


def _logged(value: Any) -> list[Mapping[str, Any]]:
    """The tables and traces of trackio in a value, which may be a list of them."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, Mapping) and entry.get("_type") in TRACKIO_TYPES]


def _rows_of(entry: Mapping[str, Any], step: Any, name: str) -> list[DumpRecord]:
    """The rows of a table, or a trace. What an evaluation logged is marked, so that it is of no format of rollouts."""
    told = entry.get("metadata")
    named = [name, str(told.get("split", "")) if isinstance(told, Mapping) else ""]
    if any(map(EVALUATION.search, named)):
        return [{"evaluation": name}]
    if entry["_type"] == TRACKIO_TYPES[0]:
        return rows if _all_are(rows := entry.get("_value"), dict) else []
    return [{"trackio_trace": entry.get("messages"), "metadata": told or {}, LOGGED: step}]


LARGEST = 3.4e38
"""No larger number is a reward: trainers compute with single precision."""


def number(value: Any) -> float | None:
    """A number, also as text or alone in a list; None for anything else, for NaN and for what is too large."""
    result = _as_float(value)
    return result if result is not None and abs(result) <= LARGEST else None


def total(values: Iterable[Any]) -> float | None:
    """The sum of those that are numbers, None if there is none. NaN is no opinion and counts in nothing. With infinity,
    or a number that is too large, the sum is infinity.
    """
    found = [value for value in map(_as_float, values) if value is not None and not math.isnan(value)]
    if any(abs(value) > LARGEST for value in found):
        return math.inf
    return math.fsum(found) if found else None


def _as_float(value: Any) -> float | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf


def parse_dump(text: str) -> Any:
    """A JSON text as Python's writers leave it: with NaN, with Infinity, and with halves of characters, which become
    question marks because no file can hold them. Raises ValueError, and RecursionError where it is nested too deeply.
    """
    check_values(text)
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _all_are(values: Any, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _has_length(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length


def _is_column(values: Sequence[Any]) -> bool:
    """Whether a list holds completions, and is not the messages of one."""
    return bool(values) and not any(isinstance(value, Mapping) and "role" in value for value in values)


def record_of_gym(record: DumpRecord) -> Iterator[DumpRecord]:
    """A rollout of NeMo-Gym with its Responses objects as messages."""
    asked, response = record["responses_create_params"], record["response"]
    asked = asked.get("input") if isinstance(asked, Mapping) else None
    output = response.get("output") if isinstance(response, Mapping) else None
    prompt = [turn for turn in asked if isinstance(turn, Mapping)] if isinstance(asked, list) else asked
    yield {**record, "prompt": prompt, "messages": [turn for item in output or () for turn in _turns(item)]}


def _turns(item: Any) -> list[DumpRecord]:
    """A Responses object as messages; none for a thought."""
    kind = item.get("type", "message") if isinstance(item, Mapping) else ""
    if kind == "message":
        return [{"role": item.get("role", "assistant"), "content": item.get("content")}]
    if kind == "function_call":
        call = {"name": str(item.get("name")), "arguments": item.get("arguments")}
        return [{"role": "assistant", "content": "", "tool_calls": [call]}]
    return [{"role": "tool", "content": str(item.get("output", ""))}] if kind == "function_call_output" else []


def episodes_of_prime(record: DumpRecord) -> Iterator[DumpRecord]:
    """The traces of an episode that train the policy. The reward is the sum of score times weight."""
    for trace in record["traces"] if isinstance(record["traces"], list) else ():
        if not isinstance(trace, Mapping) or (trace.get("agent") or {}).get("trainable") is False:
            continue
        rewards = trace.get("rewards") or {}
        parts = [part for part in rewards.values() if isinstance(part, Mapping)] if isinstance(rewards, Mapping) else []
        paid = total(
            score * (number(part.get("weight", 1)) or 0.0)
            for part in parts
            if (score := total([part.get("score")])) is not None
        )
        path = _last_branch(trace.get("nodes") or [])
        first = next((place for place, node in enumerate(path) if node.get("sampled")), len(path))
        turns = [node.get("message") for node in path]
        calls = [call for call in trace.get("calls") or () if not call.get("error")]
        yield {
            **{name: trace[name] for name in _SAYS_HOW_IT_ENDED if name in trace},
            "task": trace.get("task"),
            "prompt": turns[:first],
            "messages": turns[first:] if first < len(path) else None,
            "reward": paid,
            "cut": trace.get("stop_condition") in CUT or (calls[-1].get("finish_reason") if calls else None),
        }


def _last_branch(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The messages from a root of the graph to its last leaf. A loop, which no trainer writes, ends the walk."""
    parents = {node.get("parent") for node in nodes}
    place: Any = max((i for i in range(len(nodes)) if i not in parents), default=None)
    path: list[Mapping[str, Any]] = []
    while isinstance(place, int) and 0 <= place < len(nodes) and len(path) < len(nodes):
        path.append(nodes[place])
        place = nodes[place].get("parent")
    return path[::-1]


def trajectories_of_rllm(record: DumpRecord) -> Iterator[DumpRecord]:
    """The trajectories of an episode, each as the chat of its last step."""
    for trajectory in record["trajectories"] if isinstance(record["trajectories"], list) else ():
        steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
        if not steps or not isinstance(chat := steps[-1].get("chat_completions"), list):
            continue
        first = _first_reply(chat)
        reward = trajectory.get("reward")
        reward = steps[-1].get("reward") if reward is None else reward
        yield {**record, "prompt": chat[:first], "messages": chat[first:] or None, "reward": reward}


def chats_in(name: str) -> Callable[[DumpRecord], Iterator[DumpRecord]]:
    """Rows of the messages under this name, of which the first reply and all behind it are the policy's."""

    def rows_of_chat(record: DumpRecord) -> Iterator[DumpRecord]:
        given = record[name]
        turns = [turn for turn in given if isinstance(turn, Mapping)] if isinstance(given, list) else []
        first = _first_reply(turns)
        yield {**record, "prompt": turns[:first], "messages": turns[first:] or None}

    return rows_of_chat


def trajectories_of_art(record: DumpRecord) -> Iterator[DumpRecord]:
    """A row of a table of trajectories, or the trajectories of a group, whose messages of the policy are choices."""
    for trajectory in record.get("trajectories", [record]):
        given = trajectory.get("messages") or trajectory.get("messages_and_choices") or []
        turns = [turn | turn["message"] if isinstance(turn.get("message"), Mapping) else turn for turn in given]
        turns = [{**turn, "tool_calls": _calls(turn.get("tool_calls"))} for turn in turns]
        sampled = [turn.get("trainable") or "finish_reason" in turn for turn in turns]
        first = sampled.index(True) if True in sampled else _first_reply(turns)
        reason = turns[-1].get("finish_reason") if turns else None
        yield {**trajectory, "prompt": turns[:first], "messages": turns[first:] or None, "cut": reason}


def _calls(calls: Any) -> Any:
    """Tool calls, which a table holds as text."""
    return parse_dump(calls) if isinstance(calls, str) and calls else calls


def _first_reply(turns: Sequence[Mapping[str, Any]]) -> int:
    return next((place for place, turn in enumerate(turns) if turn.get("role") == "assistant"), len(turns))


def sample_of_inspect(record: DumpRecord) -> Iterator[DumpRecord]:
    """A sample of an Inspect log with its scores as numbers. Messages of the input are no completion."""
    turns = [
        {**turn, "tool_calls": list(map(_call_of_inspect, turn.get("tool_calls") or ()))} for turn in record["messages"]
    ]
    first = _first_reply([{} if turn.get("source") == "input" else turn for turn in turns])
    scores = {name: INSPECT_SCORES.get(str(score["value"]), score["value"]) for name, score in record["scores"].items()}
    choices = record["output"].get("choices") or [{}]
    cut = choices[0].get("stop_reason")
    yield {**record, "prompt": turns[:first], "messages": turns[first:] or None, "scores": scores, "cut": cut}


def _call_of_inspect(call: Mapping[str, Any]) -> DumpRecord:
    return {"name": call.get("function"), "arguments": call.get("arguments")}


def as_json(text: str) -> Any:
    """The value of a JSON text, or the text itself where it is none."""
    try:
        return parse_dump(text)
    except (ValueError, RecursionError):
        return text


LONGEST_LITERAL = 1 << 20
"""A longer text is not read as Python prints values, because its reader of literals takes many times its memory."""
_MESSAGES = re.compile(r"\s*+\[\s*+\{\s*+(?:'role'|\"role\"|'content'|\"content\")\s*+:")


def as_value(text: str) -> Any:
    """The value of a text, as JSON or as Python prints it into a table, or the text itself where it is none."""
    value = as_json(text)
    if not isinstance(value, str) or len(text) > LONGEST_LITERAL:
        return value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def messages_in(text: str) -> Any:
    """The messages that a text is, or the text itself."""
    value = as_value(text) if _MESSAGES.match(text) and len(text) <= LONGEST_LITERAL else text
    is_chat = isinstance(value, list) and all(isinstance(turn, Mapping) and "content" in turn for turn in value)
    return value if is_chat else text
