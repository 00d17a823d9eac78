"""When to train on answers sent without a step."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class CommitPolicy:
    """After `rows` answers, or `idle_s` seconds after the last answer; exactly one of the two is set."""

    rows: int | None = None
    idle_s: float | None = None


def read_policy(text: str) -> CommitPolicy:
    """`count:1024` or `idle:5s`. Raises ValueError for anything else."""
    if (count := re.fullmatch(r"count:(\d{1,9})", text)) and int(count[1]):
        return CommitPolicy(rows=int(count[1]))
    if (idle := re.fullmatch(r"idle:(\d{1,6}(?:\.\d{1,6})?)s", text)) and float(idle[1]):
        return CommitPolicy(idle_s=float(idle[1]))
    raise ValueError(
        f"commit: {text!r} is not valid; write count:1024 (answers) or idle:5s (seconds after the last answer)"
    )
