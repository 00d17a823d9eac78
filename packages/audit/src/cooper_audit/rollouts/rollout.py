"""A completion as it was read from what a trainer wrote, whatever the format, and as an audit keeps it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from pathlib import Path
from typing import Any

from cooper_base.data.answer import Answer
from cooper_base.data.readers import read_file


@dataclass(frozen=True)
class Rollout:
    """A completion with what its trainer wrote about it."""

    step: int | None
    """None where nothing says it."""
    group: str
    prompt: str
    question: str
    answer: Answer
    cut: bool | None
    """Whether the completion was cut off; None where nothing says it."""
    references: tuple[str, ...]
    reward: float
    advantage: float | None
    location: str
    data_set: str = ""
    """The data set of the problem, where a field says it."""


def digest_of(rows: Sequence[Rollout]) -> str:
    """Equal for rows in which an audit sees no difference, whatever their step and place."""
    digest = blake2s(digest_size=12)
    for row in rows:
        values = (row.group, row.prompt, row.data_set, row.answer.transcript, row.cut, row.reward, row.advantage)
        digest.update("\0".join(map(str, (*values, row.references))).encode("utf-8", "replace"))
    return digest.hexdigest()


def short_hash(*texts: str, size: int = 8) -> str:
    """A hash of texts, of `size` bytes in hexadecimal digits."""
    return blake2s("\0".join(texts).encode("utf-8", "replace"), digest_size=size).hexdigest()


def step_file(out: Path, step: int) -> Path:
    """Where an audit keeps the checked rows of a step."""
    return out / "rollouts" / f"{step:06d}.jsonl"


def recorded(out: Path, steps: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The checked rows of some steps as they are in the folder."""
    for step in steps:
        path = step_file(out, step)
        for row in read_file(path) if path.exists() else ():
            group = row.fields
            problem = {name: group[name] for name in ("problem", "question", "answer", "prompt")}
            yield from ({"step": step, **problem, **completion} for completion in group["completions"])
