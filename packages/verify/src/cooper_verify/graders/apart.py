"""A grader with code of the user's, in a process of its own.

What the code prints goes to standard error and what it reads is empty. Its end, by `os._exit`, a crash or a signal, is
an error and not the end of the command, and its threads end with it. Answers on which it raises have no score, and the
reason says what was raised.

Problems are sent as JSON: what a row of Parquet has besides, such as a date, becomes text.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from importlib import import_module
from queue import SimpleQueue
from typing import IO, Any

from cooper_base.config.user_functions import exits_are_faults
from cooper_base.data.problem import Problem
from cooper_base.data.text import one_line
from cooper_base.errors import InputError, MissingExtraError, users_function
from cooper_base.progress import awaited
from cooper_verify.faults import halved
from cooper_verify.grader import RAISED, Asked, Grader, Opinion, RaisedApart, checked_opinions
from cooper_verify.graders.function import FunctionGrader
from cooper_verify.graders.written import form_by_text, open_grader
from cooper_verify.rules.processes.child import ChildProcess, limit, private_streams

TOLD = ("accepts_above", "gives_probabilities", "reads_reference", "gives_verdicts", "compares_answers")
"""What a grader says about itself, besides its settings."""


class GraderApart(Grader):
    """The grader that a function of this package opens, in its own process. It starts when it is first asked."""

    signature: str | None
    """Whose signature a function has, in words; None for another grader."""

    def __init__(self, opener: Callable[..., Grader], written: str, *arguments: Any) -> None:
        """`opener` is called there with what is `written` and with the arguments, which are JSON values. Raises what it
        raises, and InputError if the process ends."""
        self.name = written
        opened_by = f"{opener.__module__}:{opener.__qualname__}"
        self._process = ChildProcess(__name__, opened_by, json.dumps([written, *arguments]), shows_errors=True)
        self._waiting = ThreadPoolExecutor(1)
        try:
            about = self._ask("about", [], "is opened")
        except BaseException:
            self.close()
            raise
        self._settings, self.signature = about["settings"], about["signature"]
        for name in TOLD:
            setattr(self, name, about[name])

    def settings(self) -> dict[str, Any]:
        return self._settings

    def check(self, problems: Sequence[Problem]) -> None:
        self._ask("check", [asdict(problem) for problem in problems], "checks the problems")

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """Its opinions; none, with the reason, of an answer on which it raises an exception. Raises InputError for
        values that are no numbers, and if its process ends."""
        problems = list({id(problem): problem for problem, _ in answers}.values())
        places = {id(problem): place for place, problem in enumerate(problems)}
        asked = [(places[id(problem)], text) for problem, text in answers]
        given = self._ask("grade", [[*map(asdict, problems)], asked], f"scores {len(answers)} answers")
        return [Opinion(**opinion) for opinion in given]

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._process.close()
        self._waiting.shutdown()

    def _ask(self, request: str, argument: Any, doing: str) -> Any:
        start = time.monotonic()

        def note() -> str:
            return f"waiting for {self.name}, which {doing}: {time.monotonic() - start:.0f} s"

        exchanged = self._waiting.submit(self._process.exchange, [request, argument], 1, threading.TIMEOUT_MAX)
        replies = awaited(exchanged, note)
        if not replies:
            raise InputError(
                f"{self.name}: ended its process ({_ended(self._process.exit_code)}) while it {doing}; a reward "
                "returns a number for each answer, or raises an exception"
            )
        reply = replies[0]
        if "missing" in reply:
            raise MissingExtraError(reply["missing"])
        if "error" in reply:
            raise InputError(reply["error"])
        return reply["result"]


HERE = ("rule", "judge", "reward_model", "service")
"""Graders that run no code of the user's but that of a rule, which is graded where its verdicts are."""


class RaisingApart(GraderApart):
    """It raises where the code raises, as the grader itself would: who asks counts the fault and writes it down."""

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        opinions = super().grade(answers)
        for opinion in opinions:
            if (opinion.why or "").startswith(RAISED):
                raise RaisedApart(f"{self.name} {opinion.why}")
        return opinions


def open_where_it_can_do_no_harm(written: str, settings: Sequence[str] = ()) -> Grader:
    """As `open_grader`, in a process of its own if it may run code of the user's: what that prints is none of the
    command's output, and its end none of the command's."""
    if form_by_text(written) in HERE:
        return open_grader(written, settings)
    return RaisingApart(open_grader, written, [*settings])


def _ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def opinions_on_each(grader: Grader, answers: Sequence[Asked]) -> list[Opinion]:
    """Its opinions; none, with the reason, of an answer on which it raises an exception. Raises its InputErrors."""

    def opinions(some: Sequence[Asked]) -> Sequence[Opinion]:
        with exits_are_faults(grader.name):
            return checked_opinions(grader, some)

    def none(_: Asked, error: Exception) -> Opinion:
        return Opinion("silent", None, _raised(error))

    return halved(opinions, answers, none, lambda error: not isinstance(error, InputError))


def _raised(error: Exception) -> str:
    place = (users_function(error) or "").rpartition(", ")[2]
    return f"{RAISED}{type(error).__name__}: {one_line(str(error))}{f' ({place})' if place else ''}"


# What follows runs in the process itself.


def main(opener: str, arguments: str) -> None:
    """Answer requests until standard input ends, also while the user's code runs."""
    requests, replies = private_streams()
    faulthandler.enable()
    limit("RLIMIT_CORE", 0)
    _send(replies, {"ready": True})
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    module, _, name = opener.partition(":")

    @cache
    def grader() -> Grader:
        return getattr(import_module(module), name)(*json.loads(arguments))

    try:
        while True:
            _send(replies, _reply(grader, *waiting.get()))
    finally:
        os._exit(1)  # without waiting for threads of the user's


def _read(requests: IO[str], waiting: "SimpleQueue[Any]") -> None:
    for line in requests:
        waiting.put(json.loads(line))
    os._exit(0)


def _send(replies: IO[str], message: Any) -> None:
    replies.write(json.dumps(message, default=str) + "\n")
    replies.flush()


def _reply(open_grader: Callable[[], Grader], request: str, argument: Any) -> dict[str, Any]:
    written = json.loads(sys.argv[2])[0]
    try:
        with exits_are_faults(written):
            return {"result": REQUESTS[request](open_grader(), argument)}
    except MissingExtraError as error:
        return {"missing": str(error)}
    except InputError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - the parent raises it
        return {"error": f"{written}: {_raised(error)}"}


def _about(grader: Grader, _: Any) -> dict[str, Any]:
    signature = grader.signature if isinstance(grader, FunctionGrader) else None
    about = {name: getattr(grader, name) for name in TOLD}
    return about | {"settings": grader.settings(), "signature": signature}


def _check(grader: Grader, problems: Any) -> None:
    grader.check([Problem(**problem) for problem in problems])


def _grade(grader: Grader, asked: Any) -> list[dict[str, Any]]:
    problems = [Problem(**problem) for problem in asked[0]]
    return [
        asdict(opinion)
        for opinion in opinions_on_each(grader, [Asked(problems[place], text) for place, text in asked[1]])
    ]


REQUESTS: dict[str, Callable[[Grader, Any], Any]] = {"about": _about, "check": _check, "grade": _grade}


if __name__ == "__main__":
    main(*sys.argv[1:])
