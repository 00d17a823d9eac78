"""A data set proves itself before training: every reference answer must verify against itself."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

Verify = Callable[[str, str], str]
"""`(reference answer, completion) -> verdict`; the verdict of a right completion is `ACCEPTED`."""

Objection = Callable[[str], str | None]
"""`(reference answer) -> why it is refused before any verdict`; None where it is not."""

ACCEPTED = "correct"
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
    """A row whose question was asked before, with the answer given there and the one given here."""

    answers: tuple[str, str]

    def contradicts(self, verify: Verify) -> bool:
        """Whether the answer here does not verify against the one given there."""
        there, here = self.answers
        return there != here and verify(there, boxed(here)) != ACCEPTED

    def told(self) -> BadRow:
        """The contradiction, with both places and both answers."""
        there, here = self.answers
        return BadRow(self.location, f"{self.reason}, but the answer is {here!r} here and {there!r} there")


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
    verify: Verify,
    *,
    objection: Objection | None = None,
    max_bad_rows: int | float = 0.1,
    bad_rows: Sequence[BadRow] = (),
    duplicates: Sequence[Duplicate] = (),
    rows: int | None = None,
) -> ValidationReport:
    r"""Check that `\boxed{answer}` verifies against `answer`, and meets no objection, for every problem.

    `bad_rows` and `duplicates` are what reading already left out of `rows` rows (default: of these and `problems`).
    A duplicate whose answer does not verify against the one given first is a bad row: one of the two is mistaken, and
    the first is kept.
    `max_bad_rows` limits the bad ones of both kinds: an integer their number, a float the share of rows bad in
    reading plus the share of `problems` that do not verify.

    Raises:
        InputError: more bad rows than the limit, or no usable problem at all.
    """
    conflicts = [duplicate for duplicate in duplicates if duplicate.contradicts(verify)]
    bad_rows = [*bad_rows, *(conflict.told() for conflict in conflicts)]
    duplicates = [duplicate for duplicate in duplicates if duplicate not in conflicts]
    # Word problems share few distinct answers, and each check costs a symbolic comparison.
    faults = {answer: _fault(answer, verify, objection) for answer in dict.fromkeys(p.answer for p in problems)}
    unverified = [
        BadRow(location(p), f"answer {p.answer!r} {fault}") for p in problems if (fault := faults[p.answer]) is not None
    ]
    report = ValidationReport(
        problems=[p for p in problems if faults[p.answer] is None],
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


def _fault(answer: str, verify: Verify, objection: Objection | None) -> str | None:
    """What is wrong with a reference answer; None where nothing is."""
    if objection is not None and (reason := objection(answer)) is not None:
        return reason
    verdict = verify(answer, boxed(answer))
    return None if verdict == ACCEPTED else f"does not verify against itself (verdict: {verdict})"


def _listing(bad_rows: Sequence[BadRow]) -> str:
    lines = [f"  {row}" for row in bad_rows[:LISTED_ROWS]]
    if len(bad_rows) > LISTED_ROWS:
        lines.append(f"  … and {len(bad_rows) - LISTED_ROWS} more")
    return "\n".join(lines)
