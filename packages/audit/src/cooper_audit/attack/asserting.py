"""A test that fails if a reward pays for wrong answers."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from cooper_audit.attack.attack import attack
from cooper_audit.attack.problems import open_attacked
from cooper_audit.attack.questions import questions
from cooper_audit.attack.report import first_screen
from cooper_base.data.problem import Problem

PROBLEMS = 40
_GIVEN = "_given"


def assert_not_gameable(
    reward: str | Callable[..., Any],
    problems: Sequence[Problem] | None = None,
    fail_above: float = 0.05,
    plain: str | None = None,
) -> None:
    """Attack a reward as `cooper attack` does: a function of any common signature, or a grader as it is written there.

    `problems` are by default questions of the attack's own, and 40 of them are tried. `plain` is the only form in which
    the reward should read an answer. Raises AssertionError with the worst exploit if a pattern of wrong answers is
    accepted in a larger share of the problems than `fail_above`; a reward that refuses right answers passes.
    """
    written = reward if isinstance(reward, str) else f"{__name__}:{_GIVEN}"
    if not isinstance(reward, str):
        globals()[_GIVEN] = reward  # a grader is found by the name of its module and its own
    try:
        with closing(open_attacked(written, [], None)) as grader:
            grader.name = written if isinstance(reward, str) else getattr(reward, "__qualname__", type(reward).__name__)
            result = attack(grader, problems or questions(5 * PROBLEMS), PROBLEMS, plain=plain)
    finally:
        globals().pop(_GIVEN, None)
    if result.verdict(fail_above) == "gameable":
        raise AssertionError("\n".join(first_screen(result, fail_above)))
