"""The scorers of reasoning-gym, each with the questions of its own task."""

import functools
import importlib
import json
from typing import Any

from registry import Score

SEED = 0


@functools.cache
def _task(name: str, count: int) -> Any:
    return importlib.import_module("reasoning_gym").create_dataset(name, seed=SEED, size=count)


def gym_reward(name: str, count: int) -> Score:
    """The scorer of a task, of what reasoning-gym takes from the completion."""
    task, extract = _task(name, count), importlib.import_module("reasoning_gym.utils").extract_answer
    entries = {task[number]["question"]: task[number] for number in range(count)}
    return lambda question, reference, completion: task.score_answer(extract(completion), entries[question])


def gym_problems(count: int) -> str:
    """`count` questions of each task by name, as JSON; what was raised where a task makes none."""
    names = sorted(importlib.import_module("reasoning_gym.factory").DATASETS)
    return json.dumps({name: _questions(name, count) for name in names})


def _questions(name: str, count: int) -> Any:
    try:
        rows = [*_task(name, count)]
    except Exception as error:  # noqa: BLE001 - of any task: it is reported
        return f"{type(error).__name__}: {error}"[:200]
    return [{"question": row["question"], "answer": str(row["answer"])} for row in rows if row["answer"] is not None]
