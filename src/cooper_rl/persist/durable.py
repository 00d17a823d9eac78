"""Durable writes, which leave either the old or the new contents of a file, and a journal of finished work."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cooper_rl.data.strict_json import parse_json
from cooper_rl.errors import InputError


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


_HEADER = "made with"


def journal_path(output: Path) -> Path:
    """Path of the journal for a command that writes the table `output`; it is in the same folder."""
    return output.with_name(f"{output.stem}.journal.jsonl")


class Journal:
    """Finished units of work by key, one flushed line for each, from which an interrupted command goes on.

    An incomplete last line is dropped.

    `settings` is everything that the values depend on. Raises InputError for a journal made with other settings, whose
    values must not be mixed with new ones.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._done: dict[str, Any] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._lines()
        wanted = json.loads(json.dumps(settings))
        if lines:
            self._check(lines[0], wanted)
            self._done = dict(self._entry(number, line) for number, line in enumerate(lines[1:], start=2))
        else:
            lines = [json.dumps({_HEADER: wanted}, ensure_ascii=False)]
        write_text(path, "".join(f"{line}\n" for line in lines))
        self._file = path.open("a", encoding="utf-8")

    def get(self, key: str) -> Any:
        """The value of a finished unit, or None."""
        return self._done.get(key)

    def put(self, key: str, value: Any) -> None:
        """Record a finished unit. It survives a crash of the process (not a power cut) once this returns."""
        self._file.write(json.dumps({"key": key, "value": value}, ensure_ascii=False) + "\n")
        self._file.flush()
        self._done[key] = value

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _lines(self) -> list[str]:
        """The complete lines of the file."""
        try:
            return self.path.read_text(encoding="utf-8").split("\n")[:-1] if self.path.exists() else []
        except (UnicodeDecodeError, IsADirectoryError) as error:
            raise InputError(f"{self.path}: not a journal ({error}); choose another output") from error

    def _entry(self, number: int, line: str) -> tuple[str, Any]:
        try:
            entry = parse_json(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str) or "value" not in entry:
            raise InputError(
                f"{self.path}:{number}: damaged; delete this line to redo its work, or the file to start over"
            )
        return entry["key"], entry["value"]

    def _check(self, header: str, wanted: dict[str, Any]) -> None:
        try:
            made_with = parse_json(header)[_HEADER]
        except (ValueError, LookupError, TypeError):
            made_with = None
        if not isinstance(made_with, dict):
            raise InputError(f"{self.path}: not a journal of this command; choose another output")
        if made_with != wanted:
            changed = [key for key in {**made_with, **wanted} if made_with.get(key) != wanted.get(key)]
            raise InputError(
                f"{self.path}: made with other settings ({', '.join(changed)}); "
                "undo the change to continue, or choose another output or delete this file to start over"
            )
