"""Makes rows of what trainers write as tables of columns, as lists of one, as graphs of messages and as episodes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Record = dict[str, Any]
CUT = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length")
"""Conditions by which verifiers ends a rollout that is not finished."""
_COLUMNS = (("prompt", "completion"), ("prompt", "responses"))


def unrolled(record: Record) -> list[Record]:
    """The rows of a line: those of a W&B table (`columns` and `data`), those of a table whose values are columns, the
    line with its lists of one opened, or else the line itself.
    """
    names, data = record.get("columns"), record.get("data")
    if isinstance(names, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return [dict(zip(map(str, names), row, strict=False)) for row in data]
    for pair in _COLUMNS:
        first, second = (record.get(name) for name in pair)
        if isinstance(first, list) and isinstance(second, list) and len(first) == len(second) and _is_column(second):
            columns = {name: value for name, value in record.items() if _has_length(value, len(first))}
            return [{name: column[i] for name, column in columns.items()} for i in range(len(first))]
    values = [value for name, value in record.items() if name != "idx"]
    if "idx" in record and values and all(_has_length(value, 1) for value in values):
        return [{name: value if name == "idx" else value[0] for name, value in record.items()}]
    return [record]


def number(value: Any) -> float | None:
    """A number, also as text or alone in a list; None for anything else, for NaN and for infinity."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, int | float | str):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def _has_length(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length


def _is_column(values: Sequence[Any]) -> bool:
    """Whether a list holds completions, and is not the messages of one."""
    return bool(values) and not any(isinstance(value, Mapping) and "role" in value for value in values)


def record_of_gym(record: Record) -> Iterator[Record]:
    """A rollout of NeMo-Gym with its Responses objects as messages."""
    asked, response = record["responses_create_params"], record["response"]
    asked = asked.get("input") if isinstance(asked, Mapping) else None
    output = response.get("output") if isinstance(response, Mapping) else None
    prompt = [turn for turn in asked if isinstance(turn, Mapping)] if isinstance(asked, list) else asked
    yield {**record, "prompt": prompt, "messages": [turn for item in output or () for turn in _turns(item)]}


def _turns(item: Any) -> list[Record]:
    """A Responses object as messages; none for a thought."""
    kind = item.get("type", "message") if isinstance(item, Mapping) else ""
    if kind == "message":
        return [{"role": item.get("role", "assistant"), "content": item.get("content")}]
    if kind == "function_call":
        call = {"name": str(item.get("name")), "arguments": item.get("arguments")}
        return [{"role": "assistant", "content": "", "tool_calls": [call]}]
    return [{"role": "tool", "content": str(item.get("output", ""))}] if kind == "function_call_output" else []


def episodes_of_prime(record: Record) -> Iterator[Record]:
    """The traces of an episode that train the policy. The reward is the sum of score times weight."""
    for trace in record["traces"] if isinstance(record["traces"], list) else ():
        if not isinstance(trace, Mapping) or (trace.get("agent") or {}).get("trainable") is False:
            continue
        rewards = trace.get("rewards") or {}
        parts = [one for one in rewards.values() if isinstance(one, Mapping)] if isinstance(rewards, Mapping) else []
        paid = [
            score * (number(one.get("weight", 1)) or 0.0)
            for one in parts
            if (score := number(one.get("score"))) is not None
        ]
        path = _last_branch(trace.get("nodes") or [])
        first = next((place for place, node in enumerate(path) if node.get("sampled")), len(path))
        turns = [node.get("message") for node in path]
        calls = [call for call in trace.get("calls") or () if not call.get("error")]
        yield {
            "task": trace.get("task"),
            "prompt": turns[:first],
            "messages": turns[first:] if first < len(path) else None,
            "reward": sum(paid) if paid else None,
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


def trajectories_of_rllm(record: Record) -> Iterator[Record]:
    """The trajectories of an episode, each as the chat of its last step."""
    for trajectory in record["trajectories"] if isinstance(record["trajectories"], list) else ():
        steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
        if not steps or not isinstance(chat := steps[-1].get("chat_completions"), list):
            continue
        first = next((i for i, turn in enumerate(chat) if turn.get("role") == "assistant"), len(chat))
        reward = trajectory.get("reward")
        reward = steps[-1].get("reward") if reward is None else reward
        yield {**record, "prompt": chat[:first], "messages": chat[first:] or None, "reward": reward}
