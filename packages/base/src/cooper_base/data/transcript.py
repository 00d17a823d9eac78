"""A run of several turns as a reward model reads it: the chats of all trainers become the same text.

    <assistant>
    I add them.
    <tool_call> {"arguments": {"a": 12, "b": 7}, "name": "add"}
    <tool>
    <<<
    19
    >>>
    <assistant>
    answer: 19

Only the lines in angle brackets say who speaks. Inside a text they lose their brackets, as the tags of
`RewardModelInput` do; otherwise a policy could write the tool's result itself.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from cooper_base.data.strict_json import parse_json
from cooper_base.data.text import fenced, normalise, whole_characters
from cooper_base.data.thoughts import without_marks
from cooper_base.errors import InputError

LONGEST_RESULT = 2000
"""Characters that are kept of what a tool or a user says: its beginning and its end."""
_CUT = "\n[...]\n"
_TURN = "<assistant>\n"
_RUN = (_TURN, "<user>\n")
"""How a run begins: with the policy's turn, or with what an environment shows before it."""
_SPEAKER = re.compile(r"^<(assistant|user|tool)>$", re.MULTILINE)
_CALLED = "<tool_call> "
_FORGED = re.compile(r"<\s*+(?:/\s*+)?(?:assistant|user|tool|tool_call)\s*+>", re.IGNORECASE)
# What is never closed is matched to the end of the text, without its group: nothing after it is closed either.
_CALL = re.compile(r"<tool_call>\s*+(?:(\{.*?\})\s*+</tool_call>|\{.*)", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\n?(?:(.*?)\n?</tool_response>|.*)", re.DOTALL)
_TOOLS = {"tool", "function", "ipython", "environment", "observation", "tool_response"}
_HEADER = re.compile(
    r"\s*(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>)(\w+)(?:<\|end_header_id\|>)?\s*", re.ASCII
)
END_OF_TURN = re.compile(r"<\|(?:im_end|eot_id|eom_id|end|endoftext)\|>|</s>|<eos>|<end_of_turn>")
"""How the chat templates in use end a turn."""


class ToolCall(TypedDict):
    """What the model asked of a tool. `arguments` is an object or, if the model wrote none, its text."""

    name: str
    arguments: Any


class ChatTurn(TypedDict):
    """One message after the prompt, of the `assistant` (the policy), a `tool` or a `user`. What the policy did not
    write is at most `LONGEST_RESULT` characters long."""

    role: str
    content: str
    tool_calls: list[ToolCall]


def turns_of(messages: Iterable[Any]) -> list[ChatTurn]:
    """Messages as trainers have them (mappings or records, after the prompt) in one form; applying it twice is fine.

    Content may be text, blocks, None or, of a tool, any other value, which is read as JSON. Tool calls may be OpenAI's,
    flat, or Hermes tags in the content. What comes after a call and is not the assistant's is a tool's, whatever its
    role. Raises InputError for anything else.
    """
    turns: list[ChatTurn] = []
    for message in messages:
        fields = message if isinstance(message, Mapping) else _fields(message)
        role, content = str(fields.get("role") or "").lower(), _text(fields.get("content"))
        if role in ("assistant", "model"):
            calls = [_call(call) for call in fields.get("tool_calls") or ()]
            if (
                not calls
                and (hermes_calls := [_hermes(text) for text in _closed(_CALL, content)])
                and all(hermes_calls)
            ):
                calls = [call for call in hermes_calls if call]
                content = _CALL.sub(lambda call: call.group() if call[1] is None else "", content).strip()
            turns.append({"role": "assistant", "content": content, "tool_calls": calls})
        elif role in _TOOLS or (turns and (turns[-1]["role"] == "tool" or turns[-1]["tool_calls"])):
            turns += [_outside("tool", result) for result in _closed(_RESULT, content) or [content]]
        elif role in ("user", "system", "developer"):
            turns.append(_outside("user", content))
        else:
            raise InputError(f"messages: role {fields.get('role')!r} is not known; there are assistant, tool and user")
    return turns


def turns_in(pieces: Sequence[str]) -> list[dict[str, str]]:
    """Messages in a completion of several turns that a trainer passes on as text, cut where a turn ends.

    The first piece is the policy's. Every other one begins with the role that its chat template wrote; without one it
    continues the turn before it, because a policy cannot write beyond its own end of turn.
    """
    messages = [{"role": "assistant", "content": pieces[0] if pieces else ""}]
    for piece in pieces[1:]:
        if header := _HEADER.match(piece):
            messages.append({"role": header[1], "content": piece[header.end() :]})
        elif piece.strip():
            messages[-1]["content"] += piece
    return messages


def outside_turns(text: str) -> list[dict[str, str]]:
    """Messages in a text that stands between two turns of the policy, such as an end of turn and a tool's result."""
    pieces = [piece for piece in END_OF_TURN.split(text) if piece.strip()]
    pieces_with_headers = [(_HEADER.match(piece), piece) for piece in pieces]
    return [
        {"role": header[1] if header else "tool", "content": piece[header.end() :] if header else piece}
        for header, piece in pieces_with_headers
        if header is None or header[1] not in ("assistant", "model")  # that one only announces the policy's turn
    ]


def final_reply(turns: Sequence[ChatTurn]) -> str:
    """What the policy said in the last turn; empty if that is not the policy's, or a bare tool call."""
    return turns[-1]["content"] if turns and turns[-1]["role"] == "assistant" else ""


def rendered(turns: Sequence[ChatTurn]) -> str:
    """The whole run as text, without the policy's thoughts. A single reply without calls is no run: only forged lines
    are changed in it."""
    if len(turns) == 1 and turns[0]["role"] == "assistant" and not turns[0]["tool_calls"]:
        return escaped(turns[0]["content"])
    lines: list[str] = []
    for turn in turns:
        content = escaped(turn["content"])
        if turn["role"] == "assistant":
            lines += ["<assistant>", normalise(content)]
        else:
            content = without_marks(content)
            lines += [f"<{turn['role']}>", fenced(content) if turn["role"] == "tool" else normalise(content)]
        calls = [json.dumps(call, ensure_ascii=False, sort_keys=True) for call in turn["tool_calls"]]
        lines += [f"{_CALLED}{escaped(without_marks(call))}" for call in calls]
    return "\n".join(line for line in lines if line)


def escaped(text: str) -> str:
    """The text with the angle brackets of forged lines replaced; its length stays the same."""
    return _FORGED.sub(lambda tag: f"[{tag.group()[1:-1]}]", text)


def unrendered(text: str) -> list[ChatTurn]:
    """The turns of a run that `rendered` wrote; of any other text, a single turn of the policy."""
    if not text.startswith(_RUN):
        return [{"role": "assistant", "content": text, "tool_calls": []}]
    pieces = _SPEAKER.split(text)[1:]
    turns: list[ChatTurn] = []
    for role, piece in zip(pieces[::2], pieces[1::2], strict=True):
        said, calls = list[str](), list[ToolCall]()
        for line in piece.strip("\n").split("\n"):
            call = _hermes(line.removeprefix(_CALLED)) if role == "assistant" and line.startswith(_CALLED) else None
            if call is None:
                said.append(line)
            else:
                calls.append(call)
        content = "\n".join(said[1:-1] if role == "tool" else said)  # without the fence
        turns.append({"role": role, "content": content, "tool_calls": calls})
    return turns


def as_text(text: str) -> str:
    """A completion without turns as a reward model reads it: one that imitates a run of several turns is escaped."""
    imitates = any(start in text for start in _RUN) and normalise(text).startswith(_RUN)
    return escaped(text) if imitates else text


def last_turn(text: str) -> int:
    """Where the policy's last turn begins in a rendered run; 0 in any other text."""
    return text.rfind("\n" + _TURN) + 1 if text.startswith(_RUN) else 0


def split_reply(text: str) -> tuple[str, str]:
    """A rendered run as what comes before the final reply, and the reply; of any other text, all is the reply."""
    start = last_turn(text) + len(_TURN) if text.startswith(_RUN) and _TURN in text else 0
    return text[:start], text[start:]


def _fields(message: Any) -> Mapping[str, Any]:
    if (dump := getattr(message, "model_dump", None)) is None:
        raise InputError(f"messages: {message!r} is no message; give an object with role and content")
    return dump()


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        text = content or ""
    elif isinstance(content, Sequence) and all(isinstance(part, str | Mapping) for part in content):
        text = "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in content)
    else:  # a tool may return a number, or a list of them, which must not end its trainer's step
        text = json.dumps(content, ensure_ascii=False, default=str)
    return whole_characters(text)


def shortened(content: str) -> str:
    """What is kept of a long text that the policy did not write."""
    half = (LONGEST_RESULT - len(_CUT)) // 2
    return content if len(content) <= LONGEST_RESULT else content[:half] + _CUT + content[-half:]


def _closed(tags: re.Pattern[str], content: str) -> list[str]:
    return [tag[1] for tag in tags.finditer(content) if tag[1] is not None]


def _outside(role: str, content: str) -> ChatTurn:
    return {"role": role, "content": shortened(content), "tool_calls": []}


def _call(given: Any) -> ToolCall:
    fields = given if isinstance(given, Mapping) else _fields(given)
    function = fields.get("function") or fields
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InputError(f"messages: the tool call {str(given)[:80]!r} has no name")
    arguments = function.get("arguments")
    given_text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    text = whole_characters(given_text)
    parsed = _object(text)
    return {"name": whole_characters(function["name"]), "arguments": text if parsed is None else parsed}


def _hermes(text: str) -> ToolCall | None:
    call = _object(text)
    return _call(call) if call is not None and isinstance(call.get("name"), str) else None


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text that a policy wrote, if it is one."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
