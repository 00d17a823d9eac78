"""Labelled completions: the training data of VerifyRM, also replayed in cooptimization, and splits by problem."""

import logging
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from cooper_base.data.answer import Answer
from cooper_base.data.mappings import text_of
from cooper_base.data.readers import DataRow, listing_of, read_file
from cooper_base.errors import InputError

logger = logging.getLogger(__name__)

LABELLED_FIELDS = ("question", "reference_answer", "completion", "label")
REFERENCE = "reference_answer"
THEIR_NAMES = {"answer": REFERENCE, "gold_correct": "label"}
"""What rows for `cooper verify` and those of VerifyBench call these fields."""
T = TypeVar("T")
_LABELS = {"1": 1.0, "1.0": 1.0, "true": 1.0, "0": 0.0, "0.0": 0.0, "false": 0.0}

VERDICT_LABELS = {"correct": 1, "wrong": 0}
"""The label that a rule's verdict stands for. A row that the rule did not read or judge has no label."""


@dataclass(frozen=True)
class LabelledCompletion:
    """A completion and its label, 1.0 (right) or 0.0 (wrong). `location` is its file and line."""

    question: str
    answer: str
    completion: str
    label: float
    location: str = ""


def read_labelled(path: str | Path, needs_reference: bool = True) -> list[LabelledCompletion]:
    """Read a JSONL, JSON, CSV or Parquet file of `question, reference_answer, completion, label`; see `read_file`.

    A label is 0, 1, true or false. A completion is a text or the messages of a chat, and may be empty; a question or a
    reference may not, but without `needs_reference` a row may lack the reference, which is then an empty text. `answer`
    and `gold_correct` are read in rows without `reference_answer` and `label` (`THEIR_NAMES`). In rows with a verdict
    of `cooper verify` and without a label, `correct` and `wrong` are labels; rows with other verdicts are left out.
    Raises InputError for a bad row, naming file, row and field, and for a file without labelled rows.
    """
    return with_labels(path, read_rows(path, lambda row: row_or_verdict(row, needs_reference), LABELLED_FIELDS))


def with_labels(path: str | Path, rows: Sequence[T | str]) -> list[T]:
    """The rows that have a label. A warning counts the others, which have a verdict alone. Raises
    InputError if no row has one.
    """
    labelled = [row for row in rows if not isinstance(row, str)]
    if len(labelled) < len(rows):
        others = Counter(row for row in rows if isinstance(row, str))
        counted = ", ".join(f"{count} {verdict}" for verdict, count in others.most_common())
        if not labelled:
            raise InputError(f"{path}: no verdict is correct or wrong ({counted}), so no row has a label")
        logger.warning(
            "%s: %d rows without a verdict of correct or wrong are left out: %s",
            *(path, len(rows) - len(labelled), counted),
        )
    return labelled


def row_or_verdict(row: DataRow, needs_reference: bool = True) -> LabelledCompletion | str:
    """A labelled row, or the verdict of a row that has no other label and neither `correct` nor `wrong`."""
    row = row.renamed(THEIR_NAMES)
    if "verdict" not in row.fields or row.fields.get("label") is not None:
        return labelled_row(row, needs_reference)
    label = VERDICT_LABELS.get(str(row.fields["verdict"]))
    if label is None:
        return str(row.fields["verdict"])
    return labelled_row(replace(row, fields={**row.fields, "label": label}), needs_reference)


def read_rows(
    path: str | Path, read: Callable[[DataRow], T], needed: Sequence[str], bad: list[InputError] | None = None
) -> list[T]:
    """What `read` makes of every row of a file. Raises InputError for no rows, and for bad ones; with a list `bad`, to
    which these are added, only if no other is left.
    """
    rows: list[T] = []
    faults = [] if bad is None else bad
    for row in read_file(Path(path), faults.append):
        try:
            rows.append(read(row))
        except InputError as error:
            faults.append(error)
    if faults and (bad is None or not rows):
        raise InputError(listing_of([str(fault) for fault in faults])) from faults[0]
    if not rows:
        raise InputError(f"{path}: holds no rows; each row needs {', '.join(needed)}")
    return rows


