"""Durable writes: after a crash or a power cut a file has either its old or its new contents."""

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Replace the contents of the file: write them to a hidden file beside it, force that to disk and rename it."""
    aside = path.with_name(f".{path.name}.partial")
    aside.write_text(text, encoding="utf-8")
    sync(aside)
    os.replace(aside, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file's contents, or a folder's list of names, to disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Force everything inside the folder to disk."""
    for path in [*folder.rglob("*"), folder]:
        sync(path)
