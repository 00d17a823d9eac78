"""The rule of this process, which all drop-ins share, and the forms in which their callers write answers.

Nothing starts before the first question. A forked process has a rule of its own, for the parent's answers the parent.
"""

import logging
import os
from collections.abc import Sequence
from typing import Any

from cooper_base.data.answer import Answer
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_verify.faults import isolated
from cooper_verify.rules.kinds.maths import RuleVerifier

logger = logging.getLogger(__name__)

_WORKERS = min(8, os.cpu_count() or 1)
"""A process starts only where so many questions are asked at a time."""

_rule = RuleVerifier(_WORKERS)
_of_parents: list[RuleVerifier] = []


def _forget() -> None:
    """After a fork. The parent's rule is kept: without it, its processes would be closed."""
    global _rule
    _of_parents.append(_rule)
    _rule = RuleVerifier(_WORKERS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def verdicts(pairs: Sequence[tuple[str, str]], questions: Sequence[str] | None = None) -> list[Verdict]:
    """Verdicts on pairs of a reference and a completion, in order, with their questions where they are known. A pair on
    which the rule raises is `unparsed`. Where none of its processes can be started, that is logged and all are: a
    trainer that calls a drop-in must not end by it.
    """

    def ask(asked: Sequence[tuple[str, str, str | None]]) -> list[Verdict]:
        known = None if questions is None else [question or "" for *_, question in asked]
        return _rule.verify_many([(reference, completion) for reference, completion, _ in asked], known)

    items = [(*pair, question) for pair, question in zip(pairs, questions or [None] * len(pairs), strict=True)]
    try:
        return isolated("drop-in", ask, items, lambda _: "unparsed", lambda item: item[:2])
    except InputError:
        logger.exception("no verdicts on %d answers", len(pairs))
        return ["unparsed"] * len(pairs)


def written(value: Any) -> str:
    """An answer as text: a number as its digits, a sympy value in LaTeX, None and what cannot be written as nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int | float):
        return str(value)
    from sympy import latex  # noqa: PLC0415 - slow to import; who has such values has done it

    try:
        return latex(value)
    except Exception:  # noqa: BLE001 - a printer of sympy may raise anything
        return ""


def asked(prompt: Any) -> str:
    """The question in a prompt, a text or messages: all that is no system's; nothing if it cannot be read."""
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, Sequence):
        return ""
    turns = (turn for turn in prompt if isinstance(turn, dict) and turn.get("role") == "user")
    return "\n".join(content for turn in turns if isinstance(content := turn.get("content"), str))


def reply(completion: Any) -> str:
    """The text of a completion, or the final reply of its messages; nothing if they cannot be read."""
    try:
        return Answer.of(completion).text if completion is not None else ""
    except InputError:
        return ""