def labelled_row(row: DataRow, needs_reference: bool = True) -> LabelledCompletion:
    """One row as a labelled completion, with the checks and errors of `read_labelled`."""
    return LabelledCompletion(*texts_of(row, LABELLED_FIELDS, needs_reference), label_of(row, "label"), row.location)


def label_of(row: DataRow, name: str) -> float:
    """A field as a label, 1.0 or 0.0. Raises InputError, naming file and row, unless it is 0, 1, true or false."""
    value = row.fields[name]
    is_number = isinstance(value, int | float) and value in (0, 1)
    label = float(value) if is_number else _LABELS.get(str(value).strip().lower())
    if label is None:
        raise InputError(f"{row.place(name)} is {value!r}; write 1 (right) or 0 (wrong)")
    return label


def texts_of(
    row: DataRow, needed: Sequence[str] = LABELLED_FIELDS[:3], needs_reference: bool = True
) -> tuple[str, str, str]:
    """Question, reference answer and completion of a row with all the `needed` fields. Raises InputError naming one."""
    if not needs_reference:
        row = replace(row, fields={REFERENCE: "", **row.fields})
    require(row, needed, ", ".join(needed))
    question, answer = (text_field(row, name) for name in LABELLED_FIELDS[:2])
    for name, text in (("question", question), (REFERENCE, answer)):
        if not text and (needs_reference or name != REFERENCE):
            raise InputError(f"{row.place(name)} is empty; fill it in or leave the row out")
    completion = completion_of(row)
    return question, answer, completion.text if completion.messages is None else completion.transcript


def completion_of(row: DataRow) -> Answer:
    """The field `completion`, a text or the messages of a chat. Raises InputError, naming file, row and field, for
    anything else.
    """
    completion = row.fields["completion"]
    if not isinstance(completion, list):
        return Answer(text_field(row, "completion"))
    try:
        return Answer.of(completion)
    except InputError as error:
        raise InputError(f"{row.place('completion')}: {error}") from error


def require(row: DataRow, names: Sequence[str], needed: str) -> None:
    """Raises InputError for the first of `names` that the row lacks. `needed` says what each row needs."""
    for name in names:
        if name not in row.fields:
            raise InputError(
                f"{row.location}: field {name!r} is missing; each row needs {needed} "
                f"(this one has {', '.join(map(str, row.fields))})"
            )


def text_field(row: DataRow, name: str) -> str:
    """A field as text. Raises InputError, naming file, row and field, for a list, an object or a truth value."""
    try:
        return text_of(row.fields[name])
    except TypeError as error:
        raise InputError(f"{row.place(name)}: {error}; write it as text") from error


def split_by_problem(
    rows: Sequence[LabelledCompletion], held_out: float, seed: int
) -> tuple[list[LabelledCompletion], list[LabelledCompletion]]:
    """Split rows into (training, held-out). All completions of a question are on one side (see `problem_key`).

    Problems are drawn until their rows are the share `held_out` of all rows. Raises InputError for less than two.
    """
    by_problem: dict[str, list[LabelledCompletion]] = defaultdict(list)
    for row in rows:
        by_problem[problem_key(row.question)].append(row)
    if len(by_problem) < 2:
        raise InputError("the labelled rows are all about one problem; holding out needs at least two")
    problems = list(by_problem)
    random.Random(seed).shuffle(problems)
    held: list[LabelledCompletion] = []
    while len(problems) > 1 and (not held or len(held) < held_out * len(rows)):
        held += by_problem[problems.pop()]
    kept = set(problems)
    return [row for name, group in by_problem.items() if name in kept for row in group], held


def problem_key(question: str) -> str:
    """A key that is equal for questions that differ only in spacing or case."""
    return " ".join(question.casefold().split())


def problem_folds(questions: Sequence[str], folds: int, seed: int) -> list[int]:
    """A fold in [0, folds) for each question. Equal questions share a fold, and folds are of nearly equal size."""
    keys = [problem_key(question) for question in questions]
    order = list(dict.fromkeys(keys))
    random.Random(seed).shuffle(order)
    fold_of = {key: index % folds for index, key in enumerate(order)}
    return [fold_of[key] for key in keys]
