"""The assistant turns right completions into plausible wrong ones: a chat model, or a function in its place."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

from cooper_rl.clients.chat import ChatClient
from cooper_rl.clients.chat_reply import ChatReply
from cooper_rl.config.user_functions import load_function
from cooper_rl.cooptimization.config import ChatAssistantConfig, CooptimizationConfig
from cooper_rl.cooptimization.negatives.prompt import rewriting_chat
from cooper_rl.cooptimization.negatives.rewriting import AnswerVerifier, Attempts, Request, Rewrites
from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError

Corrupter = Callable[[Problem, str, int, int], str]
"""(problem, completion text, attempt from 0, seed) -> a wrong solution in the same style."""
CORRUPTER_PARAMETERS = ("problem", "completion_text", "attempt", "seed")


class Assistant(Protocol):
    """Writes negatives. Bad replies are counted, never raised."""

    def submit(self, requests: Sequence[Request]) -> "Future[Rewrites]":
        """Start rewriting and return at once; only requests with a positive make sense."""
        ...

    def check(self) -> None:
        """Raises InputError when the assistant cannot be reached."""
        ...

    def close(self) -> None:
        """Give back connections and threads; what is under way is cancelled."""
        ...


class ChatAssistant:
    """A language model behind an OpenAI-compatible server.

    Requests, retries and the rule's checks run in the client's thread and the verifier's processes, so the policy can
    be updated meanwhile. What the server has not answered after `step_timeout_s` seconds is given up.
    """

    def __init__(self, client: ChatClient, verifier: AnswerVerifier, tries: int = 3, step_timeout_s: float = 300.0):
        self._client = client
        self._verifier = verifier
        self._tries = tries
        self._step_timeout_s = step_timeout_s

    def submit(self, requests: Sequence[Request]) -> "Future[Rewrites]":
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
            chats = [rewriting_chat(request.problem, request.positive) for request in pending]
            seeds = [request.seed + attempts.attempt for request in pending]
            replies = await self._client.complete(chats, seeds, deadline)
            await asyncio.to_thread(attempts.take, replies)  # the rule may take seconds; connections go on
        return attempts.result()


class CorrupterAssistant:
    """A deterministic function in the assistant's place, for worlds in which a wrong solution can be computed."""

    def __init__(self, corrupter: Corrupter, verifier: AnswerVerifier, tries: int = 3):
        self._corrupter = corrupter
        self._verifier = verifier
        self._tries = tries

    def submit(self, requests: Sequence[Request]) -> "Future[Rewrites]":
        """Rewrite at once: the future is done. The corrupter's own exceptions are raised here, as bugs to be seen."""
        attempts = Attempts(requests, self._verifier, self._tries)
        while pending := attempts.pending:
            attempts.take([self._reply(request, attempts.attempt) for request in pending])
        future: Future[Rewrites] = Future()
        future.set_result(attempts.result())
        return future

    def check(self) -> None:
        """Nothing to reach."""

    def close(self) -> None:
        """Nothing to give back."""

    def _reply(self, request: Request, attempt: int) -> ChatReply:
        text = self._corrupter(request.problem, request.positive, attempt, request.seed)
        return ChatReply(text) if text.strip() else ChatReply(failure="empty")


def build_assistant(config: CooptimizationConfig, verifier: AnswerVerifier) -> Assistant | None:
    """The configured assistant, or None where no negatives come from one.

    Raises InputError when one is needed and none is configured, its API key is not set, or its function is not found.
    """
    if "assistant" not in config.negatives:
        return None
    if config.assistant is None:
        raise InputError(
            "cooptimization.assistant is missing though cooptimization.negatives lists assistant; describe one "
            "(kind: chat with base_url and model, or kind: corrupter with function), or set negatives: [on_policy]"
        )
    if isinstance(config.assistant, ChatAssistantConfig):
        chat = config.assistant
        return ChatAssistant(ChatClient(chat), verifier, chat.tries, chat.step_timeout_s)
    return CorrupterAssistant(
        load_function(config.assistant.function, CORRUPTER_PARAMETERS), verifier, config.assistant.tries
    )
