"""A reward computed by the user's own function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_rl.reward.base import REWARDS, RewardConfig, Scores
from cooper_verify.graders.function import ScoringFunction, TrainerState, check_columns, recognised

if TYPE_CHECKING:
    from cooper_base.data.problem import Problem
    from cooper_rl.reward.context import StepContext


@REWARDS.register
class FunctionRewardConfig(RewardConfig):
    """A reward computed by your own function."""

    needs_reference: ClassVar[bool] = False
    kind: Literal["function"] = "function"
    """The kind of reward."""
    function: str
    """`package.module:function`, from an installed package or a module in the working folder; plain or `async def`.
    `function(problem, completion) -> float | None` is called once per completion; None is no opinion. The calls of an
    `async def` run concurrently for all completions of a step. `function(problems, completions) -> list[float]` is
    called once per step, with one entry of both lists for each completion. A function in the style of TRL, verl
    (`compute_score`) or verifiers is recognised by the names of its arguments, and called with them."""
    chats: bool | None = None
    """Of a function in TRL's style (it takes `completions` by name): whether prompts and completions are lists of
    messages instead of texts; null makes them so where the problems have `messages`."""

    @property
    def compares_answers(self) -> bool:
        """A function that gets several completions at once may compare them."""
        return recognised(self.function) in ("batched", "trl")

    def build(self) -> FunctionReward:
        """Raises InputError if the function cannot be found or takes other arguments."""
        return FunctionReward(self.function, self.chats)

    def check_problems(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if a function in TRL's style asks for a column that a problem does not have."""
        check_columns(self.function, recognised(self.function), problems)


class FunctionReward:
    """The function at `package.module:function`; see `FunctionRewardConfig`, and `ScoringFunction` for its calls.

    A completion is an `Answer`. Raises InputError if the function cannot be found or takes other arguments.
    """

    def __init__(self, path: str, chats: bool | None = None) -> None:
        self._name = path.rpartition(":")[2]
        self._function = ScoringFunction(path, recognised(path), chats)

    def score(self, context: StepContext) -> Scores:
        """The function's values, NaN where it has no opinion. The part and the metric, their mean, are called
        `function/` and the function's name. What a function of TRL gives to `log_metric`, and numbers that it gives to
        `log_extra`, are metrics and parts below that name.

        Raises InputError naming the function and the problem if a returned value is no number, or infinite. Exceptions
        of the function itself propagate.
        """
        return context.once(self, lambda: self._scores(context))

    def _scores(self, context: StepContext) -> Scores:
        function, name = self._function, f"function/{self._name}"
        answers = [(group.problem, answer) for group in context.groups for answer in group.answers]
        state = TrainerState(context.steps_before, context.planned_steps or 0)
        values = context.ragged(function.values(answers, state))
        heard = values.opinions().flat
        metrics = {name: heard.mean().item()} if len(heard) else {}
        metrics |= {f"{name}/{each}": sum(given) / len(given) for each, given in function.logged.items()}
        found = {f"{name}/{column}": _numbers(given) for column, given in function.extra.items()}
        columns = {key: context.ragged(given) for key, given in found.items() if len(given) == len(answers)}
        return Scores(values, {name: values, **columns}, metrics)


def _numbers(given: Sequence[Any]) -> list[float]:
    """The numbers of a column, also those of numpy and torch; none of a column of anything else."""
    try:
        return [] if any(isinstance(value, str) for value in given) else [*map(float, given)]
    except (TypeError, ValueError):
        return []
