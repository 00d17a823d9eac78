"""Labelled completions: the training data of VerifyRM, also replayed in stage 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cooper_rl.data.mappings import text_of
from cooper_rl.data.readers import Row, read_file
from cooper_rl.errors import InputError

FIELDS = ("question", "reference_answer", "completion", "label")
_LABELS = {"1": 1.0, "1.0": 1.0, "true": 1.0, "0": 0.0, "0.0": 0.0, "false": 0.0}


class Asked(Protocol):
    """Anything with a question, a reference answer and a completion."""

    @property
    def question(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def completion(self) -> str: ...


@dataclass(frozen=True)
class LabelledCompletion:
    """A completion and its label, 1.0 (right) or 0.0 (wrong). `location` is its file and line."""

    question: str
    answer: str
    completion: str
    label: float
    location: str = ""


def read_labelled(path: str | Path) -> list[LabelledCompletion]:
    """Read a JSONL, JSON, CSV or Parquet file of `question, reference_answer, completion, label`.

    Other fields are ignored. A label is 0, 1, true or false. A completion may be empty; a question or a reference may
    not. Raises InputError for a bad row, naming file, row and field, and for a file without rows. Raises
    MissingExtraError for a Parquet file if pyarrow is not installed.
    """
    rows = [labelled_row(row) for row in read_file(Path(path))]
    if not rows:
        raise InputError(f"{path}: holds no rows; each row needs {', '.join(FIELDS)}")
    return rows


def labelled_row(row: Row) -> LabelledCompletion:
    """One row as a labelled completion, with the checks and errors of `read_labelled`."""
    question, answer, completion = texts_of(row, FIELDS)
    return LabelledCompletion(question, answer, completion, label_of(row, "label"), row.location)


def label_of(row: Row, name: str) -> float:
    """A field as a label, 1.0 or 0.0. Raises InputError, naming file and row, unless it is 0, 1, true or false."""
    value = row.fields[name]
    is_number = isinstance(value, int | float) and value in (0, 1)
    label = float(value) if is_number else _LABELS.get(str(value).strip().lower())
    if label is None:
        raise InputError(f"{row.location}: field {name!r} is {value!r}; write 1 (right) or 0 (wrong)")
    return label


def texts_of(row: Row, needed: Sequence[str] = FIELDS[:3]) -> tuple[str, str, str]:
    """Question, reference answer and completion of a row that has all the `needed` fields.

    Raises InputError naming file, row and field.
    """
    missing = [name for name in needed if name not in row.fields]
    if missing:
        raise InputError(
            f"{row.location}: field {missing[0]!r} is missing; each row needs {', '.join(needed)} "
            f"(this one has {', '.join(map(str, row.fields))})"
        )
    texts: dict[str, str] = {}
    for name in FIELDS[:3]:
        texts[name] = text_field(row, name)
        if not texts[name] and name != "completion":
            raise InputError(f"{row.location}: field {name!r} is empty; fill it in or leave the row out")
    return texts["question"], texts["reference_answer"], texts["completion"]


def text_field(row: Row, name: str) -> str:
    """A field as text. Raises InputError, naming file, row and field, for a list, an object or a truth value."""
    try:
        return text_of(row.fields[name])
    except TypeError as error:
        raise InputError(f"{row.location}: field {name!r}: {error}; write it as text") from error
