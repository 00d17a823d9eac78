"""From a configuration to validated problems: the one call that commands make."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import cast

from cooper_rl.data.arithmetic.problems import Split, arithmetic_problems
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

ARITHMETIC_COUNT = 512
"""Problems of the arithmetic world where no limit is set."""


@dataclass
class LoadedProblems:
    """What reading gives, before any answer is verified."""

    problems: list[Problem] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    rows: int = 0
    """Rows read, of which `problems` may be a part."""


def load_problems(config: ProblemsConfig, fault: Fault | None) -> ValidationReport:
    """Read, map, drop duplicates, shuffle, cut to size and validate.

    `fault` is None where the reward does not come from the reference answers: then they are not checked, and may be
    missing, which leaves them empty.

    Raises:
        InputError: anything wrong with the source or its rows, beyond `config.max_bad_rows` bad ones.
        MissingExtraError: Parquet or a hub dataset without the extra `data`.
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
    """Everything `load_problems` does but verifying the answers."""
    loaded = LoadedProblems()
    wanted = None if config.limit is None else config.skip + config.limit
    questions: dict[str, Problem] = {}
    ids: set[str] = set()
    for problem in _problems_of(config, loaded.bad_rows, answers_required):
        # Before shuffling and cutting, so that no question stands both in a training part and in a held-out part.
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
    if config.kind == "arithmetic":
        return _arithmetic(config)
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
    """The ready-made mapping named by `format`, or one made of the field names."""
    if config.format is not None:
        return READY_MADE[config.format]
    question = tuple(name.strip() for name in (config.question or "question").split("+"))
    return Mapping(question, config.answer or "answer", config.solution, config.id)


def _arithmetic(config: ProblemsConfig) -> Iterator[Problem]:
    count = config.skip + (config.limit or ARITHMETIC_COUNT)
    # The world itself refuses a split it does not have.
    split = cast(Split, config.split or "train")
    return (replace(problem, rule=config.rule) for problem in arithmetic_problems(split, count, config.seed))
