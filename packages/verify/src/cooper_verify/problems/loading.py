"""Loads the problems that a configuration names, and checks that every reference answer verifies against itself."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from textwrap import indent
from typing import TYPE_CHECKING

from cooper_base.config.user_functions import load_added
from cooper_base.data.mappings import READY_MADE, BadValue, Mapping, map_row
from cooper_base.data.problem import Problem, location
from cooper_base.data.readers import LISTED_ROWS, listing_of, read_file, read_hub
from cooper_base.errors import InputError
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.reasoning_gym import reasoning_gym_problems

if TYPE_CHECKING:
    from cooper_verify.rules.rule import Rule

logger = logging.getLogger(__name__)

MADE_COUNT = 512  # problems of a made world, if no limit is set
MISSING_VALUES = frozenset({"n/a", "#n/a", "<na>", "nan", "nat", "none", "null"})
"""What pandas, spreadsheets and languages write for a missing value."""


@dataclass
class LoadedProblems:
    """The usable problems, and the bad rows and duplicates among the `rows` rows read. `skip` and `limit` are not."""

    problems: list[Problem] = field(default_factory=list)
    bad_rows: list[str] = field(default_factory=list)
    """The location of each row that cannot be used, and why."""
    duplicates: list[tuple[Problem, Problem]] = field(default_factory=list)
    """Each problem that repeats a question, and the first with that question."""
    rows: int = 0
    without_reply: list[str] = field(default_factory=list)
    """The location of each row whose chat ended with the assistant's answer, which is no part of the prompt."""
    unread: list[str] = field(default_factory=list)
    """Where each problem is whose reference the rule cannot read, its id and that reference."""

    def summary(self) -> str:
        return (
            f"{len(self.problems)} problems from {self.rows} rows "
            f"({len(self.bad_rows)} bad, {len(self.duplicates)} duplicates)"
        )


def load_problems(
    config: ProblemsConfig, rule: "Rule | None", section: str = "problems", held_out: bool = False
) -> LoadedProblems:
    """Read and map the rows, drop duplicates, shuffle, apply `skip` and `limit`, and verify the reference answers.

    `rule` is None if the reward does not depend on the reference answers: they are not checked, and a missing one is
    an empty text. A duplicate whose answer does not verify against the first answer is a bad row. A fraction in
    `max_bad_rows` limits the sum of two shares: rows that were bad in reading, and problems that do not verify. With
    `unverified: silent` the latter are no bad rows: they name the rule `silent`, as do problems whose reference the
    rule cannot read. Otherwise a warning lists those. Messages name the `section` of the configuration. `held_out`
    problems may lack the field with the solution.

    Raises InputError for an invalid source or row, too many bad rows and no usable problem; see also `read_file`.
    """
    loaded = read_problems(config, rule is not None, section, held_out)
    without = sum(not problem.answer for problem in loaded.problems)
    if without:
        logger.info("%d of %d problems have no reference answer", without, len(loaded.problems))
    given, unverified = len(loaded.problems), []
    if rule is not None:
        unverified = _verify_answers(loaded, rule, config.unverified == "silent", section)
    if loaded.rows == 0:
        raise InputError(f"the problems are empty: {section}.source has no rows")
    share = len(loaded.bad_rows) / loaded.rows + len(unverified) / max(1, given)
    loaded.bad_rows += unverified
    if (share if isinstance(config.max_bad_rows, float) else len(loaded.bad_rows)) > config.max_bad_rows:
        raise InputError(
            f"{len(loaded.bad_rows)} bad rows of {loaded.rows}, but {section}.max_bad_rows allows "
            f"{config.max_bad_rows}:\n{_listing(loaded.bad_rows)}\n"
            f"Correct them, choose other fields, raise {section}.max_bad_rows, or, where a reward model can read "
            f"answers that the rule cannot, set {section}.unverified: silent."
        )
    if not loaded.problems:
        bad = f" and these bad rows:\n{_listing(loaded.bad_rows)}" if loaded.bad_rows else ""
        raise InputError(f"no problem is left of {loaded.rows} rows; check {section}.skip{bad}")
    if loaded.bad_rows:
        logger.warning("%s; bad rows are skipped:\n%s", loaded.summary(), _listing(loaded.bad_rows))
    elif loaded.duplicates:
        logger.info("%s: %s", section, loaded.summary())
    return loaded


