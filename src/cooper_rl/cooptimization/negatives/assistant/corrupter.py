"""A function in place of the assistant, for data in which a wrong solution can be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Literal

from pydantic import Field

from cooper_rl.clients.chat import ChatReply
from cooper_rl.config.base import Config
from cooper_rl.config.user_functions import load_function
from cooper_rl.cooptimization.negatives.assistant import ASSISTANTS
from cooper_rl.cooptimization.negatives.rewriting import AnswerVerifier, Attempts, Request, Rewrites
from cooper_rl.data.problem import Problem

Corrupter = Callable[[Problem, str, int, int], str]
"""(problem, completion text, attempt from 0, seed) -> a wrong solution in the same style."""
CORRUPTER_PARAMETERS = ("problem", "completion_text", "attempt", "seed")


@ASSISTANTS.register
class CorrupterConfig(Config):
    """A function that replaces the assistant."""

    kind: Literal["corrupter"] = "corrupter"
    """Names this kind of assistant."""
    function: str
    """`package.module:function`, called as `function(problem, completion_text, attempt, seed)`. It returns the text of
    a wrong solution."""
    repairer: str | None = None
    """A function of the same form that returns a right version of a wrong solution; needed if
    `cooptimization.positives` lists `repaired`."""
    tries: int = Field(default=3, ge=1)
    """Maximum number of calls (attempt 0, 1, …) until one result is accepted."""

    @property
    def repairs(self) -> bool:
        """Whether there is a function that repairs."""
        return self.repairer is not None

    def build(self, verifier: AnswerVerifier) -> CorrupterAssistant:
        """See `AssistantSettings`. Raises InputError if a function is not found."""
        repairer = None if self.repairer is None else load_function(self.repairer, CORRUPTER_PARAMETERS)
        return CorrupterAssistant(load_function(self.function, CORRUPTER_PARAMETERS), verifier, self.tries, repairer)


class CorrupterAssistant:
    """A deterministic function that computes the wrong solutions, and another one for repairs."""

    def __init__(
        self, corrupter: Corrupter, verifier: AnswerVerifier, tries: int = 3, repairer: Corrupter | None = None
    ):
        self._corrupter = corrupter
        self._repairer = repairer
        self._verifier = verifier
        self._tries = tries

    def submit(self, requests: Sequence[Request]) -> Future[Rewrites]:
        """Rewrite at once and return a finished future. Exceptions of the functions propagate: they are bugs."""
        attempts = Attempts(requests, self._verifier, self._tries)
        while pending := attempts.pending:
            attempts.take([self._reply(request, attempts.attempt) for request in pending])
        future: Future[Rewrites] = Future()
        future.set_result(attempts.result())
        return future

    def check(self) -> None:
        """There is nothing to reach."""

    def close(self) -> None:
        """There is nothing to release."""

    def _reply(self, request: Request, attempt: int) -> ChatReply:
        function = self._corrupter if request.goal == "wrong" else self._repairer
        text = "" if function is None else function(request.problem, request.text, attempt, request.seed)
        return ChatReply(text) if text.strip() else ChatReply(failure="empty")
