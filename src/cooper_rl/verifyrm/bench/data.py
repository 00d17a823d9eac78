"""What `cooper verifyrm bench` measures on: VerifyBench's format, or labelled completions of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_rl.data.labelled import FIELDS, LabelledCompletion, labelled_row
from cooper_rl.data.readers import Row, read_file
from cooper_rl.errors import InputError

VERIFYBENCH = {"reference_answer": "answer", "label": "gold_correct"}
"""Fields of VerifyBench and VerifyBench-Hard that are named otherwise than ours."""
CATEGORY_FIELDS = ("answer_type", "category", "dataset", "source")
MODEL_FIELDS = ("completion_model", "model")
UNKNOWN = "-"


@dataclass(frozen=True)
class BenchRow:
    """A labelled completion with the two things results are broken down by."""

    labelled: LabelledCompletion
    category: str
    model: str


def read_bench(path: str | Path) -> list[BenchRow]:
    """Read a JSONL, JSON, CSV or Parquet file with question, reference, completion and label.

    The reference is `reference_answer` or VerifyBench's `answer`, the label `label` or `gold_correct`. The category is
    the first of `answer_type`, `category`, `dataset`, `source` that is there; the model
    `completion_model` or `model`. Raises InputError naming file, row and field.
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
