"""The hash by which a content is known: SHA-256 in hexadecimal digits."""

import hashlib
from pathlib import Path


def content_hash(data: bytes) -> str:
    """The hash of a content."""
    return hashlib.sha256(data).hexdigest()


def file_hash(path: Path) -> str:
    """`content_hash` of a file, which may be large."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_key(text: str) -> str:
    """A short hash of a text for the key of a journal: 32 digits. Half a character counts as `?`."""
    return content_hash(text.encode("utf-8", "replace"))[:32]
