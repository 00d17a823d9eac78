"""The input of a reward model that was trained on chats."""

import json
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cooper_base.data.strict_json import parse_json
from cooper_base.data.text import normalise
from cooper_base.data.transcript import ChatTurn, unrendered
from cooper_base.errors import InputError
from cooper_rl.data.prompts import render_chat, without_markup
from cooper_rl.engines.model_folder import no_chat_template
from cooper_rl.engines.reward_input import RewardModelInput

logger = logging.getLogger(__name__)

_REFERENCE = "\n\nReference answer: "
_TOOL_TRIAL = """\
<assistant>
<tool_call> {"arguments": {"probe_argument": "1"}, "name": "probe_call"}
<tool>
<<<
probe_result
>>>
<assistant>
It is 1."""
_ASKED, _REPLIED = "Which question stands here?", "This reply stands here."
"""Texts in whose place a chat has those that its template rejects."""


class ChatInput(RewardModelInput):
    """The input of a reward model that was trained on chats: the question is the user's turn, the completion the
    assistant's, in the tokenizer's own chat template, and `with_reference` the reference ends the user's turn.

    The token ids are those of `apply_chat_template`, without the `padding` tokens at the end, before which transformers
    reads the score. A run of several turns has its tool calls and results where the template shows them, and is
    otherwise the text of the assistant's turn. Completions are normalised, and special tokens spelled out inside a text
    are broken up: a completion could otherwise end its turn and speak for somebody else. A template may raise on a
    text, as on one without `</think>`: such a text is put where the template puts another, so that it can be scored.
    """

    def __init__(
        self, tokenizer: Any, max_tokens: int, with_reference: bool = False, padding: int | None = None
    ) -> None:
        """Raises InputError for a tokenizer whose template is missing or does not show question and reply."""
        if not tokenizer.chat_template:
            raise no_chat_template(tokenizer.name_or_path)
        super().__init__(tokenizer, min(max_tokens, tokenizer.model_max_length))
        self.reads_reference = with_reference
        self._padding = padding
        self._how = {"add_special_tokens": False}  # a chat template writes its own special tokens
        self._plain = without_markup(tokenizer)
        self._rejects = False
        """Whether the template has rejected a text."""
        self._usual = self._rendered(_ASKED, [_reply(_REPLIED)])
        if not all(text in self._usual for text in (_ASKED, _REPLIED)):
            raise InputError(f"{tokenizer.name_or_path}: the chat template does not show the question and its reply")
        self._shows_tools = False
        with suppress(InputError):  # a template that knows no tools may refuse them
            chat = self._rendered("?", unrendered(_TOOL_TRIAL))
            self._shows_tools = all(word in chat for word in ("probe_call", "probe_argument", "probe_result"))

    def text(self, question: str, answer: str, completion: str) -> str:
        """The chat as text, before it is cut to `max_tokens`."""
        completion = normalise(completion)
        asked = self._plain(question.strip() + (f"{_REFERENCE}{answer.strip()}" if self.reads_reference else ""))
        turns = unrendered(completion)
        if len(turns) > 1 or turns[0]["tool_calls"]:
            shown = self._shows_tools or not any(turn["tool_calls"] or turn["role"] == "tool" for turn in turns)
            with suppress(InputError):  # a template may refuse the order of the turns
                if shown:
                    return self._rendered(asked, turns)
        try:
            return self._rendered(asked, [_reply(completion)])
        except InputError as error:
            if not self._rejects:
                logger.warning("%s; the text is put where the template puts another", error)
            self._rejects = True
            texts = {_ASKED: asked, _REPLIED: self._plain(completion)}
            return re.sub("|".join(map(re.escape, texts)), lambda found: texts[found.group()], self._usual)

    def _rendered(self, asked: str, turns: Sequence[ChatTurn]) -> str:
        chat: list[dict[str, Any]] = [{"role": "user", "content": asked}]
        called: list[str] = []  # tools whose results come next
        for turn in turns:
            message: dict[str, Any] = {"role": turn["role"], "content": self._plain(turn["content"])}
            if turn["tool_calls"]:
                calls = parse_json(self._plain(json.dumps(turn["tool_calls"], ensure_ascii=False)))
                message["tool_calls"] = [{"type": "function", "function": call} for call in calls]
                called = [call["name"] for call in calls]
            elif turn["role"] == "tool" and called:
                message["name"] = called.pop(0)
            chat.append(message)
        how = {"continue_final_message": False, "add_generation_prompt": False}
        return render_chat(self._tokenizer, chat, how, "set reward_model.input: tagged")

    def _around(self, token_ids: list[int]) -> list[int]:
        end = len(token_ids)
        while end > 1 and token_ids[end - 1] == self._padding:
            end -= 1
        return token_ids[:end]

    def _span(self, row: tuple[str, str, str]) -> tuple[int, int, int]:
        question, answer, completion = row
        text, other = self.text(*row), self.text(question, answer, "\N{OBJECT REPLACEMENT CHARACTER}")
        start, rest = _equal_start(text, other), _equal_start(text[::-1], other[::-1])
        last = self._plain(unrendered(normalise(completion))[-1]["content"])
        return start, max(start, len(text) - rest), max(start, text.rfind(last))


def _reply(text: str) -> ChatTurn:
    return {"role": "assistant", "content": text, "tool_calls": []}


def _equal_start(text: str, other: str) -> int:
    """How many characters at the start of both texts are the same."""
    differ = (i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b)
    return next(differ, min(len(text), len(other)))
