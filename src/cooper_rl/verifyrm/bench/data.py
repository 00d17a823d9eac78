"""Reads the rows of `cooper verifyrm bench`: VerifyBench's format, or our own labelled completions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_rl.data.labelled import FIELDS, LabelledCompletion, labelled_row
from cooper_rl.data.readers import Row, read_file
from cooper_rl.errors import InputError

VERIFYBENCH = {"reference_answer": "answer", "label": "gold_correct"}
"""Fields that have another name in VerifyBench and VerifyBench-Hard than here."""
CATEGORY_FIELDS = ("answer_type", "category", "dataset", "source")
MODEL_FIELDS = ("completion_model", "model")
UNKNOWN = "-"


@dataclass(frozen=True)
class BenchRow:
    """A labelled completion with its category and its model, by which results are broken down."""

    labelled: LabelledCompletion
    category: str
    model: str


def read_bench(path: str | Path) -> list[BenchRow]:
    """Read a JSONL, JSON, CSV or Parquet file with question, reference, completion and label.

    The reference answer is `reference_answer` or VerifyBench's `answer`. The label is `label` or `gold_correct`. The
    category is the first of `answer_type`, `category`, `dataset` and `source` that a row has. The model is
    `completion_model` or `model`. Raises InputError, which names the file, row and field.
    """
    rows = [_bench_row(row) for row in read_file(Path(path))]
    if not rows:
        raise InputError(f"{path}: holds no rows; each row needs {', '.join(FIELDS)}")
    return rows


def _bench_row(row: Row) -> BenchRow:
    renamed = {ours: row.fields[theirs] for ours, theirs in VERIFYBENCH.items() if theirs in row.fields}
    labelled = labelled_row(Row(row.location, renamed | row.fields))
    category = _first(row.fields, CATEGORY_FIELDS)
    return BenchRow(labelled, category, _first(row.fields, MODEL_FIELDS))


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(fields[name]) for name in names if fields.get(name)), UNKNOWN)
