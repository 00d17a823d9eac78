"""What the trainers of many processes have in common: the service, named by the environment, and rows that know
their split."""

import asyncio
import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from cooper_rl.adapters.rows import Columns
from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.service.client import AsyncRewardClient, RewardClient

URL, TOKEN, RUN, COLUMNS = "COOPER_URL", "COOPER_TOKEN", "COOPER_RUN", "COOPER_COLUMNS"
"""Environment variables: the service, its token, the run's name, and other names of columns as a JSON object."""

_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncRewardClient] = WeakKeyDictionary()


@cache
def client() -> RewardClient:
    """The service's client of this process. Raises InputError where COOPER_URL is not set."""
    return RewardClient(_url(), os.environ.get(TOKEN), run=os.environ.get(RUN))


def async_client() -> AsyncRewardClient:
    """The same for asynchronous code; one for every event loop, as connections belong to theirs."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        _of_loop[loop] = AsyncRewardClient(_url(), os.environ.get(TOKEN), run=os.environ.get(RUN))
    return _of_loop[loop]


@cache
def columns() -> Columns:
    """The names in COOPER_COLUMNS, or the usual ones. Raises InputError for what `Columns` does not have."""
    text = os.environ.get(COLUMNS, "{}")
    try:
        return Columns(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise InputError(f'{COLUMNS}: {text!r}: {error}; write {{"question": "problem"}} or the like') from error


def read_row(row: Mapping[str, Any], where: str) -> tuple[Problem, bool]:
    """A row's problem, and whether it may be trained on: where its `split` is `train`.

    These trainers send the answers of an evaluation without a word, so every row has to say which it is. Raises
    InputError for what is missing.
    """
    problem = columns().problem(row, where)
    if "split" not in row:
        raise InputError(
            f"{where} has no 'split' (it has: {', '.join(map(repr, row))}); write 'train' in every training row and "
            "'test' in every other, or the reward model would be trained on test questions"
        )
    return problem, row["split"] == "train"


def single(problem: Problem, text: str, stopped: bool, group: str | None = None, id: str | None = None) -> AnswerGroup:
    """One answer as a part of its group: by default that of its problem, under a name that no other answer has."""
    return AnswerGroup(group or problem.id, problem, [Answer(text, stopped, id or uuid4().hex)])


def _url() -> str:
    if not os.environ.get(URL):
        raise InputError(f"environment variable {URL} is not set; start `cooper serve` and put its address there")
    return os.environ[URL]
