"""Labels that somebody has written, in place of a rule's verdicts, and the completions that an audit asks them for."""

import json
from collections.abc import Mapping
from pathlib import Path

from cooper_audit.rollouts.rollout import recorded, short_hash
from cooper_base.data.readers import read_file
from cooper_base.errors import InputError
from cooper_base.files.durable import by_step
from cooper_base.files.owned_folder import OwnedFolder

TO_LABEL = 40
"""Completions to label by hand, half of them of the first steps and half of the last."""
Labels = Mapping[str, bool]


def label_key(question: str, text: str) -> str:
    """What a label is found by."""
    return short_hash(question, text, size=16)


def read_labels(path: Path) -> Labels:
    """The labels of `to_label.jsonl`, once somebody has written 1 (right) or 0 (wrong) for each null. A row that is
    still null is left out. Raises InputError for anything else, and for a file without labels.
    """
    labels: dict[str, bool] = {}
    for row in read_file(path):
        try:
            label, key = row.fields["label"], label_key(row.fields["question"], row.fields["completion"])
        except (LookupError, TypeError) as error:
            raise InputError(f"{row.location}: no label ({error}); keep the lines of to_label.jsonl") from error
        if label is not None:
            if label not in (0, 1):
                raise InputError(f"{row.location}: 'label' is {label!r}; write 1 (right), 0 (wrong) or null")
            labels[key] = bool(label)
    if not labels:
        raise InputError(f"{path}: every label is null; write 1 (right) or 0 (wrong) for completions that you read")
    return labels


def write_to_label(folder: OwnedFolder) -> Path:
    """Paid completions of the first and of the last steps, half of each, for somebody to label. Labels that somebody
    has written are kept: another sample goes into another file.
    """
    out = folder.path
    steps = list(by_step(out / "rollouts", ".jsonl"))
    width = max(1, min(5, len(steps) // 2))
    rows = []
    for part in (steps[:width], steps[-width:]):
        candidates = {label_key(row["prompt"], row["text"]): row for row in recorded(out, part)}  # one label a text
        rows += [candidates[key] for key in sorted(candidates)[: TO_LABEL // 2]]
    rows.sort(key=lambda row: label_key(row["text"], row["prompt"]))  # so that the order tells nothing
    named = [
        {"label": None, "question": row["prompt"], "completion": row.get("transcript", row["text"])} for row in rows
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named)
    for name in ("to_label.jsonl", f"to_label-{short_hash(text)}.jsonl"):
        path = out / name
        if not path.exists() or folder.owns(path):
            folder.write(path, text)
            return path
        if [row.fields.get("completion") for row in read_file(path)] == [row["completion"] for row in named]:
            return path
    raise InputError(f"{path}: holds labels of other completions; move it to another place")
