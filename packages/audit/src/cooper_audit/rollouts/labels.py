"""Labels that somebody has written, in place of a rule's verdicts."""

from collections.abc import Mapping
from pathlib import Path

from cooper_audit.rollouts.rollout import short_hash
from cooper_base.data.readers import read_file
from cooper_base.errors import InputError

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
