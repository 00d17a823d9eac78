"""A data set proves itself before training: every reference answer must verify against itself."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

Fault = Callable[[Problem, str], str | None]
"""`(problem, answer) -> why the answer cannot be the problem's reference`; None where it can. See `Rule.fault`."""

LISTED_ROWS = 20


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: where it is and why."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


@dataclass(frozen=True)
class Duplicate(BadRow):
    """A row whose question was asked before, with the problem made there and the answer given here."""

    first: Problem
    answer: str

    def contradicts(self, fault: Fault) -> bool:
        """Whether the answer here does not verify against the one given there."""
        return self.answer != self.first.answer and fault(self.first, self.answer) is not None

    def told(self) -> BadRow:
        """The contradiction, with both places and both answers."""
        both = f"the answer is {self.answer!r} here and {self.first.answer!r} there"
        return BadRow(self.location, f"{self.reason}, but {both}")


@dataclass(frozen=True)
class ValidationReport:
    """The usable problems and everything left out of `rows` rows read (`skip` and `limit` leave out more)."""

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
    """Where the problem was read, or its id if it was not read from anywhere."""
    return str(problem.metadata.get("location", problem.id))


def boxed(answer: str) -> str:
    r"""The answer as a policy is asked to state it. A box is in mathematics already: `$\frac12$` loses its dollars."""
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
    """Check that every problem's reference answer has no fault; with `fault=None` none has.

    `bad_rows` and `duplicates` are what reading already left out of `rows` rows (default: of these and `problems`).
    A duplicate whose answer does not verify against the one given first is a bad row: one of the two is mistaken, and
    the first is kept.
    `max_bad_rows` limits the bad ones of both kinds: an integer their number, a float the share of rows bad in
    reading plus the share of `problems` that do not verify.

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
            f"{len(report.bad_rows)} bad rows of {report.rows}, and problems.max_bad_rows allows {max_bad_rows}:\n"
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
