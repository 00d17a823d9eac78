"""The user's environments: their contract, and what is done about one that hangs, throws or says too much.

The contract is that of TRL's `environment_factory`, so a class written for it (OpenEnv's too) works here:

    class Calculator:
        def reset(self, seed: int, **row) -> str | None: ...  # what it returns is added to the prompt
        def add(self, a: int, b: int) -> int: ...  # every public method is a tool, described by its docstring
        def get_reward(self) -> float: ...  # optional: asked once, at the end of a run

Methods may be `async def`. Instances are made once and reset for every rollout.
"""

import asyncio
import ctypes
import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from threading import Thread
from types import MethodType
from typing import Any

from cooper_base.config.user_functions import EventLoop, load_object
from cooper_base.data.problem import Problem
from cooper_base.data.transcript import LONGEST_RESULT, ToolCall, shortened
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError, users_function

COUNTED = ("calls", "failed_calls", "timeouts", "cut_results", "lost")
"""Names of the counts, which start anew at every `reset`."""
TIMEOUT_S = 30.0
"""Most seconds for `reset`, for the calls of one turn, and for `get_reward`, because one that hangs would hold up the
step. An environment that takes longer is lost to its rollout, and the run goes on."""
AT_ONCE = 32
"""Most environments that work at the same time, each in its own thread."""
MOST_HANGING = 2 * AT_ONCE
"""Most threads of calls that were given up and have not ended. While there are as many, no environment is called."""


def verdict_of(reward: float | None, solved_at: float | None) -> UserVerdict:
    """What an environment's reward says of its answer: `silent` without a number, or without `solved_at`."""
    if reward is None or math.isnan(reward) or solved_at is None:
        return "silent"
    return "correct" if reward >= solved_at else "wrong"


