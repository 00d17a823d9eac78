"""Validates a data set before training: every reference answer must verify against itself."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

Fault = Callable[[Problem, str], str | None]
"""`(problem, answer) -> why the answer cannot be the problem's reference`, or None if it can. See `Rule.fault`."""

LISTED_ROWS = 20


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: its location and the reason."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


@dataclass(frozen=True)
class Duplicate(BadRow):
    """A row that repeats an earlier row's question. `first` is the earlier problem, `answer` is this row's answer."""

    first: Problem
    answer: str

    def contradicts(self, fault: Fault) -> bool:
        """Whether this row's answer does not verify against the earlier problem's."""
        return self.answer != self.first.answer and fault(self.first, self.answer) is not None

    def told(self) -> BadRow:
        """The contradiction as a bad row, with both locations and both answers."""
        both = f"the answer is {self.answer!r} here and {self.first.answer!r} there"
        return BadRow(self.location, f"{self.reason}, but {both}")


@dataclass(frozen=True)
class ValidationReport:
    """The usable problems, and the bad rows and duplicates among the `rows` rows read.

    `skip` and `limit` may leave out more rows, which are not listed.
    """

    problems: list[Problem]
    bad_rows: list[BadRow] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    rows: int = 0

    def summary(self) -> str:
        return (
            f"{len(self.problems)} problems from {self.rows} rows "
            f"({len(self.bad_rows)} bad, {len(self.duplicates)} duplicates)"
        )


def location(problem: Problem) -> str:
    """Where the problem was read from, or its id if that is unknown."""
    return str(problem.metadata.get("location", problem.id))


def boxed(answer: str) -> str:
    r"""The answer in a box, as a policy is asked to state it. `$\frac12$` loses its dollars: a box needs none."""
    inner = answer[1:-1] if answer.count("$") == 2 and answer[0] == answer[-1] == "$" else answer
    return f"\\boxed{{{inner}}}"


def validate(
    problems: Sequence[Problem],
    fault: Fault | None,
    *,
    max_bad_rows: int | float = 0.1,
    bad_rows: Sequence[BadRow] = (),
    duplicates: Sequence[Duplicate] = (),
    rows: int | None = None,
) -> ValidationReport:
    """Check that every problem's reference answer has no fault. With `fault=None`, nothing is checked.

    `bad_rows` and `duplicates` are the rows that reading has already left out. `rows` is the number of rows read, by
    default these and `problems`. A duplicate whose answer does not verify against the first answer counts as a bad row:
    one of the two is wrong, and the first is kept. `max_bad_rows` limits the bad rows of both kinds. An integer limits
    their number. A float limits a sum of two shares: rows that were bad in reading, and `problems` that do not verify.

    Raises:
        InputError: more bad rows than the limit, or no usable problem at all.
    """
    conflicts = [one for one in duplicates if fault is not None and one.contradicts(fault)]
    bad_rows = [*bad_rows, *(conflict.told() for conflict in conflicts)]
    duplicates = [duplicate for duplicate in duplicates if duplicate not in conflicts]
    faults = [None if fault is None else fault(problem, problem.answer) for problem in problems]
    checked = list(zip(problems, faults, strict=True))
    unverified = [BadRow(location(p), f"answer {p.answer!r} {why}") for p, why in checked if why is not None]
    report = ValidationReport(
        problems=[problem for problem, why in checked if why is None],
        bad_rows=[*bad_rows, *unverified],
        duplicates=list(duplicates),
        rows=len(problems) + len(bad_rows) + len(duplicates) if rows is None else rows,
    )
    if report.rows == 0:
        raise InputError("the problems are empty: problems.source has no rows")
    share = len(bad_rows) / report.rows + len(unverified) / max(1, len(problems))
    too_many = (share if isinstance(max_bad_rows, float) else len(report.bad_rows)) > max_bad_rows
    if too_many:
        raise InputError(
            f"{len(report.bad_rows)} bad rows of {report.rows}, but problems.max_bad_rows allows {max_bad_rows}:\n"
            f"{_listing(report.bad_rows)}\nCorrect them, choose other fields, or raise problems.max_bad_rows."
        )
    if not report.problems:
        raise InputError(
            f"no problem is left of {report.rows} rows; check problems.skip and these bad rows:\n"
            f"{_listing(report.bad_rows)}"
        )
    if report.bad_rows:
        logger.warning("%s; bad rows are skipped:\n%s", report.summary(), _listing(report.bad_rows))
    return report


def _listing(bad_rows: Sequence[BadRow]) -> str:
    lines = [f"  {row}" for row in bad_rows[:LISTED_ROWS]]
    if len(bad_rows) > LISTED_ROWS:
        lines.append(f"  … and {len(bad_rows) - LISTED_ROWS} more")
    return "\n".join(lines)
