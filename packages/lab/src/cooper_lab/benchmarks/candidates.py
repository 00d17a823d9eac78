"""A benchmark's problem: its completions, the right ones first."""

from dataclasses import dataclass, field
from typing import Any

from cooper_audit.statistics import Estimate
from cooper_base.data.labelled import text_field
from cooper_base.data.readers import DataRow
from cooper_rl import InputError


@dataclass(frozen=True)
class Candidates:
    """A problem with its completions; the first `right` of them are right.

    `scores` are those that the file itself holds, if any. `reference` is empty where the benchmark has none.
    """

    id: str
    question: str
    reference: str
    completions: list[str]
    right: int
    subset: str
    location: str
    scores: list[float] | None = None


@dataclass(frozen=True)
class Measured:
    """The results of a benchmark: `summary` holds its own scores, `parts` the means over problems with intervals."""

    problems: int
    summary: dict[str, float]
    parts: dict[str, Estimate] = field(default_factory=dict)


def needed_text(row: DataRow, name: str) -> str:
    """A text field that must be there and not be empty. Raises InputError naming file, row and field."""
    if name not in row.fields:
        raise InputError(
            f"{row.location}: field {name!r} is missing (this row has {', '.join(map(str, row.fields))}); is this the "
            "file of another benchmark?"
        )
    text = text_field(row, name)
    if not text.strip():
        raise InputError(f"{row.location}: field {name!r} is empty; fill it in or leave the row out")
    return text


def reference_of(row: DataRow) -> str:
    """The row's `reference_answer` or `answer`, or an empty text."""
    name = next((name for name in ("reference_answer", "answer") if row.fields.get(name) is not None), None)
    return "" if name is None else text_field(row, name)


def texts_in(row: DataRow, name: str) -> list[str]:
    """A field that is a list of texts with at least one entry. Raises InputError naming file, row and field."""
    values = row.fields.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise InputError(f"{row.location}: field {name!r} is {_shown(values)}; write a list of texts, at least one")
    return values


def numbers_in(row: DataRow, name: str, count: int) -> list[float]:
    """A field that is a list of `count` finite numbers. Raises InputError naming file, row and field."""
    values = row.fields[name]
    is_list = isinstance(values, list) and all(type(value) in (int, float) for value in values)
    if not is_list or len(values) != count or not all(abs(value) < float("inf") for value in values):
        raise InputError(f"{row.location}: field {name!r} is {_shown(values)}; write a list of {count} finite numbers")
    return [float(value) for value in values]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
