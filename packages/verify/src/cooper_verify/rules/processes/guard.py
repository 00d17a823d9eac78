"""Reads texts from outside in a process that can be killed: all that a rule does with them but Math-Verify's part.

The patterns of the rules take time in proportion to a text's length, as far as a checker can tell. One that did not
would hold its whole process: Python's regular expressions keep the interpreter lock and end before anything else runs.
So one process reads for all rules of a main process. It starts with the first text and needs no sympy. A timer of its
own CPU time kills it. A new process then makes the calls one by one, so that the text at fault is seen and gets the
reply `otherwise`. Where there is no such timer (Windows), only the parent's wall time limits it. A call that raises is
a fault (`cooper_verify.faults`), which costs its own reply.
"""

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from cooper_verify.faults import note_fault
from cooper_verify.rules.processes.child import (
    FROM_OUTSIDE,
    TRIES,
    Budget,
    SharedProcess,
    current_budget,
    limit,
    limit_cpu,
    reply_to_parent,
)

logger = logging.getLogger(__name__)

CPU_S = 0.5
"""CPU seconds that one call may take. Those that are known take milliseconds."""
_TOGETHER_CPU_S = 0.1
"""The same while all replies come together: the calls are made again where one needs more."""
_WALL_S = 60.0
_MEMORY_MIB = 2048
_CALLS = 256
"""Calls that are sent together. Other threads have their turn between two of these batches."""
_CALLS_ALONE = 32
"""Calls that are sent together where each has its own reply. Between two of these batches the budget is looked at."""

_AS_OTHERWISE = object()

_Function = TypeVar("_Function", bound=Callable[..., Any])


def guarded(
    function: Callable[..., Any], calls: Sequence[Sequence[Any]], otherwise: Any, at_fault: Any = _AS_OTHERWISE
) -> list[Any]:
    """The function's results for the arguments of each call, as JSON gives them back; `otherwise` for a call that needs
    more than half a second of CPU time or too much memory, and for all to which a `cpu_budget` leaves no time;
    `at_fault` for one that raises, by default `otherwise` too. Arguments are made JSON; what is no JSON becomes text.

    The function is one of a module of this package. Safe to use from several threads.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    results: list[Any] = []
    budget = current_budget()
    for start in range(0, len(calls), _CALLS):
        with _guard.lock:
            results += _guard.results(name, calls[start : start + _CALLS], otherwise, budget)
    for place, result in enumerate(results):
        if isinstance(result, _Raised):  # noted without the lock, for that may raise
            note_fault(name, result.traceback, calls[place])
            results[place] = otherwise if at_fault is _AS_OTHERWISE else at_fault
    return results


def prepared_by(prepare: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """What calls share is made by `prepare`, with the arguments of the first, outside of their CPU time. To import a
    rule's module took more than a call has, on a busy machine: every reference was lost that came first in a new
    process. It may use what the caller wrote, such as settings, and no text from outside."""

    def with_preparation(function: _Function) -> _Function:
        function.prepare = prepare  # pyright: ignore[reportAttributeAccessIssue]
        return function

    return with_preparation


class _Raised(NamedTuple):
    traceback: str


class _Guard(SharedProcess):
    def results(self, name: str, calls: Sequence[Sequence[Any]], otherwise: Any, budget: Budget) -> list[Any]:
        """One result for each call. All replies come together, or one by one if the process ends before."""
        if budget.is_spent:
            return [otherwise] * len(calls)
        if together := self.exchange([name, calls, True], 1, _WALL_S):
            budget.spend(sum(reply["cpu_s"] for reply in together[0]))
            return [*map(_result, together[0])]
        budget.spend(_TOGETHER_CPU_S)
        results: list[Any] = []
        losses = 0
        while len(results) < len(calls) and not budget.is_spent:
            rest = calls[len(results) :][:_CALLS_ALONE]
            replies = self.exchange([name, rest, False], len(rest), _WALL_S)
            results += map(_result, replies)
            budget.spend(sum(reply["cpu_s"] for reply in replies))
            if len(replies) == len(rest):
                continue
            budget.spend(CPU_S)
            losses = 0 if replies else losses
            if self.exit_code in FROM_OUTSIDE:
                losses += 1
                logger.warning("the process that reads texts was lost: killed, or silent for %g s", _WALL_S)
            if losses in (0, TRIES):
                results.append(otherwise)
                losses = 0
        return results + [otherwise] * (len(calls) - len(results))


def _result(reply: dict[str, Any]) -> Any:
    return _Raised(reply["error"]) if "error" in reply else reply["result"]


_guard = _Guard("cooper_verify.rules.processes.guard")


# What follows runs in the process itself.


def main() -> None:
    """Make calls until standard input ends."""
    logging.disable(logging.CRITICAL)
    limit("RLIMIT_AS", _MEMORY_MIB * 2**20)
    limit("RLIMIT_CORE", 0)
    reply_to_parent({"ready": True})
    for line in sys.stdin:
        name, calls, together = json.loads(line)
        seconds = _TOGETHER_CPU_S if together else CPU_S
        function = _named(name)
        prepare = getattr(function, "prepare", None)
        if prepare is not None:
            with suppress(Exception):  # the call raises it again, and that is noted
                prepare(*calls[0])
        replies = (_reply(function, arguments, seconds) for arguments in calls)
        if together:
            reply_to_parent([*replies])
        else:
            for reply in replies:
                reply_to_parent(reply)


def _reply(function: Callable[..., Any], arguments: Sequence[Any], cpu_s: float) -> dict[str, Any]:
    limit_cpu(cpu_s)
    start = time.process_time()
    try:
        result = {"result": function(*arguments)}
    except MemoryError:
        os._exit(1)
    except Exception:  # noqa: BLE001 - a fault, which the parent notes
        result = {"error": traceback.format_exc()}
    limit_cpu(0)
    return {**result, "cpu_s": time.process_time() - start}


@cache
def _named(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


if __name__ == "__main__":
    main()
