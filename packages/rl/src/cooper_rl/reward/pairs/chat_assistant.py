"""The assistant that is a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from cooper_rl.reward.pairs.assistant import (
    ASSISTANTS,
    TRIES,
    WRONG_VERSION,
    Attempts,
    RewriteRequest,
    Rewrites,
    RewritingTask,
)
from cooper_verify.clients.chat import ChatClient, ChatConfig
from cooper_verify.rules.rule import Rule

STEP_TIMEOUT_S = 300.0
"""Seconds that a step's rewriting may take beside the policy's update, with retries and waits. The step then goes on
without the missing negatives: a server that hangs costs it these minutes, and not each retry of each request."""


@ASSISTANTS.register
class ChatAssistantConfig(ChatConfig):
    """A language model that writes the wrong solutions."""

    kind: Literal["chat"] = "chat"
    tries: int = Field(default=TRIES, ge=1)
    """Maximum number of replies to request until one is accepted."""

    def build(self, verifier: Rule, task: RewritingTask = WRONG_VERSION) -> ChatAssistant:
        """Raises InputError if the API key is not set."""
        return ChatAssistant(ChatClient(self), verifier, self.tries, task)


@dataclass
class ChatAssistant:
    """A language model behind an OpenAI-compatible server.

    Requests, retries and the rule's checks run in the client's thread and the verifier's processes, so the policy can
    be updated in the meantime. Requests that the server has not answered after `STEP_TIMEOUT_S` are given up.
    """

    client: ChatClient
    verifier: Rule
    tries: int = TRIES
    task: RewritingTask = WRONG_VERSION

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        return self.client.run(self._rewrite(Attempts(requests, self.verifier, self.tries, self.task)))

    def check(self) -> None:
        self.client.check()

    def close(self) -> None:
        self.client.close()

    async def _rewrite(self, attempts: Attempts) -> Rewrites:
        deadline = asyncio.get_running_loop().time() + STEP_TIMEOUT_S
        while pending := attempts.pending:
            chats = [self.task.chat(request.problem, request.text) for request in pending]
            seeds = [request.seed + attempts.attempt for request in pending]
            replies = await self.client.complete(chats, seeds, deadline)
            await asyncio.to_thread(attempts.take, replies)  # the rule may take seconds; do not block
        return attempts.result()
