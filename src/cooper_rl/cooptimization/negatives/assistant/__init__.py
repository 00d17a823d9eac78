"""The assistant turns right completions into plausible wrong ones. Each sort is a record in a file of this package."""

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
    """Writes negatives. Bad replies are counted, never raised."""

    def submit(self, requests: Sequence[Request]) -> Future[Rewrites]:
        """Start rewriting and return at once; only requests with a positive make sense."""
        ...

    def check(self) -> None:
        """Raises InputError when the assistant cannot be reached."""
        ...

    def close(self) -> None:
        """Give back connections and threads; what is under way is cancelled."""
        ...


class AssistantSettings(Protocol):
    """The settings of an assistant."""

    def build(self, verifier: AnswerVerifier) -> Assistant:
        """The assistant, whose texts the rule checks. Raises InputError for settings with which it cannot work."""
        ...


AssistantConfig = Annotated[AssistantSettings, ASSISTANTS]


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
    return config.assistant.build(verifier)
