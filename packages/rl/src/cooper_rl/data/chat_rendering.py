"""Renders chat templates in a process whose time, memory and output are limited.

A template is a program from outside: the sandbox that transformers renders it in keeps it from files and from Python,
and neither from loops within loops nor from text without end. A template that behaved in a trial may misbehave
on another chat, so every chat is rendered here. One process serves all renderings of a main process; it starts with
the first, and again after one that exceeded a limit.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from cooper_base.data.text import one_line
from cooper_base.errors import InputError
from cooper_verify.rules.processes.child import FROM_OUTSIDE, TRIES, SharedProcess, limit, limit_cpu, reply_to_parent

MOST_CHARACTERS = 1_000_000
"""Of a template, and of what it writes besides eight times its chat. Templates of today have up to 20,000."""
CPU_SECONDS, MEMORY_MIB = 3, 1024
_WALL_S = 120.0
_MOST_EXCEEDING = 3
"""Chats of one call that may exceed a limit before those behind them count as exceeding it too."""
_TOGETHER = 256
"""Most chats that are rendered at once. Other threads have their turn between two of these batches."""
_TRIAL = [{"role": "user", "content": "Two words"}]
_STATM = Path("/proc/self/statm")

_process = SharedProcess("cooper_rl.data.chat_rendering")


class ChatFault(Exception):
    """Why a template gives no text for a chat."""

    def __init__(self, why: str, exceeds: bool = False) -> None:
        super().__init__(why)
        self.exceeds = exceeds
        """Whether it is a limit that the rendering exceeds."""


Chat = Sequence[Mapping[str, Any]]


def chat_without_template(model: str, section: str) -> InputError:
    """That the prompts of `section` shall be chats, which the tokenizer of this model has no template for."""
    return InputError(
        f"{section}.chat: true, but the tokenizer of {model} has no chat template; use an instruct model, add "
        f"chat_template.jinja to its folder, or set {section}.chat=false"
    )


def rendered_each(tokenizer: Any, chats: Sequence[tuple[Chat, Mapping[str, Any]]]) -> list[str | ChatFault]:
    """For each chat with its options, the text that `tokenizer.apply_chat_template(chat, tokenize=False, **options)`
    gives; or the fault of a template that fails, or needs more than `CPU_SECONDS`, `MEMORY_MIB` or `MOST_CHARACTERS`
    for it: a chat costs no other its text.

    Raises ChatFault for a template that the tokenizer does not have.
    """
    texts: list[str | ChatFault] = []
    for template, some in groupby(chats, lambda chat: _template(tokenizer, chat[1])):
        special = tokenizer.special_tokens_map
        asked = [
            (
                [{name: value for name, value in message.items() if value is not None} for message in chat],
                special | {name: value for name, value in options.items() if name != "chat_template"},
            )
            for chat, options in some
        ]
        for start in range(0, len(asked), _TOGETHER):
            texts += _rendered(template, asked[start : start + _TOGETHER])
    return texts


def _template(tokenizer: Any, options: Mapping[str, Any]) -> str:
    try:
        return tokenizer.get_chat_template(options.get("chat_template"), options.get("tools"))
    except ValueError as error:  # there are several, and none of this name
        raise ChatFault(str(error)) from error


@cache
def costs_too_much(template: str) -> bool:
    """Whether a prompt of two words exceeds a limit. Other faults are reported where real chats are rendered."""
    [trial] = _rendered(template, [(_TRIAL, {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"})])
    return isinstance(trial, ChatFault) and trial.exceeds


def _rendered(template: str, chats: Sequence[tuple[Chat, Mapping[str, Any]]]) -> list[str | ChatFault]:
    rendered: list[str | ChatFault] = []
    losses, exceeding = 0, list[ChatFault]()
    with _process.lock:
        while len(rendered) < len(chats) and len(exceeding) < _MOST_EXCEEDING:
            rest = chats[len(rendered) :]
            replies = _process.exchange([template, rest], len(rest), _WALL_S)
            rendered += map(_text, replies)
            if len(replies) == len(rest):
                break
            losses = 0 if replies else losses
            why = _too_much()
            if _process.exit_code in FROM_OUTSIDE:
                losses += 1
                if losses < TRIES:
                    continue
                why = f"the process that renders it was lost {TRIES} times"
            exceeding.append(ChatFault(why, exceeds=True))
            rendered.append(exceeding[-1])
            losses = 0
    return rendered + exceeding[-1:] * (len(chats) - len(rendered))


def _text(reply: Mapping[str, Any]) -> str | ChatFault:
    if "error" in reply:
        return ChatFault(reply["error"])
    return ChatFault(_too_much(), exceeds=True) if "exceeds" in reply else reply["text"]


def _too_much() -> str:
    most = f"{CPU_SECONDS} s, {MEMORY_MIB} MiB or {MOST_CHARACTERS:,} characters"
    return f"it takes more than {most} for this chat; use the template that the model was published with"


# What follows runs in the process itself.


def main() -> None:
    """Render until standard input ends. The process dies of what exceeds its time or memory."""
    logging.disable(logging.CRITICAL)
    from transformers.utils.chat_template_utils import render_jinja_template  # noqa: PLC0415 - the parent needs none

    held = int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if _STATM.exists() else 0
    limit("RLIMIT_AS", held + MEMORY_MIB * 2**20)
    limit("RLIMIT_CORE", 0)
    reply_to_parent({"ready": True})
    for line in sys.stdin:
        template, chats = json.loads(line)
        for chat, options in chats:
            limit_cpu(CPU_SECONDS)
            try:
                text = render_jinja_template(conversations=[chat], chat_template=template, **options)[0][0]
                reply = {"text": text} if len(text) <= MOST_CHARACTERS + 8 * len(line) else {"exceeds": True}
            except (MemoryError, OverflowError):
                os._exit(1)
            except Exception as error:  # noqa: BLE001 - a template may raise anything
                reply = {"error": one_line(str(error)) or type(error).__name__}
            limit_cpu(0)
            reply_to_parent(reply)


if __name__ == "__main__":
    main()
