"""The user's own reward function: how it is found and called, and how its return values are checked."""

import math
import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cooper_rl.config.event_loop import EventLoop, gathered, is_async
from cooper_rl.config.user_functions import load_function
from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.rollouts import Answer


class RewardFunction:
    """The function at `package.module:function`, plain or `async def`.

    - `function(problem: Problem, completion: Answer) -> float` scores one completion.
    - batched: `function(problems: list[Problem], completions: list[Answer]) -> list[float]` scores a whole step.

    Calls of an `async def` that scores one completion run concurrently, in one event loop for the whole run.
    Raises InputError if the function cannot be found or takes other arguments.
    """

    def __init__(self, path: str, batched: bool = False) -> None:
        self.path = path
        self._batched = batched
        self._function = load_function(path, ("problems", "completions") if batched else ("problem", "completion"))
        self._async = EventLoop() if is_async(self._function) else None

    def values(self, problems: Sequence[Problem], completions: "Sequence[Answer]") -> list[float]:
        """One finite number per completion; `completions[i]` answers `problems[i]`.

        Raises InputError if the function returns something else. Exceptions of the function itself propagate.
        """
        asked = list(zip(problems, completions, strict=True))
        if self._batched:
            returned = self._one_for_each(self._call_batched(list(problems), list(completions)), len(asked))
        elif self._async is not None:
            returned = self._async.run(lambda: gathered(self._function, asked))
        else:
            returned = [self._function(problem, completion) for problem, completion in asked]
        return [self._number(value, problem) for value, problem in zip(returned, problems, strict=True)]

    def _call_batched(self, problems: list[Problem], completions: "list[Answer]") -> Any:
        if self._async is None:
            return self._function(problems, completions)
        return self._async.run(lambda: self._function(problems, completions))

    def _one_for_each(self, returned: Any, count: int) -> list[Any]:
        wanted = f"a batched function must return a list with one number for each of the {count} completions, in order"
        try:
            values = list(returned)
        except TypeError as error:
            raise InputError(f"{self.path}: returned {reprlib.repr(returned)}; {wanted}") from error
        if len(values) != count:
            raise InputError(f"{self.path}: returned {len(values)} values for {count} completions; {wanted}")
        return values

    def _number(self, value: Any, problem: Problem) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            of_lists = isinstance(value, list | tuple) and not self._batched
            remedy = "; a function that takes lists needs batched: true" if of_lists else ""
            raise InputError(
                f"{self.path}: returned {reprlib.repr(value)} for problem {problem.id}; return a finite number{remedy}"
            )
        return number
