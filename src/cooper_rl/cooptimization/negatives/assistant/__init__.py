"""The assistant turns right completions into plausible wrong ones, and may repair wrong ones. Each kind is one file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, Protocol

from cooper_rl.config.base import Kinds
from cooper_rl.cooptimization.negatives.rewriting import AnswerVerifier, Request, Rewrites
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.cooptimization.config import CooptimizationConfig

ASSISTANTS = Kinds("assistant", "cooper_rl.cooptimization.negatives.assistant", ["build"])
"""The kinds of `cooptimization.assistant`."""


class Assistant(Protocol):
    """Writes negatives, and repairs if its settings say so. Bad replies are counted and never raise."""

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
    """The settings of an assistant. With `repairs = True` it is also sent requests with the goal `right`."""

    def build(self, verifier: AnswerVerifier) -> Assistant:
        """The assistant; `verifier` checks its texts. Raises InputError if it cannot work with these settings."""
        ...


AssistantConfig = Annotated[AssistantSettings, ASSISTANTS]


def build_assistant(config: CooptimizationConfig, verifier: AnswerVerifier) -> Assistant | None:
    """The configured assistant, or None if neither `negatives` nor `positives` lists its work.

    Raises InputError if an assistant is needed but not configured, cannot repair although `positives` lists `repaired`,
    its API key is not set, or its function is not found.
    """
    if not config.needs_assistant:
        return None
    if config.assistant is None:
        listing = "negatives lists assistant" if "assistant" in config.negatives else "positives lists repaired"
        raise InputError(
            f"cooptimization.assistant is missing, but cooptimization.{listing}; describe one "
            "(kind: chat with base_url and model, or kind: corrupter with function), or set negatives: [on_policy]"
        )
    if "repaired" in config.positives and not getattr(config.assistant, "repairs", False):
        raise InputError(
            "cooptimization.positives lists repaired, but the assistant repairs nothing; use kind: chat, or give a "
            "corrupter its repairer"
        )
    return config.assistant.build(verifier)
