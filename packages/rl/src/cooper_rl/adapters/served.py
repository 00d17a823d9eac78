"""The service's clients of this process, configured by environment variables, and rows with a split."""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from cooper_base.config.checking import Settings, check_settings
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.data.strict_json import parse_json
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError
from cooper_rl.adapters.rows import Columns
from cooper_rl.service.client import URL, AsyncRewardClient, RewardClient

RUN, COLUMNS = "COOPER_RUN", "COOPER_COLUMNS"
"""Beside `URL`, environment variables: the run's name, and other names of columns as a JSON object. The service's token
is in COOPER_TOKEN.
"""

_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncRewardClient] = WeakKeyDictionary()


@cache
def client() -> RewardClient:
    """The service's client of this process. Raises InputError if COOPER_URL is not set."""
    return RewardClient(_address(), run=os.environ.get(RUN))


def async_client() -> AsyncRewardClient:
    """The same for asynchronous code, one per event loop, because connections belong to their loop."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        _of_loop[loop] = AsyncRewardClient(_address(), run=os.environ.get(RUN))
    return _of_loop[loop]


def _address() -> str:
    if not os.environ.get(URL):
        raise InputError(f"environment variable {URL} is not set; start `cooper serve` and put its address there")
    return os.environ[URL]


@cache
def columns() -> Columns:
    """The column names in COOPER_COLUMNS, or the defaults. Raises InputError for an unknown field."""
    text = os.environ.get(COLUMNS, "{}")
    try:
        given = parse_json(text)
    except ValueError as error:
        raise InputError(f'{COLUMNS}: {text!r}: {error}; write {{"question": "problem"}} or the like') from error
    return check_settings(Columns, Settings(given, COLUMNS))


def read_row(row: Mapping[str, Any], where: str) -> tuple[Problem, bool]:
    """A row's problem, and whether its answers may be trained on: those of the split `train`.

    These trainers do not mark the answers of an evaluation, so every row must have its split. Raises InputError if a
    column is missing.
    """
    problem = columns().problem(row, where)
    if "split" not in row:
        raise InputError(
            f"{where} has no 'split' (it has: {', '.join(map(repr, row))}); write 'train' in every training row and "
            "'test' in every other, or the reward model would be trained on test questions"
        )
    return problem, row["split"] == "train"


def single(
    problem: Problem,
    completion: str | Iterable[Any],
    stopped: bool,
    group: str | None = None,
    id: str | None = None,
    verdict: UserVerdict | None = None,
) -> AnswerGroup:
    """One answer, a text or messages, as part of a group, by default its problem's, with a unique id."""
    answer = Answer.of(completion, stopped, id=id or uuid4().hex, verdict=verdict)
    return AnswerGroup(group or problem.id, problem, [answer])


def end_step(keep: Collection[str] | None = None) -> None:
    """Train the reward model on the answers of the service's step under way, if there is one: on those of the groups
    to `keep`, by default on all."""
    if (opened := client().info()["open"]) is not None:
        client().update(opened["step"], keep)
