"""Asks a judge's server, and counts what came back."""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, get_args
from zlib import crc32

from cooper_rl.clients.chat import ChatReply, FailureKind, Message
from cooper_rl.rewards.judging.config import JudgeServer

if TYPE_CHECKING:
    from cooper_rl.clients.chat import ChatClient

T = TypeVar("T")
Question = tuple[list[Message], Callable[[ChatReply], T | None]]
"""A chat, and what reads the reply. The reader returns None for a reply without what is asked for."""


@dataclass
class Tally:
    """The requests of one step: how many there were, and how many failed, by kind."""

    requests: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def metrics(self) -> dict[str, float]:
        """`judge/requests`, `judge/unreadable` (replies without a verdict), and `judge/failures_<kind>` for each kind
        of `FailureKind`."""
        names = {"judge/unreadable": "unreadable"} | {f"judge/failures_{kind}": kind for kind in get_args(FailureKind)}
        return {"judge/requests": float(self.requests)} | {
            name: float(self.failures[kind]) for name, kind in names.items()
        }


class Questioner:
    """A judge's server. The connection opens at the first question."""

    def __init__(self, config: JudgeServer) -> None:
        self.config = config
        self._client: ChatClient | None = None

    def ask(self, questions: Sequence[Question[T]], tally: Tally) -> list[T | None]:
        """What each question's reader finds in the reply, in order; None where there is nothing to find.

        Equal chats are sent once, with equal seeds. All are given up after `step_timeout_s` seconds. Failures are added
        to `tally`.
        """
        texts = [json.dumps(chat) for chat, _ in questions]
        asked = {text: chat for text, (chat, _) in zip(texts, questions, strict=True)}
        replies = self._replies(list(asked.values()), [crc32(text.encode()) for text in asked]) if asked else []
        reply_to = dict(zip(asked, replies, strict=True))
        found = [read(reply_to[text]) for text, (_, read) in zip(texts, questions, strict=True)]
        unread = dict.fromkeys(text for text, value in zip(texts, found, strict=True) if value is None)
        tally.requests += len(asked)
        tally.failures.update(reply_to[text].failure or "unreadable" for text in unread)
        return found

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _replies(self, chats: list[list[Message]], seeds: list[int]) -> list[ChatReply]:
        from cooper_rl.clients.chat import ChatClient  # noqa: PLC0415 - rewards are built without the client

        if self._client is None:
            self._client = ChatClient(self.config)
        return self._client.run(_before_deadline(self._client, chats, seeds, self.config.step_timeout_s)).result()


async def _before_deadline(
    client: "ChatClient", chats: list[list[Message]], seeds: list[int], seconds: float
) -> list[ChatReply]:
    return await client.complete(chats, seeds, asyncio.get_running_loop().time() + seconds)


def with_means(values: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """Each group's values, with the mean of the group's heard values in place of None.

    A group that is not heard at all gets the mean of all heard values, or 1/2 if there are none. All its values are
    then equal, so nothing is learned from it.
    """
    everywhere = _mean([value for row in values for value in row if value is not None])
    usual = 0.5 if everywhere is None else everywhere
    filled = []
    for row in values:
        mean = _mean([value for value in row if value is not None])
        instead = usual if mean is None else mean
        filled.append([instead if value is None else value for value in row])
    return filled


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