class Environments:
    """Instances of the class at `package.module:Class`, one for each rollout that runs at the same time.

    A fault of an environment never ends a run. An environment that hangs in a call, or that throws in `reset` or
    `get_reward`, is lost: it answers no further calls, its rollout has no reward, and the next `reset` creates another
    instance. A hanging call is ended at its next line of Python. One that waits in the system keeps its thread, and
    there are at most `MOST_HANGING` of these. Every fault is counted, and the first of each kind is in `new_faults`.
    Not safe for several threads.
    """

    def __init__(self, path: str, timeout_s: float = TIMEOUT_S) -> None:
        """Raises InputError for a class that does not exist or does not keep to the contract."""
        self._path, self._timeout_s = path, timeout_s
        self._make = load_object(path, "class")
        if not inspect.isclass(self._make) or not callable(getattr(self._make, "reset", None)):
            raise InputError(f"rollout.environment: {path} is not a class with a method `reset`")
        methods = inspect.getmembers(self._make, inspect.isfunction)
        public = {name: method for name, method in methods if name not in ("reset", "get_reward") and name[0] != "_"}
        self.tools = {name: MethodType(method, self._make) for name, method in public.items()}
        """The tools by name, to be described; they are called as methods of an instance."""
        self.has_reward = "get_reward" in dict(methods)
        self._loop = EventLoop() if any(inspect.iscoroutinefunction(method) for _, method in methods) else None
        self._hanging: list[Thread] = []
        self._pool: list[Any] = []
        self._under_way = 0
        self._lost: set[int] = set()
        self._failed: set[int] = set()
        self._worked: set[int] = set()
        self._kinds: set[str] = set()
        self._new_faults: list[str] = []
        self.counts: Counter[str] = Counter()

    def check(self, problem: Problem) -> None:
        """Begin a rollout. Raises InputError for an environment that cannot be made or reset."""
        self.reset([problem], [0], [[]])
        if self._lost:
            raise InputError(f"rollout.environment: {self.new_faults()[-1]}")

    def reset(
        self, problems: Sequence[Problem], seeds: Sequence[int], prompts: Sequence[list[dict[str, str]]]
    ) -> list[str | None]:
        """Begin one rollout per problem. Returns what each environment shows before the first turn, if anything."""
        self._lost, self._failed, self._worked = set(), set(), set()
        self.counts, self._under_way = Counter(), len(problems)
        self._pool += [None] * (len(problems) - len(self._pool))
        rows = [self._row(*of_one) for of_one in zip(problems, seeds, prompts, strict=True)]
        tasks = [lambda i=i, row=row: self._begun(self._pool[i], row) for i, row in enumerate(rows)]
        shown: list[str | None] = []
        for index, (done, result) in enumerate(self._within_limit(tasks)):
            if done:
                self._pool[index], text = result
                shown.append(None if text is None else self._shortened(text))
            else:
                self.lose(index, "reset", result)
                shown.append(None)
        return shown

    def call(self, calls_of: Mapping[int, Sequence[ToolCall]]) -> dict[int, list[str]]:
        """For each rollout, the results of the tools it called, in order, as text. Faults are results too."""
        self.counts["calls"] += sum(map(len, calls_of.values()))
        working = [index for index in calls_of if index not in self._lost]
        tasks = [lambda i=i: [self._call(self._pool[i], call) for call in calls_of[i]] for i in working]
        answered = dict(zip(working, self._within_limit(tasks), strict=True))
        results: dict[int, list[str]] = {}
        for index, calls in calls_of.items():
            done, result = answered.get(index, (False, "the environment does not answer any more"))
            if not done:
                self.counts["timeouts"] += isinstance(result, TimeoutError)
                self.lose(index, calls[0]["name"], result)
                result = [(False, _error(result))] * len(calls)
            for call, (worked, answer) in zip(calls, result, strict=True):
                self.counts["failed_calls"] += not worked
                if worked:
                    self._worked.add(index)
                elif isinstance(answer, Exception) and users_function(answer):  # else the policy is mistaken
                    self._failed.add(index)
                    self.report(call["name"], answer)
            texts = [_error(answer) if isinstance(answer, Exception) else answer for _, answer in result]
            results[index] = [self._shortened(text) for text in texts]
        return results

    @property
    def fault_rate(self) -> float:
        """Share of the rollouts that lost their environment, or whose calls all ended in an exception of its code."""
        return len(self._lost | (self._failed - self._worked)) / max(self._under_way, 1)

    def rewards(self) -> list[float | None]:
        """The result of `get_reward` for each rollout; None if the environment has no such method, is lost, or returned
        no finite number."""
        working = [index for index in range(self._under_way) if self.has_reward and index not in self._lost]
        tasks = [lambda i=i: float(self._finish(self._pool[i].get_reward())) for i in working]
        rewards: list[float | None] = [None] * self._under_way
        for index, (done, result) in zip(working, self._within_limit(tasks), strict=True):
            if done and math.isfinite(result):
                rewards[index] = result
            else:
                self.lose(index, "get_reward", ValueError(f"returned {result}") if done else result)
        return rewards

    def lose(self, index: int, method: str, fault: object) -> None:
        """Give up the environment of a rollout, because of a fault in one of its methods."""
        if index not in self._lost:
            self._lost.add(index)
            self.counts["lost"] += 1
            self._pool[index] = None
            self.report(method, fault)

    def new_faults(self) -> list[str]:
        """The faults since the last call of this method, one of each kind: of a method, an error, and a line."""
        faults, self._new_faults = self._new_faults, []
        return faults

    def report(self, method: str, fault: object) -> None:
        """Keep a fault for `new_faults`, unless one of its kind is there."""
        place = users_function(fault) if isinstance(fault, BaseException) else None
        error = f"{type(fault).__name__}: {fault}" if isinstance(fault, BaseException) else str(fault)
        kind = f"{method} {type(fault).__name__} {place}"
        if kind not in self._kinds:
            self._kinds.add(kind)
            self._new_faults.append(f"{self._path}: {method}() failed: {error}{f' ({place})' if place else ''}")

    def _row(self, problem: Problem, seed: int, prompt: list[dict[str, str]]) -> dict[str, Any]:
        """The arguments of `reset` that its signature accepts: the fields of the problem's row under their own names;
        the problem's id, question, answer and solution and a seed, unless the row has such a field; and the prompt as
        TRL passes it.
        """
        row = {"id": problem.id, "question": problem.question, "answer": problem.answer, "solution": problem.solution}
        row |= {"seed": seed, **problem.metadata, "prompt": prompt}
        parameters = inspect.signature(self._make.reset).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return row
        names = {parameter.name for parameter in parameters}
        return {name: value for name, value in row.items() if name in names}

    def _begun(self, made: Any, row: dict[str, Any]) -> tuple[Any, str | None]:
        """A reset environment, and what `reset` returned. It joins the pool only if it is ready in time."""
        environment = self._make() if made is None else made
        shown = self._finish(environment.reset(**row))
        return environment, None if shown is None else str(shown)

    def _call(self, environment: Any, call: ToolCall) -> tuple[bool, str | Exception]:
        """Whether the call worked, and its result as text or the exception of the environment's code."""
        if call["name"] not in self.tools:
            return False, _error(f"Tool {call['name']} not found.")
        if not isinstance(call["arguments"], dict):
            return False, _error("the arguments are no JSON object")
        try:
            return True, str(self._finish(getattr(environment, call["name"])(**call["arguments"])))
        except Exception as error:  # noqa: BLE001 - the policy may call anything with anything
            return False, error

    def _finish(self, result: Any) -> Any:
        if self._loop is None or not inspect.isawaitable(result):
            return result

        async def awaited() -> Any:
            async with asyncio.timeout(2 * self._timeout_s):  # by then it has been given up
                return await result

        return self._loop.run(awaited)

    def _shortened(self, text: str) -> str:
        self.counts["cut_results"] += len(text) > LONGEST_RESULT
        return shortened(text)

    def _within_limit(self, tasks: Sequence[Callable[[], Any]]) -> list[tuple[bool, Any]]:
        """For each task, true with its result, or false with the error that ended it or with a TimeoutError."""
        late = TimeoutError(f"no result within {self._timeout_s:g} s")
        full = RuntimeError(f"not called: {MOST_HANGING} calls of environments that took too long have not ended yet")
        outcomes: list[tuple[bool, Any]] = []
        while len(outcomes) < len(tasks):
            self._hanging = [thread for thread in self._hanging if thread.is_alive()]
            if not (room := MOST_HANGING - len(self._hanging)):
                return outcomes + [(False, full)] * (len(tasks) - len(outcomes))
            calls = [_started(task) for task in tasks[len(outcomes) :][: min(room, AT_ONCE)]]
            in_time = wait([future for future, _ in calls], self._timeout_s).done
            for future, thread in calls:
                if future not in in_time:
                    _end(thread)
                    self._hanging.append(thread)
                error = future.exception() if future in in_time else late
                outcomes.append((error is None, future.result() if error is None else error))
        return outcomes


def _started(task: Callable[[], Any]) -> "tuple[Future[Any], Thread]":
    """Start the task in a thread that does not keep the program from ending."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(task())
        except BaseException as error:  # noqa: BLE001 - the future holds it
            with suppress(InvalidStateError):  # ended just behind its result
                future.set_exception(error)

    thread = Thread(target=run, daemon=True, name="environment")
    thread.start()
    return future, thread


def _end(thread: Thread) -> None:
    """Raise SystemExit in the thread when it next runs Python, which it does not while a call of the system waits."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def _error(fault: object) -> str:
    """The text that the policy reads after a fault, which is the same as in TRL."""
    return str({"error": str(fault)})
