"""A reward computed by the user's own function: how it is found and called, and how its return values are checked."""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_rl.config.user_functions import UserFunction, load_function
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.data.answer import Answer
    from cooper_rl.data.problem import Problem
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class FunctionRewardConfig(RewardConfig):
    """A reward computed by your own function."""

    needs_reference: ClassVar[bool] = False
    kind: Literal["function"] = "function"
    """The kind of reward."""
    function: str
    """`package.module:function`, from an installed package or a module in the working folder; plain or `async def`.
    `function(problem, completion) -> float | None` is called once per completion; None is no opinion. The calls of an
    `async def` run concurrently for all completions of a step."""
    batched: bool = False
    """Call the function once per step, as `function(problems, completions) -> list[float]`. Both lists have one entry
    per completion; the function returns one number per completion, in the same order."""
    chats: bool | None = None
    """Of a function in TRL's style (it takes `completions` by name): whether prompts and completions are lists of
    messages instead of texts; null makes them so where the problems have `messages`."""

    @property
    def compares_answers(self) -> bool:
        """A function that gets several completions at once may compare them."""
        return self.batched or _columns_in_trls_style(self.function) is not None

    def build(self) -> FunctionReward:
        return FunctionReward(self.function, self.batched, self.chats)

    def check_problems(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if a function in TRL's style asks for a column that a problem does not have."""
        columns = None if self.batched else _columns_in_trls_style(self.function)
        for problem in problems if columns else ():
            fields = _columns_of(problem)
            if missing := [name for name, needed in (columns or {}).items() if needed and name not in fields]:
                raise InputError(
                    f"{self.function}: takes {missing[0]!r}, but problem {problem.id} has no such field; it has "
                    f"{', '.join(fields)}, and the fields that `problems` reads go by question, answer and solution"
                )


class FunctionReward:
    """The function at `package.module:function`, plain or `async def`; see `FunctionRewardConfig`.

    A completion is an `Answer`. A function that takes `completions` by name, and is not `batched`, is one in TRL's
    style: it is called once a step, with `prompts`, `completions` and the problems' fields as lists, by name. None and
    NaN among its values are no opinion. Raises InputError if the function cannot be found or takes other arguments.
    """

    def __init__(self, path: str, batched: bool = False, chats: bool | None = None) -> None:
        self._path = path
        self._chats = chats
        self._columns = None if batched else _columns_in_trls_style(path)
        self._batched = batched or self._columns is not None
        parameters = ("problems", "completions") if batched else ("problem", "completion")
        self._function = UserFunction(path, parameters if self._columns is None else None)

    def score(self, context: StepContext) -> Scores:
        """The function's values, NaN where it has no opinion. The part and the metric, their mean, are called
        `function/` and the function's name.

        Raises InputError naming the function and the problem if a returned value is no number, or infinite. Exceptions
        of the function itself propagate.
        """
        values = context.once(self, lambda: context.ragged(self._values(context)))
        name = f"function/{self._path.rpartition(':')[2]}"
        heard = values.opinions().flat
        return Scores(values, {name: values}, {name: heard.mean().item()} if len(heard) else {})

    def _values(self, context: StepContext) -> list[float]:
        answers = [(group.problem, answer) for group in context.groups for answer in group.answers]
        if self._columns is not None:
            returned = self._one_for_each(self._function.result_of(**self._arguments(answers)), len(answers))
            return [self._number(value, problem) for value, (problem, _) in zip(returned, answers, strict=True)]
        calls = [([problem for problem, _ in answers], [answer for _, answer in answers])] if self._batched else answers
        returned = self._function.results(calls)
        if self._batched:
            returned = self._one_for_each(returned[0], len(answers))
        return [self._number(value, problem) for value, (problem, _) in zip(returned, answers, strict=True)]

    def _arguments(self, answers: Sequence[tuple[Problem, Answer]]) -> dict[str, list[Any]]:
        """The arguments of a function in TRL's style: those it names, or all if it takes any."""
        assert self._columns is not None
        chats = [problem.messages is not None if self._chats is None else self._chats for problem, _ in answers]
        rows = [_columns_of(problem) for problem, _ in answers]
        names = dict.fromkeys(name for row in rows for name in row)
        lists: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names}
        lists["prompts"] = [_prompt(problem, chat) for (problem, _), chat in zip(answers, chats, strict=True)]
        lists["completions"] = [_completion(answer, chat) for (_, answer), chat in zip(answers, chats, strict=True)]
        if "" in self._columns:  # **kwargs
            return lists
        return {name: column for name, column in lists.items() if name in self._columns}

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
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError):
            number = math.inf
        if math.isinf(number):
            of_lists = isinstance(value, list | tuple) and not self._batched
            remedy = "; a function that takes lists needs batched: true" if of_lists else ""
            raise InputError(
                f"{self._path}: returned {reprlib.repr(value)} for problem {problem.id}; return a finite number, or "
                f"None for no opinion{remedy}"
            )
        return number


def _columns_in_trls_style(path: str) -> dict[str, bool] | None:
    """The columns that a function in TRL's style takes, each with whether it must have it, and "" for any further one;
    None for any other function."""
    try:
        parameters = inspect.signature(load_function(path, None)).parameters.values()
    except ValueError:  # built-in functions have no signature to look at
        return None
    names = {parameter.name for parameter in parameters}
    if not names & {"completions", "completion_ids"} or names & {"problem", "problems", "completion"}:
        return None
    further = [parameter for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD]
    columns = {
        parameter.name: parameter.default is parameter.empty for parameter in parameters if parameter not in further
    }
    columns |= dict.fromkeys({"prompts", "completions"} & columns.keys(), False)
    return columns | ({"": False} if further else {})


def _columns_of(problem: Problem) -> dict[str, Any]:
    """The fields of a problem's row, as a function in TRL's style names them."""
    fields = {"id": problem.id, "question": problem.question, "answer": problem.answer, "solution": problem.solution}
    return {**problem.metadata, **{name: value for name, value in fields.items() if value is not None}}


def _prompt(problem: Problem, chat: bool) -> Any:
    if chat:
        return problem.messages or [{"role": "user", "content": problem.question}]
    return problem.question


def _completion(answer: Answer, chat: bool) -> Any:
    if chat:
        return answer.messages or [{"role": "assistant", "content": answer.text}]
    return answer.transcript
