"""A reward computed by the user's own function: how it is found and called, and how its return values are checked."""

from __future__ import annotations

import math
import reprlib
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_rl.config.user_functions import UserFunction
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.data.problem import Problem
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class FunctionRewardConfig(RewardConfig):
    """A reward computed by your own function."""

    needs_reference: ClassVar[bool] = False
    kind: Literal["function"] = "function"
    """The kind of reward: always `function` in the short form `extra_rewards`."""
    function: str
    """`package.module:function`, from an installed package or a module in the working folder; plain or `async def`.
    `function(problem, completion) -> float` is called once per completion; the calls of an `async def` run
    concurrently for all completions of a step."""
    batched: bool = False
    """Call the function once per step, as `function(problems, completions) -> list[float]`. Both lists have one entry
    per completion; the function returns one number per completion, in the same order."""

    def build(self) -> FunctionReward:
        return FunctionReward(self.function, self.batched)


class FunctionReward:
    """The function at `package.module:function`, plain or `async def`; see `FunctionRewardConfig`.

    A completion is an `Answer`. Raises InputError if the function cannot be found or takes other arguments.
    """

    def __init__(self, path: str, batched: bool = False) -> None:
        self._path = path
        self._batched = batched
        self._function = UserFunction(path, ("problems", "completions") if batched else ("problem", "completion"))

    def score(self, context: StepContext) -> Scores:
        """The function's values. The part and the metric are called `function/` and the function's name.

        Raises InputError naming the function and the problem if a returned value is not a finite number. Exceptions of
        the function itself propagate.
        """
        values = context.once(self, lambda: context.ragged(self._values(context)))
        name = f"function/{self._path.rpartition(':')[2]}"
        return Scores(values, {name: values}, {name: values.flat.mean().item()})

    def _values(self, context: StepContext) -> list[float]:
        asked = [(group.problem, answer) for group in context.groups for answer in group.answers]
        calls = [([problem for problem, _ in asked], [answer for _, answer in asked])] if self._batched else asked
        returned = self._function.results(calls)
        if self._batched:
            returned = self._one_for_each(returned[0], len(asked))
        return [self._number(value, problem) for value, (problem, _) in zip(returned, asked, strict=True)]

    def _one_for_each(self, returned: Any, count: int) -> list[Any]:
        wanted = f"a batched function must return a list with one number for each of the {count} completions, in order"
        try:
            values = list(returned)
        except TypeError as error:
            raise InputError(f"{self._path}: returned {reprlib.repr(returned)}; {wanted}") from error
        if len(values) != count:
            raise InputError(f"{self._path}: returned {len(values)} values for {count} completions; {wanted}")
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
                f"{self._path}: returned {reprlib.repr(value)} for problem {problem.id}; return a finite number{remedy}"
            )
        return number
