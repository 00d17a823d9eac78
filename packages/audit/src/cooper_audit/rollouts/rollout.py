"""A completion as it was read from what a trainer wrote, whatever the format."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2s

from cooper_base.data.answer import Answer


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
