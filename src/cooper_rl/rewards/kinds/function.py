"""A reward computed by the user's own function."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores
from cooper_rl.rewards.reward_function import RewardFunction

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class FunctionRewardConfig(RewardConfig):
    """A reward computed by your own function."""

    needs_reference: ClassVar[bool] = False
    kind: Literal["function"] = "function"
    """Names this kind of reward."""
    function: str
    """`package.module:function`, from an installed package or a module in the working folder; plain or `async def`.
    `function(problem, completion) -> float` is called once per completion; the calls of an `async def` run
    concurrently for all completions of a step."""
    batched: bool = False
    """Call the function once per step, as `function(problems, completions) -> list[float]`. Both lists have one entry
    per completion; the function returns one number per completion, in the same order."""

    def build(self) -> FunctionReward:
        """The reward. Raises InputError if the function cannot be found or takes other arguments."""
        return FunctionReward(self.function, self.batched)


class FunctionReward:
    """The user's own function as a reward; see `RewardFunction`."""

    def __init__(self, function: str, batched: bool = False) -> None:
        self._function = RewardFunction(function, batched)

    def score(self, context: StepContext) -> Scores:
        """The function's values. The part and the metric are named after the function.

        Raises InputError naming the function and the problem if a returned value is not a finite number.
        """
        values = context.ragged(context.once(self, lambda: self._call(context)))
        name = self._function.path.rpartition(":")[2]
        return Scores(values, {name: values}, {f"function/{name}": values.flat.mean().item()})

    def _call(self, context: StepContext) -> list[float]:
        asked = [(group.problem, answer) for group in context.groups for answer in group.answers]
        return self._function.values([problem for problem, _ in asked], [answer for _, answer in asked])
