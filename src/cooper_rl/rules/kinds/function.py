"""A rule written as the user's own function."""

import reprlib
from collections.abc import Sequence
from threading import Lock
from typing import Any, get_args

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.config.user_functions import EventLoop, gathered, is_async, load_function
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import boxed
from cooper_rl.errors import InputError
from cooper_rl.rules.rule import Asked, Rule, UserVerdict, Verdict, unverified


class FunctionRule(Config):
    """Your own rule: `function(problem, completion_text)` returns `correct`, `wrong` or `unparsed`.

    `problem` is the `Problem` with its metadata. The function runs in this process, once per completion and one call
    at a time; the calls of an `async def` run concurrently. It has no time limit.
    """

    kind: str = Field(pattern=r"^[\w.]+:\w+$")
    """`package.module:function`, from an installed package or a module in the working folder."""
    check_references: bool = False
    """Also leave out problems whose own reference answer, in a box, the function does not accept as correct."""

    def build(self) -> "UserRule":
        """The rule. Raises InputError if the function does not exist or takes other arguments."""
        return UserRule(self.kind, self.check_references)


class UserRule(Rule):
    def __init__(self, path: str, check_references: bool = False) -> None:
        self.path = path
        self._check_references = check_references
        self._function = load_function(path, ("problem", "completion_text"))
        self._lock = Lock()
        self._loop = EventLoop() if is_async(self._function) else None

    def verify_problems(self, asked: Sequence[Asked], /) -> list[Verdict]:
        """Raises InputError naming function and problem if the function returns anything but a verdict.

        Exceptions of the function itself propagate.
        """
        with self._lock:  # the assistant's thread calls this too
            if self._loop is not None:
                returned = self._loop.run(lambda: gathered(self._function, asked))
            else:
                returned = [self._function(problem, text) for problem, text in asked]
        return [self._verdict(value, problem) for value, (problem, _) in zip(returned, asked, strict=True)]

    def fault(self, problem: Problem, answer: str) -> str | None:
        """With `check_references`, the function must accept the answer in a box; otherwise any will do."""
        return unverified(self.verify_problems([(problem, boxed(answer))])[0]) if self._check_references else None

    def _verdict(self, value: Any, problem: Problem) -> Verdict:
        if isinstance(value, str) and value in get_args(UserVerdict):
            return value  # pyright: ignore[reportReturnType]
        raise InputError(
            f"{self.path}: returned {reprlib.repr(value)} for problem {problem.id}; "
            "a rule returns 'correct', 'wrong' or 'unparsed'"
        )
