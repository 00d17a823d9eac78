"""The reward that a function of the user's own pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores
from cooper_rl.rewards.reward_function import RewardFunction

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class FunctionRewardConfig(RewardConfig):
    """A reward of the user's own."""

    needs_reference: ClassVar[bool] = False
    kind: Literal["function"] = "function"
    """Names this kind of reward."""
    function: str
    """`package.module:function`, of an installed package or a module in the working folder; plain or `async def`.
    `function(problem, completion) -> float` is called once for each completion, an `async def` for all of a step
    together."""
    batched: bool = False
    """Call the function once a step, as `function(problems, completions) -> list[float]`: two lists with one entry for
    each completion, and one number back for each, in order."""

    def build(self) -> FunctionReward:
        """Raises InputError where the function cannot be found or takes other arguments."""
        return FunctionReward(self.function, self.batched)


class FunctionReward:
    """A function of the user's, see `RewardFunction`."""

    def __init__(self, function: str, batched: bool = False) -> None:
        self._function = RewardFunction(function, batched)

    def score(self, context: StepContext) -> Scores:
        """The function's values; part and metric are named after the function.

        Raises InputError naming function and problem where the function returns no finite number for a completion.
        """
        asked = [(group.problem, answer) for group in context.groups for answer in group.answers]
        flat = self._function.values([problem for problem, _ in asked], [answer for _, answer in asked])
        values = context.ragged(flat)
        name = self._function.path.rpartition(":")[2]
        return Scores(values, {name: values}, {f"function/{name}": values.flat.mean().item()})
