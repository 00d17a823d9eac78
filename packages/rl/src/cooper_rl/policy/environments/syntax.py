"""How a policy writes a tool call, and how the tool's result is written in what the policy reads next."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cooper_base.config.user_functions import load_object
from cooper_base.errors import InputError, value_or_raise
from cooper_rl.data.chat_rendering import ChatFault, rendered_each
from cooper_rl.data.prompts import PromptEncoder


class ToolSyntax(Protocol):
    """Messages are those of OpenAI's chats."""

    def message(self, text: str, token_ids: Sequence[int], before: Sequence[int]) -> Mapping[str, Any]:
        """A turn of the policy as a message, with its `tool_calls`. `text` is without special tokens and ends before a
        stop string; `token_ids` are as sampled, and `before` is everything before them."""
        ...

    def results(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text that the policy reads after its turn: these messages of tools (`name`, `content`), and the beginning
        of its next turn."""
        ...


class ChatSyntax:
    """Calls and results as the tokenizer's chat template has them, as in TRL.

    Calls are parsed by the tokenizer's `response_template`. Without one, and without a chat template, they are Hermes
    tags: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, answered by `<tool_response>`.
    """

    def __init__(self, encoder: PromptEncoder, tools: Sequence[dict[str, Any]]) -> None:
        self._tokenizer: Any = encoder.tokenizer
        self._chat, self._tools = encoder.chat, list(tools)
        self._arguments = encoder.config.chat_arguments
        probe = {"role": "tool", "name": "probe", "content": "42"}
        if tools and probe["content"] not in self.results([probe]):
            raise InputError(f"{self._tokenizer.name_or_path}: {_NO_TOOLS}")

    def message(self, text: str, token_ids: Sequence[int], before: Sequence[int]) -> Mapping[str, Any]:
        plain = {"role": "assistant", "content": text}
        if getattr(self._tokenizer, "response_template", None) is None:
            return plain
        try:
            message = self._tokenizer.parse_response(list(token_ids), prefix=list(before), tools=self._tools)
        except (ValueError, TypeError):  # what TRL expects of a malformed call
            return plain
        return plain if message is None else {"role": "assistant", **message}

    def results(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Raises InputError for a chat template that has no place for tools."""
        if not self._chat:
            return "".join(f"\n<tool_response>\n{message['content']}\n</tool_response>" for message in messages) + "\n"
        calls = [{"type": "function", "function": {"name": message["name"], "arguments": {}}} for message in messages]
        conversation = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "", "tool_calls": calls}]
        try:
            before = self._render(conversation, add_generation_prompt=False)
            after = self._render([*conversation, *messages], add_generation_prompt=True)
        except ChatFault as fault:
            raise InputError(f"{self._tokenizer.name_or_path}: {_NO_TOOLS} ({fault})") from fault
        end = str(self._tokenizer.eos_token)
        kept = before[: before.rindex(end)] if end in before else before  # some templates write a line break after it
        if not after.startswith(kept):
            raise InputError(f"{self._tokenizer.name_or_path}: {_NO_TOOLS}")
        return after[len(kept) :].removeprefix(end)

    def _render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> str:
        options = {**self._arguments, "add_generation_prompt": add_generation_prompt}
        return value_or_raise(rendered_each(self._tokenizer, [(messages, options)])[0])


_NO_TOOLS = "the chat template cannot show a tool's result; use a model for tools, or set rollout.tool_syntax"


def load_syntax(path: str | None, encoder: PromptEncoder, tools: Sequence[dict[str, Any]]) -> ToolSyntax:
    """The class at `package.module:Class`, which is made without arguments, or `ChatSyntax`. Raises InputError."""
    if path is None:
        return ChatSyntax(encoder, tools)
    syntax = load_object(path, "class")()
    if not all(callable(getattr(syntax, name, None)) for name in ("message", "results")):
        raise InputError(f"rollout.tool_syntax: {path} lacks the method `message` or `results`")
    return syntax
