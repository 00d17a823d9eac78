"""The text of a completion, in whatever form a trainer hands it on."""

from collections.abc import Mapping, Sequence
from typing import Any


def completion_text(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """The completion itself, or the content of the last message of a conversation."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else None
    if isinstance(content, list):  # content blocks: those that are text
        return "".join(part.get("text", "") for part in content)
    return content or ""
