"""The user's own reward functions, and functions named in a configuration in general."""

import importlib
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cooper_rl.errors import InputError
from cooper_rl.rewards.scores import Scores
from cooper_rl.sampling.sampler import Group


def load_function(path: str, parameters: Sequence[str]) -> Callable[..., Any]:
    """Import `package.module:function`; it must take `parameters` as positional arguments.

    Raises InputError for a malformed path, a module or name that does not exist, or a function of other arity.
    """
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise InputError(f"{path!r}: name a function as package.module:function")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(f"{path}: {error}; is the module installed or on PYTHONPATH?") from error
    function = getattr(module, name, None)
    if not callable(function):
        problem = "is not callable" if hasattr(module, name) else "does not exist"
        raise InputError(f"{path}: {name} {problem} in {module.__name__}")
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        raise InputError(f"{path}: must take ({', '.join(parameters)}): {error}") from error
    except ValueError:  # built-in functions have no signature to look at
        return function
    return function


class FunctionReward:
    """A function `(problem: Problem, completion: Completion) -> float` of the user's, times `weight`."""

    def __init__(self, function: str, weight: float = 1.0) -> None:
        self._path = function
        self._function = load_function(function, ("problem", "completion"))
        self._weight = weight

    def score(self, groups: Sequence[Group]) -> Scores:
        """Weighted values as rewards; part and metric are named after the function, and unweighted.

        Raises InputError naming the problem where the function returns no finite number.
        """
        values = torch.tensor(
            [[self._value(group, index) for index in range(len(group.completions))] for group in groups]
        )
        name = self._path.rpartition(":")[2]
        return Scores(self._weight * values, {name: values}, {f"function/{name}": values.mean().item()})

    def _value(self, group: Group, index: int) -> float:
        value = self._function(group.problem, group.completions[index])
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{self._path}: returned {value!r} for problem {group.problem.id}; return a finite number")
        return number
