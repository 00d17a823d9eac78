"""VerifyRM's labelled data, replayed in stage 2."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_rl.errors import InputError
from cooper_rl.rewards.text import normalise

TEXT_FIELDS = ("question", "reference_answer", "completion")


@dataclass(frozen=True)
class LabelledCompletion:
    """A completion of a problem, normalised, and whether it is right (1.0) or wrong (0.0)."""

    question: str
    answer: str
    completion: str
    label: float


def read_labelled(path: str | Path) -> list[LabelledCompletion]:
    """Read JSONL rows of `question, reference_answer, completion, label`.

    Raises InputError naming file, line and field for a row that does not fit, and for a file without rows.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; correct replay.labelled, or leave it out")
    with path.open(encoding="utf-8") as lines:
        rows = [_read_row(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise InputError(f"{path}: holds no rows; correct replay.labelled, or leave it out")
    return rows


def _read_row(line: str, place: str) -> LabelledCompletion:
    try:
        row: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: not valid JSON: {error}; each line is one JSON object") from error
    if not isinstance(row, dict):
        raise InputError(f"{place}: expected an object with {', '.join((*TEXT_FIELDS, 'label'))}")
    for name in TEXT_FIELDS:
        if not isinstance(row.get(name), str):
            raise InputError(f"{place}: field {name!r} must be text, found {row.get(name)!r}")
    label = row.get("label")
    if not isinstance(label, (bool, int, float)) or not 0 <= label <= 1:
        raise InputError(f"{place}: field 'label' must be true, false or a number from 0 to 1, found {label!r}")
    return LabelledCompletion(row["question"], row["reference_answer"], normalise(row["completion"]), float(label))
