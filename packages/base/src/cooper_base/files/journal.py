"""A journal of finished work, and lines with a checksum, which it and the service's journals are made of."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cooper_base.closing import Closing
from cooper_base.data.strict_json import parse_json
from cooper_base.errors import InputError
from cooper_base.files.durable import append, check_target, naming, open_to_append, write_text
from cooper_base.files.folder_lock import FileLock

T = TypeVar("T")

_SEAL = ',"sum":"'
_DIGITS = 16


def sealed(record: Mapping[str, Any], before: str = "") -> str:
    """The record as a JSON line (without its end) with a checksum as its last key.

    `before` is the checksum of the line before, for a file in which no line may be missing or out of order.
    """
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f'{text}{_SEAL}{_checksum(text, before)}"}}'


def seal_of(line: str) -> str | None:
    """The checksum that `sealed` has written into the line; None for a line without a checksum."""
    seal = line[-_DIGITS - 2 : -2]
    return seal if line == f'{line[: -len(_SEAL) - _DIGITS - 2]}{_SEAL}{seal}"}}' else None


def is_intact(line: str, before: str = "") -> bool:
    """Whether the line is as `sealed` wrote it."""
    seal = seal_of(line)
    return seal is not None and seal == _checksum(line[: -len(_SEAL) - _DIGITS - 2], before)


def _checksum(text: str, before: str) -> str:
    return hashlib.sha256(f"{before}{text}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


_HEADER = "made with"


def journal_path(output: Path) -> Path:
    """Path of the journal for a command that writes the table `output`; it is in the same folder."""
    return output.with_name(f"{output.stem}.journal.jsonl")


class Journal(Closing):
    """Finished units of work by key, one flushed line each, with a checksum.

    One process at a time has it open. Raises InputError for a file made with other `settings`, for anything that is no
    journal, and for a damaged line.

    The service's journals (`History`) are another thing: there the order counts, so each line's checksum covers those
    before it, a line may have to survive a power cut, and the end can be cut off. Here a unit may be redone alone.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._done: dict[str, Any] = {}
        check_target(path)
        self._lock = FileLock(path)
        try:
            self._open(json.loads(json.dumps(settings)))
        except BaseException:
            self._lock.close()
            raise

    def _open(self, wanted: dict[str, Any]) -> None:
        path = self.path
        try:
            *lines, cut = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not a journal ({error}); choose another output") from error
        if lines or cut:  # the first line is written with the file, so it is whole
            lines = lines or [cut]
            self._check(lines[0], wanted)
            self._done = dict(self._entry(number, line) for number, line in enumerate(lines[1:], start=2))
        entries = [{"key": key, "value": value} for key, value in self._done.items()]
        write_text(path, "".join(f"{sealed(entry)}\n" for entry in [{_HEADER: wanted}, *entries]))
        self._file = open_to_append(path)

    def get(self, key: str) -> Any:
        """The value of a finished unit, or None."""
        return self._done.get(key)

    def put(self, key: str, value: Any) -> None:
        """Record a finished unit. It survives a crash of the process (not a power cut) once this returns."""
        with naming(self.path):
            append(self._file, sealed({"key": key, "value": value}) + "\n")
        self._done[key] = value

    def completed(
        self,
        key: str,
        items: Sequence[T],
        ask: Callable[[list[T]], Iterable[Any]],
        is_missing: Callable[[Any], bool] = lambda value: False,
    ) -> list[Any]:
        """A JSON value for each of a unit's items. What is recorded is kept. For an item without a value (None),
        or with one that `is_missing`, `ask` gives one now, which is recorded.
        """
        values = list(self.get(key) or [None] * len(items))
        if missing := [place for place, value in enumerate(values) if value is None or is_missing(value)]:
            for place, value in zip(missing, ask([items[place] for place in missing]), strict=True):
                values[place] = value
            self.put(key, values)
        return values

    def close(self) -> None:
        self._file.close()
        self._lock.close()

    def _entry(self, number: int, line: str) -> tuple[str, Any]:
        try:
            entry = parse_json(line) if is_intact(line) else None
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
        if not is_intact(header):
            raise InputError(f"{self.path}:1: damaged; restore it from a copy, or delete the file to start over")
        if made_with != wanted:
            changed = [key for key in {**made_with, **wanted} if made_with.get(key) != wanted.get(key)]
            raise InputError(
                f"{self.path}: made with other settings ({', '.join(changed)}); "
                "undo the change to continue, or choose another output or delete this file to start over"
            )
