"""Problems of reasoning-gym, a package that generates tasks of a hundred kinds offline."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError, MissingExtraError, did_you_mean

TEST_SHARE = 5
"""About one question in this many is a test question."""
_CHUNK = 500  # questions of one data set of the package; some tasks cannot make many more
_PATIENCE = 2000
_HASHED = ("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder")
"""Tasks of version 0.1.25 that iterate over sets of words, whose order differs between processes."""


def reasoning_gym_problems(
    tasks: Mapping[str, Mapping[str, Any]], split: str, count: int, seed: int = 0
) -> list[Problem]:
    """Draw `count` different problems of these tasks, each with its settings and its `weight` (1 without one).

    A question belongs to the same split for every seed and all settings, so the splits never share a question.
    `metadata` holds `task`, `settings`, and `entry`, what the package says of the question. A task whose questions have
    no reference answer gives an empty one.

    Raises MissingExtraError without the package, and InputError for an unknown split, task or setting and for a task
    with too few different questions.
    """
    if split not in ("train", "test"):
        raise InputError(f"split: reasoning_gym has no split {split!r}; use train or test")
    random = Random(f"{split}-{seed}")
    settings = {name: {key: value for key, value in given.items() if key != "weight"} for name, given in tasks.items()}
    weights = [_weight(name, given) for name, given in tasks.items()]
    questions = {name: _questions(name, settings[name], split, seed) for name in tasks}
    drawn = random.choices(list(tasks), weights, k=count)
    return [_problem(name, settings[name], split, next(questions[name])) for name in drawn]


def _weight(name: str, given: Mapping[str, Any]) -> float:
    weight = given.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
        raise InputError(f"tasks.{name}.weight: must be a positive number, is {weight!r}")
    return weight


def _questions(name: str, settings: dict[str, Any], split: str, seed: int) -> Iterator[dict[str, Any]]:
    """Different questions of one task in one split."""
    seen: set[str] = set()
    chunk = without_a_new_one = 0
    while without_a_new_one < _PATIENCE:
        # Neighbouring seeds of the package share questions.
        chunk_seed = _digest(f"{name} {seed} {chunk}") % 2**31
        for entry in dataset(name, settings, chunk_seed):
            question = entry["question"]
            is_new = question not in seen and (_digest(question) % TEST_SHARE == 0) == (split == "test")
            without_a_new_one = 0 if is_new else without_a_new_one + 1
            if is_new:
                seen.add(question)
                yield entry
        chunk += 1
    raise InputError(
        f"tasks.{name}: has about {len(seen)} different {split} questions with these settings, too few for "
        "its weight; give it less weight, lower limit, or widen its settings"
    )


def _problem(name: str, settings: dict[str, Any], split: str, entry: dict[str, Any]) -> Problem:
    return Problem(
        id=f"{name}-{split}-{_digest(entry['question']):016x}",
        question=entry["question"].strip(),
        answer="" if entry["answer"] is None else str(entry["answer"]),
        solution=f"The answer is \\boxed{{{entry['answer']}}}." if entry["answer"] is not None else None,
        metadata={"task": name, "settings": settings, "entry": entry["metadata"]},
    )


def dataset(name: str, settings: Mapping[str, Any], seed: int = 0) -> Any:
    """A data set of the package. Raises InputError that names the task and, if it can, the setting."""
    package = _package()
    tasks = package.factory.DATASETS
    if name not in tasks:
        remedy = did_you_mean(name, tasks, "reasoning_gym.factory.DATASETS has their names")
        raise InputError(f"tasks.{name}: reasoning-gym has no such task; {remedy}")
    if name in _HASHED and os.environ.get("PYTHONHASHSEED", "random") == "random":
        raise InputError(
            f"tasks.{name}: draws other questions in every process, and a run could not be resumed; set "
            "PYTHONHASHSEED=0 in the environment"
        )
    fields = {field: None for field in tasks[name][1].__dataclass_fields__ if field not in ("seed", "size")}
    for field in settings:
        if field not in fields:
            raise InputError(f"tasks.{name}.{field}: no such setting; choose from {', '.join(fields)}, weight")
    try:
        return package.create_dataset(name, **settings, seed=seed, size=_CHUNK)
    except (AssertionError, TypeError, ValueError) as error:  # how its tasks refuse a value
        raise InputError(f"tasks.{name}: {error or 'a setting is out of range'}") from error


@cache
def _package() -> ModuleType:
    try:
        import reasoning_gym  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - optional
    except ImportError as error:
        raise MissingExtraError(
            "problems.source: reasoning_gym needs the extra `reasoning-gym`: pip install reasoning-gym"
        ) from error
    return reasoning_gym


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
