"""The assistant turns right completions into plausible wrong ones. Each kind is a record in a file of this package."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, Protocol

from cooper_rl.config.registry import Kinds
from cooper_rl.cooptimization.negatives.rewriting import AnswerVerifier, Request, Rewrites
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.cooptimization.config import CooptimizationConfig

ASSISTANTS = Kinds("assistant", "cooper_rl.cooptimization.negatives.assistant", ["build"])
"""The kinds of `cooptimization.assistant`."""


class Assistant(Protocol):
    """Writes negatives. Bad replies are counted and never raise."""

    def submit(self, requests: Sequence[Request]) -> Future[Rewrites]:
        """Start rewriting and return at once."""
        ...

    def check(self) -> None:
        """Raises InputError when the assistant cannot be reached."""
        ...

    def close(self) -> None:
        """Release connections and threads, and cancel requests under way."""
        ...


class AssistantSettings(Protocol):
    """The settings of an assistant."""

    def build(self, verifier: AnswerVerifier) -> Assistant:
        """The assistant; `verifier` checks its texts. Raises InputError if it cannot work with these settings."""
        ...


AssistantConfig = Annotated[AssistantSettings, ASSISTANTS]


def build_assistant(config: CooptimizationConfig, verifier: AnswerVerifier) -> Assistant | None:
    """The configured assistant, or None if `negatives` does not list `assistant`.

    Raises InputError if an assistant is needed but not configured, its API key is not set, or its function is not
    found.
    """
    if "assistant" not in config.negatives:
        return None
    if config.assistant is None:
        raise InputError(
            "cooptimization.assistant is missing, but cooptimization.negatives lists assistant; describe one "
            "(kind: chat with base_url and model, or kind: corrupter with function), or set negatives: [on_policy]"
        )
    return config.assistant.build(verifier)
