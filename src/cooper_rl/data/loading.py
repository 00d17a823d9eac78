"""Loads and validates the problems that a configuration names. Every command uses this module."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from cooper_rl.config.user_functions import load_added
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.data.mappings import BadValue, Mapping, map_row
from cooper_rl.data.problem import Problem
from cooper_rl.data.readers import Row, read_file, read_hub
from cooper_rl.data.ready_made import READY_MADE
from cooper_rl.data.validation import (
    BadRow,
    Duplicate,
    Fault,
    ValidationReport,
    location,
    validate,
)
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

MADE_COUNT = 512
"""Number of problems of a made world if no limit is set."""


@dataclass
class LoadedProblems:
    """The problems as read, before any reference answer is verified."""

    problems: list[Problem] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    rows: int = 0
    """Number of rows read. `skip` and `limit` leave out some of them."""


def load_problems(config: ProblemsConfig, fault: Fault | None) -> ValidationReport:
    """Read and map the rows, drop duplicates, shuffle, apply `skip` and `limit`, and validate.

    `fault` is None if the reward does not depend on the reference answers. They are then not checked, and a missing one
    becomes an empty text.

    Raises:
        InputError: the source or a row is invalid, or there are more bad rows than `config.max_bad_rows`.
        MissingExtraError: Parquet or a hub data set without the extra `data`.
    """
    loaded = read_problems(config, answers_required=fault is not None)
    without = sum(not problem.answer for problem in loaded.problems)
    if without:
        logger.info("%d of %d problems have no reference answer", without, len(loaded.problems))
    return validate(
        loaded.problems,
        fault,
        max_bad_rows=config.max_bad_rows,
        bad_rows=loaded.bad_rows,
        duplicates=loaded.duplicates,
        rows=loaded.rows,
    )


def read_problems(config: ProblemsConfig, answers_required: bool = True) -> LoadedProblems:
    """Do everything that `load_problems` does, except for verifying the answers."""
    loaded = LoadedProblems()
    wanted = None if config.limit is None else config.skip + config.limit
    questions: dict[str, Problem] = {}
    ids: set[str] = set()
    for problem in _problems_of(config, loaded.bad_rows, answers_required):
        # Before shuffling and cutting, so that no question ends up in both a training part and a held-out part.
        if problem.question in questions:
            first = questions[problem.question]
            reason = f"same question as {location(first)}"
            loaded.duplicates.append(Duplicate(location(problem), reason, first, problem.answer))
            continue
        if problem.id in ids:
            raise InputError(f"{location(problem)}: id {problem.id!r} is used twice; choose another problems.id field")
        questions[problem.question] = problem
        ids.add(problem.id)
        loaded.problems.append(problem)
        if config.shuffle_seed is None and len(loaded.problems) == wanted:
            break
    loaded.rows = len(loaded.problems) + len(loaded.bad_rows) + len(loaded.duplicates)
    if config.shuffle_seed is not None:
        Random(config.shuffle_seed).shuffle(loaded.problems)
    loaded.problems = loaded.problems[config.skip : wanted]
    return loaded


def _problems_of(config: ProblemsConfig, bad_rows: list[BadRow], answers_required: bool) -> Iterator[Problem]:
    if config.kind == "made":
        return _made(config)
    mapping = replace(
        mapping_of(config), answer_required=answers_required, rule=config.rule, rule_field=config.rule_field
    )
    return _mapped(config, mapping, bad_rows)


def _mapped(config: ProblemsConfig, mapping: Mapping, bad_rows: list[BadRow]) -> Iterator[Problem]:
    stem = Path(config.source).stem if config.kind == "file" else config.source
    for number, row in enumerate(_rows(config), start=1):
        try:
            yield map_row(row, mapping, fallback_id=f"{stem}-{number}")
        except BadValue as error:
            bad_rows.append(BadRow(row.location, str(error)))


def _rows(config: ProblemsConfig) -> Iterator[Row]:
    if config.kind == "file":
        return read_file(Path(config.source).expanduser())
    return read_hub(config.source, config.subset, config.split or "train")


def mapping_of(config: ProblemsConfig) -> Mapping:
    """The ready-made mapping named by `format`, or one built from the configured field names."""
    if config.format is not None:
        return READY_MADE[config.format]
    question = tuple(name.strip() for name in (config.question or "question").split("+"))
    return Mapping(question, config.answer or "answer", config.solution, config.id)


def _made(config: ProblemsConfig) -> Iterator[Problem]:
    count = config.skip + (config.limit or MADE_COUNT)
    made = load_added("problems", config.source)(config.split or "train", count, config.seed)  # reports unknown splits
    return (replace(problem, rule=config.rule) for problem in made)