def _verify_answers(loaded: LoadedProblems, rule: "Rule", silent: bool, section: str) -> list[str]:
    """Leave out the problems whose answers do not verify, or, with `silent`, have the rule be silent on them.

    `silent` also silences the rule where it verifies a reference that it cannot read; otherwise a warning lists these.
    Duplicates that disagree with the first such row become bad rows. Returns the problems left out, for messages.
    """
    agreeing = []
    faults = iter(rule.faults([(first, row.answer) for row, first in loaded.duplicates if row.answer != first.answer]))
    for row, first in loaded.duplicates:
        if row.answer == first.answer or next(faults) is None:
            agreeing.append((row, first))
        else:
            both = f"the answer is {row.answer!r} here and {first.answer!r} there"
            loaded.bad_rows.append(f"{location(row)}: same question as {location(first)}, but {both}")
    loaded.duplicates = agreeing
    faults = rule.faults([(problem, problem.answer) for problem in loaded.problems])
    checked = list(zip(loaded.problems, faults, strict=True))
    verified = [problem for problem, why in checked if why is None]
    unread = rule.unread(verified)
    if not silent:
        loaded.problems = verified
        loaded.unread = [f"{location(problem)}: problem {problem.id}, answer {problem.answer!r}" for problem in unread]
        if unread:
            logger.warning("%s", _about_unread(loaded.unread, len(verified), section))
        ambiguous = [f"{location(problem)}: answer {problem.answer!r}" for problem in rule.ambiguous(verified)]
        if ambiguous:
            logger.warning("%s", _about_ambiguous(ambiguous, len(verified), section))
        _warn_of_missing(verified, section)
        return [_about_fault(problem, why, section) for problem, why in checked if why is not None]
    heard = {problem.id for problem in verified} - {problem.id for problem in unread}
    loaded.problems = [problem if problem.id in heard else replace(problem, rule="silent") for problem, _ in checked]
    if count := len(checked) - len(heard):
        logger.info("the rule is silent on %d of %d problems: it cannot read their answers", count, len(checked))
    return []


def _about_fault(problem: Problem, why: str, section: str) -> str:
    """Why a problem's reference is not usable."""
    remedy = f"; {section}.format: gsm8k reads what is behind ####" if "####" in problem.answer else ""
    return f"{location(problem)}: answer {problem.answer!r} {why}{remedy}"


def _warn_of_missing(problems: Sequence[Problem], section: str) -> None:
    missing = [problem for problem in problems if problem.answer.casefold() in MISSING_VALUES]
    if missing:
        listed = _listing([f"{location(problem)}: answer {problem.answer!r}" for problem in missing])
        logger.warning(
            "%s: the reference answers of %d of %d problems are what tables write for a missing value, and an answer "
            "that says the same is `correct`:\n%s\nLeave these rows out if nobody knows the answer.",
            *(section, len(missing), len(problems), listed),
        )


def _about_unread(unread: Sequence[str], count: int, section: str) -> str:
    return (
        f"{section}: the rule cannot read the reference answers of {len(unread)} of {count} problems. There an answer "
        f"is `correct` only if it is the same text, and `unparsed` otherwise:\n{_listing(unread)}\nRemove these rows, "
        f"compare them as text (rule: exact, or {section}.rule_field), or let the reward model alone judge them "
        f"({section}.unverified: silent)."
    )


def _about_ambiguous(ambiguous: Sequence[str], count: int, section: str) -> str:
    return (
        f"{section}: the rule reads the reference answers of {len(ambiguous)} of {count} problems in two ways, such as "
        "(1,3), a pair or an interval. An answer that means either is `correct`:\n"
        f"{_listing(ambiguous)}\nWrite 1 < x < 3 or (x, y) = (1, 3) where it matters."
    )


