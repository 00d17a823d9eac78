"""A chat model as the assistant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from cooper_rl.clients.chat import ChatConfig
from cooper_rl.cooptimization.negatives.assistant import ASSISTANTS
from cooper_rl.cooptimization.negatives.prompt import repairing_chat, rewriting_chat
from cooper_rl.cooptimization.negatives.rewriting import AnswerVerifier, Attempts, Request, Rewrites

if TYPE_CHECKING:
    from cooper_rl.clients.chat import ChatClient


ASK = {"wrong": rewriting_chat, "right": repairing_chat}


@ASSISTANTS.register
class ChatAssistantConfig(ChatConfig):
    """A language model that writes the wrong solutions and, if they are asked for, the repairs."""

    repairs: ClassVar[bool] = True
    kind: Literal["chat"] = "chat"
    """Names this kind of assistant."""
    tries: int = Field(default=3, ge=1)
    """Maximum number of replies to request until one is accepted."""
    step_timeout_s: float = Field(default=300.0, gt=0)
    """Seconds a step's rewriting may take, including retries and waits. After that, the step continues without the
    missing negatives. Rewriting runs in parallel with the policy's update."""

    def build(self, verifier: AnswerVerifier) -> ChatAssistant:
        """See `AssistantSettings`. Raises InputError if the API key is not set."""
        from cooper_rl.clients.chat import ChatClient  # noqa: PLC0415 - settings are checked without the client

        return ChatAssistant(ChatClient(self), verifier, self.tries, self.step_timeout_s)


class ChatAssistant:
    """A language model behind an OpenAI-compatible server.

    Requests, retries and the rule's checks run in the client's thread and the verifier's processes, so the policy can
    be updated in the meantime. Requests that the server has not answered after `step_timeout_s` seconds are given up.
    """

    def __init__(self, client: ChatClient, verifier: AnswerVerifier, tries: int = 3, step_timeout_s: float = 300.0):
        self._client = client
        self._verifier = verifier
        self._tries = tries
        self._step_timeout_s = step_timeout_s

    def submit(self, requests: Sequence[Request]) -> Future[Rewrites]:
        """See `Assistant`."""
        return self._client.run(self._rewrite(Attempts(requests, self._verifier, self._tries)))

    def check(self) -> None:
        """See `Assistant`."""
        self._client.check()

    def close(self) -> None:
        """See `Assistant`."""
        self._client.close()

    async def _rewrite(self, attempts: Attempts) -> Rewrites:
        deadline = asyncio.get_running_loop().time() + self._step_timeout_s
        while pending := attempts.pending:
            chats = [ASK[request.goal](request.problem, request.text) for request in pending]
            seeds = [request.seed + attempts.attempt for request in pending]
            replies = await self._client.complete(chats, seeds, deadline)
            await asyncio.to_thread(attempts.take, replies)  # the rule may take seconds; do not block
        return attempts.result()
