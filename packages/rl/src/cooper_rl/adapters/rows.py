"""Rows of trainers become problems and groups of answers, and rewards go back in the rows' order."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2s
from math import isnan
from pathlib import Path
from typing import Any, TypeVar, get_args

from cooper_base.config.base import Config
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.mappings import MISSING, field_of, text_of
from cooper_base.data.problem import Problem
from cooper_base.data.strict_json import parse_json
from cooper_base.data.text import one_line
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError, did_you_mean

FOLDER = "cooper_reward"
"""Where the reward is saved inside a trainer's checkpoint."""
T = TypeVar("T")
_REMEDY = "name the columns that you have, as in Columns(question='problem', answer='final_answer')"


class Columns(Config):
    """Names of the columns of a data set, or of the keys of the rows that a trainer passes on.

    The prompt is not the question: it wraps it in a system message or a chat template, which no reward model should
    read. So the data set needs a column for each. A column that is named must exist. A field that is None is read from
    the column of the field's name, which may be missing. A value inside a column has a dotted name, such as
    `reward_model.ground_truth`.
    """

    question: str = "question"
    answer: str | None = "answer"
    """The reference answer. Without one (None), every answer needs a verdict from outside, unless nothing that pays or
    learns reads a reference."""
    solution: str | None = None
    """A reference solution that ends in the answer."""
    id: str | None = None
    """An id that is unique in the data set; by default a hash of question and answer."""
    rule: str | None = None
    """The rule for this row, as `problems.rule_field`."""
    metadata: str | None = None
    """Data for a rule or an assistant of your own: an object, or its JSON."""
    verdict: str | None = None
    """Where the environment left its verdict on an answer: `correct`, `wrong`, `unparsed` or `silent`; null leaves it
    to the rule. Read only if it is named. Not a column of the data set, but of what the trainer passes on."""

    def check(self, present: Collection[str], where: str = "the data set") -> None:
        """Raises InputError if a column is missing, naming those that exist."""
        for field, name in vars(self).items():
            if name is not None and field != "verdict" and not {name, name.split(".")[0]} & {*present}:
                there = ", ".join(map(repr, present)) or "none"
                remedy = did_you_mean(name, present, _REMEDY, cutoff=0.8)  # 'solution' is no typo of 'question'
                raise InputError(f"{where} has no column {name!r} (its columns: {there}); {remedy}")

    def check_rows(self, data: Any) -> None:
        """Read the problem of each row of a data set of `datasets`; not of one that streams. Raises InputError as
        `problem` does, with the number of the row.
        """
        if not (hasattr(data, "select_columns") and hasattr(data, "__len__")):
            return
        heads = {name.split(".")[0] for field, name in vars(self).items() if name is not None and field != "verdict"}
        heads |= {field for field in vars(self) if field != "verdict"}
        for number, row in enumerate(data.select_columns([name for name in data.column_names if name in heads])):
            self.problem(row, f"row {number} of the data set")

    def problem(self, row: Mapping[str, Any], where: str = "the row") -> Problem:
        """The problem of a row. Raises InputError if a column is missing, empty or not text."""
        self.check(row.keys(), where)
        question, answer = self._text(row, "question", where), self._text(row, "answer", where)
        for name, value in ((self.question, question), (self.answer, answer)):
            if not value and (name == self.question or not (name is None or self.verdict)):
                place = where if name == self.question else f"{where} ({one_line(question, 80)!r})"
                raise InputError(f"{place}: column {name!r} is empty; a reward model compares with it. Drop such rows")
        return Problem(
            id=self._text(row, "id", where) or blake2s(f"{question}\n{answer}".encode(), digest_size=8).hexdigest(),
            question=question,
            answer=answer,
            solution=self._text(row, "solution", where) or None,
            metadata=self._metadata(row, where),
            rule=self._text(row, "rule", where) or None,
        )

    def verdict_in(self, row: Mapping[str, Any], where: str = "the row") -> UserVerdict | None:
        """The verdict from outside on a row's answer. Raises InputError if its column is missing or holds none."""
        if self.verdict is None:
            return None
        if self.verdict not in row or row[self.verdict] not in (*get_args(UserVerdict), None):
            found = f"holds {row[self.verdict]!r}" if self.verdict in row else "is missing"
            raise InputError(f"{where}: {self.verdict!r} {found}; write correct, wrong, unparsed, silent or null there")
        return row[self.verdict]

    def _value(self, row: Mapping[str, Any], field: str, where: str) -> Any:
        if (name := getattr(self, field)) is not None:
            if (value := field_of(dict(row), name)) is MISSING:
                raise InputError(f"{where}: {name!r} is missing; {_REMEDY}")
            return value
        return None if field in (self.question, self.answer) else row.get(field)  # another field's column

    def _text(self, row: Mapping[str, Any], field: str, where: str) -> str:
        try:
            return text_of(self._value(row, field, where))
        except TypeError as error:
            raise InputError(f"{where}: column {getattr(self, field) or field!r}: {error}; {_REMEDY}") from error

    def _metadata(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        found, place = self._value(row, "metadata", where), f"{where}: column {self.metadata or 'metadata'!r}"
        try:
            found = parse_json(found) if isinstance(found, str) and found else found or {}
        except ValueError as error:
            raise InputError(f"{place} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise InputError(f"{place} holds no object; write {{}} for none")
        return found


AnsweredProblem = tuple[Problem, Answer]


def consecutive(rows: Sequence[AnsweredProblem], size: int, first: int = 0) -> list[AnswerGroup]:
    """Groups of `size` consecutive rows, numbered from `first`. Raises InputError if their problems differ."""
    groups = []
    for start in range(0, len(rows), size):
        problems, answers = zip(*rows[start : start + size], strict=True)
        if len(answers) < size or any(problem != problems[0] for problem in problems):
            raise InputError(
                f"rows {start} to {start + len(answers) - 1} are no group of {size} completions to one question; "
                "num_generations must divide the batch of all processes"
            )
        groups.append(AnswerGroup(f"{first + len(groups):06d}", problems[0], answers))
    return groups


def joined(rows: Sequence[AnswerGroup]) -> list[AnswerGroup]:
    """One group per id, in order of appearance. Raises InputError if an id has two problems."""
    groups: dict[str, AnswerGroup] = {}
    for row in rows:
        known = groups.setdefault(row.id, AnswerGroup(row.id, row.problem, []))
        if row.problem != known.problem:
            raise InputError(f"group {row.id}: its rows have several questions or reference answers")
        groups[row.id] = AnswerGroup(row.id, row.problem, [*known.answers, *row.answers])
    return [*groups.values()]


def by_row(rows: Sequence[AnswerGroup], results: Sequence[Sequence[T]]) -> list[T]:
    """The results of `joined(rows)` in the order of the rows, each a group with one answer."""
    left = {group.id: iter(found) for group, found in zip(joined(rows), results, strict=True)}
    return [next(left[row.id]) for row in rows]


def or_none(rewards: Iterable[float]) -> list[float | None]:
    """Rewards for a trainer that leaves out an answer whose reward is None: those without an opinion (NaN)."""
    return [None if isnan(reward) else reward for reward in rewards]


def folder_in(args: Any, state: Any) -> Path:
    """The reward's folder in the checkpoint of a trainer that is built on that of transformers."""
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}" / FOLDER


def gathered(rows: list[T], processes: int) -> list[T]:
    """The rows of all processes, in the order of their ranks. Every process must call it."""
    if processes == 1:
        return rows
    from accelerate.utils import gather_object  # noqa: PLC0415 - slow to import, and not for one process

    return gather_object(rows)


def on_first(work: Callable[[], T], rank: int, processes: int) -> T:
    """What `work` returns or raises in the first process, in all of them. Every process must call it."""
    if processes == 1:
        return work()
    from accelerate.utils import broadcast_object_list  # noqa: PLC0415

    shared: list[Any] = [None, "the first process has ended"]
    try:
        if rank == 0:
            try:
                shared = [work(), None]
            except Exception as error:
                shared = [None, f"{type(error).__name__}: {error}"]
                raise
    finally:
        broadcast_object_list(shared)
    if shared[1] is not None:
        raise InputError(f"the process that owns the reward has failed: {shared[1]}")
    return shared[0]