def read_problems(
    config: ProblemsConfig, answers_required: bool = True, section: str = "problems", held_out: bool = False
) -> LoadedProblems:
    """Do everything that `load_problems` does, except for verifying the answers."""
    loaded = LoadedProblems()
    wanted = None if config.limit is None else config.skip + config.limit
    questions: dict[str, Problem] = {}  # by question or, of a chat, by all its turns
    ids: set[str] = set()
    for problem in _problems_of(config, loaded, answers_required, section, held_out):
        # Before shuffling and cutting, so that no question ends up in both a training part and a held-out part.
        question_text = json.dumps(problem.messages) if problem.messages else problem.question
        if question_text in questions:
            loaded.duplicates.append((problem, questions[question_text]))
            continue
        if problem.id in ids:
            raise InputError(f"{location(problem)}: id {problem.id!r} is used twice; choose another {section}.id field")
        questions[question_text] = problem
        ids.add(problem.id)
        loaded.problems.append(problem)
        if config.shuffle_seed is None and len(loaded.problems) == wanted:
            break
    loaded.rows = len(loaded.problems) + len(loaded.bad_rows) + len(loaded.duplicates)
    _say_how_chats_end(loaded, section)
    if config.shuffle_seed is not None:
        Random(config.shuffle_seed).shuffle(loaded.problems)
    loaded.problems = loaded.problems[config.skip : wanted]
    return loaded


def _problems_of(
    config: ProblemsConfig, loaded: LoadedProblems, answers_required: bool, section: str, held_out: bool
) -> Iterator[Problem]:
    bad_rows = loaded.bad_rows
    split = config.split or "train"
    if config.kind == "made":
        count = config.skip + (config.limit or MADE_COUNT)
        if config.tasks is not None:
            try:
                made = reasoning_gym_problems(config.tasks, split, count, config.seed)
            except InputError as error:
                raise InputError(f"{section}.{error}") from error
        else:
            made = load_added("problems", config.source)(split, count, config.seed)  # reports unknown splits
        yield from (replace(problem, rule=config.rule) for problem in made)
        return

    def bad(error: InputError) -> None:
        bad_rows.append(str(error))
        if len(bad_rows) == LISTED_ROWS and not accepted:  # such as a field that no row has: no use reading on
            raise InputError(f"none of the first {LISTED_ROWS} rows can be used:\n{_listing(bad_rows)}") from error

    accepted = 0
    if config.kind == "file":
        name, rows = Path(config.source).stem, read_file(Path(config.source).expanduser(), bad)
    else:
        name, rows = config.source, read_hub(config.source, config.subset, config.split, section)
    named = config.question or ("" if config.messages else "question")
    question = tuple(part.strip() for part in named.split("+")) if named else ()
    named_fields = Mapping(question, config.answer or "answer", config.solution, config.id)
    mapping = named_fields if config.format is None else READY_MADE[config.format]
    mapping = replace(mapping, answer_required=answers_required, rule=config.rule, rule_field=config.rule_field)
    mapping = replace(mapping, messages=config.messages or mapping.messages, pass_rate=config.pass_rate)
    mapping = replace(mapping, section=section, solution_required=not held_out)
    for number, row in enumerate(rows, start=1):
        if number == 1 and not (mapping.id or row.name) and "id" in row.fields:
            logger.info("%s: the field `id` names no problem; %s.id: id makes it their name", row.location, section)
        try:
            problem = map_row(row, mapping, f"{name}-{number}", loaded.without_reply)
        except BadValue as error:
            bad_rows.append(f"{row.location}: {error}")
        except InputError as error:
            bad(error)
        else:
            accepted += 1
            yield problem


def _say_how_chats_end(loaded: LoadedProblems, section: str) -> None:
    """Log how many chats ended with a turn of the assistant, and what became of it."""
    if removed := loaded.without_reply:
        logger.warning(
            "%s: %d of %d chats (the first: %s) end with the assistant's answer. It was removed: the policy answers "
            "the turn before it",
            *(section, len(removed), loaded.rows, removed[0]),
        )
    begun = [problem for problem in loaded.problems if problem.messages and problem.messages[-1]["role"] == "assistant"]
    if begun:
        logger.info(
            "%s: %d of %d chats (the first: %s) end with a turn of the assistant, which is taken for the beginning of "
            "the reply: the policy goes on from there",
            *(section, len(begun), loaded.rows, location(begun[0])),
        )


def _listing(bad_rows: Sequence[str]) -> str:
    return indent(listing_of(bad_rows), "  ")
