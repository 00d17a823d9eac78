"""Writes that leave either the old or the new contents of a file, safe reads of a folder that others write into too,
and a journal of finished work."""

import hashlib
import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Self, TypeVar

from cooper_base.data.strict_json import parse_json
from cooper_base.errors import InputError, MissingExtraError

logger = logging.getLogger(__name__)

T = TypeVar("T")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds this file's name to an OSError of a write, which names no file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def writing(path: Path, remedy: str = "make room on its disk, or choose another place") -> Iterator[None]:
    """Turns the system's refusal to write `path`, for instance because the disk is full, into an InputError that names
    it.

    Raises InputError for a pipe or a device of this name too, because writing to it could wait forever.
    """
    check_regular(path)
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); {remedy}") from error


def check_regular(path: Path) -> None:
    """Raises InputError if this name is not that of a file: opening a pipe or a device may take forever."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: is a pipe or a device and not a file; remove it")


def read_regular(path: Path) -> bytes:
    """The contents of a file. Raises FileNotFoundError if it is missing, and InputError if it is not a file or cannot
    be read.
    """
    check_regular(path)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); make it readable or remove it"
        ) from error


def read_fields(path: Path, fields: Mapping[str, type | UnionType], remedy: str) -> dict[str, Any]:
    """The JSON object in a file that Cooper has written, with at least these fields of these types.

    Raises InputError, which names the file and the remedy, for anything else in it.
    """
    try:
        value = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, not JSON ({error}); {remedy}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: damaged, not a JSON object; {remedy}")
    if wrong := [name for name, kind in fields.items() if name not in value or not isinstance(value[name], kind)]:
        raise InputError(f"{path}: damaged, {wrong[0]} is missing or has the wrong type; {remedy}")
    return value


def by_step(folder: Path, suffix: str = "") -> dict[int, Path]:
    """The files of a folder whose names are a step and the suffix (`000120.jsonl`), in the order of their steps;
    without a suffix, its folders. Everything else in the folder is ignored.
    """
    paths = [path for path in folder.glob("*") if re.fullmatch(r"\d{6,}" + re.escape(suffix), path.name, re.ASCII)]
    kept = [path for path in paths if (path.is_file() if suffix else path.is_dir())]
    return {int(path.stem): path for path in sorted(kept, key=lambda path: int(path.stem))}


def write_text(path: Path, text: str) -> None:
    """Replace the contents of the file: write them to a hidden file beside it, force that to disk and rename it.

    If the disk is full, raises OSError with the file's name, and the file is unchanged.
    """
    aside = path.with_name(f".{path.name}.partial")
    check_regular(aside)
    with naming(path):
        try:
            aside.write_text(text, encoding="utf-8")
            sync(aside)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        os.replace(aside, path)
        sync(path.parent)


def open_to_append(path: Path) -> io.FileIO:
    """The file, opened for `append`; it is made if there is none."""
    return io.FileIO(path, "a+")


def append(file: io.FileIO, text: str) -> None:
    """Append whole lines to a file of `open_to_append`: all of them or, where the disk is full, none.

    Half a line, which a crash has left at the end, is ended first, so that it spoils no other. Raises OSError.
    """
    end = file.seek(0, os.SEEK_END)
    data = text.encode()
    if end:
        file.seek(end - 1)
        data = data if file.read(1) == b"\n" else b"\n" + data
    try:
        while data:  # a disk that becomes full takes a part, and refuses the rest
            data = data[file.write(data) or 0 :]
    except OSError:
        file.truncate(end)
        raise


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """`append` one JSON object to the file of this name. Raises OSError."""
    with naming(path), open_to_append(path) as file:
        append(file, json.dumps(row) + "\n")


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


def check_table_path(path: Path) -> None:
    """Raises InputError for a suffix other than .parquet and .jsonl, MissingExtraError for Parquet without pyarrow."""
    if path.suffix.lower() not in (".parquet", ".jsonl"):
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; write to .parquet or .jsonl")
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtraError("writing Parquet needs pyarrow (the extra `data`): pip install pyarrow")


def write_table(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write the columns of the rows, as Parquet or JSON lines. The file gets its name only when it is complete."""
    check_table_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".jsonl":
        write_text(path, "".join(_line({name: row[name] for name in columns}) + "\n" for row in rows))
        return
    import pyarrow  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415

    aside = path.with_name(f".{path.name}.partial")
    with naming(path):
        parquet.write_table(pyarrow.table({name: [row[name] for row in rows] for name in columns}), aside)
        os.replace(aside, path)


def _line(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)


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


class Journal:
    """Finished units of work by key, one flushed line each, with a checksum.

    Raises InputError for a file made with other `settings` and for a damaged line. A file of an earlier version, which
    has no checksums, is read with a warning and gets them.

    The service's journals (`History`) are another thing: there the order counts, so each line's checksum covers those
    before it, a line may have to survive a power cut, and the end can be cut off. Here a unit may be redone alone.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._done: dict[str, Any] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        except (UnicodeDecodeError, IsADirectoryError) as error:
            raise InputError(f"{path}: not a journal ({error}); choose another output") from error
        wanted = json.loads(json.dumps(settings))
        if lines:
            self._check(lines[0], wanted)
            checked = seal_of(lines[0]) is not None
            if not checked:
                logger.warning("%s: written by an earlier version without checksums; damage would not be noticed", path)
            self._done = dict(self._entry(number, line, checked) for number, line in enumerate(lines[1:], start=2))
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _entry(self, number: int, line: str, checked: bool) -> tuple[str, Any]:
        try:
            entry = parse_json(line) if is_intact(line) or not checked else None
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
        if not is_intact(header) and set(parse_json(header)) != {_HEADER}:
            raise InputError(f"{self.path}:1: damaged; restore it from a copy, or delete the file to start over")
        if made_with != wanted:
            changed = [key for key in {**made_with, **wanted} if made_with.get(key) != wanted.get(key)]
            raise InputError(
                f"{self.path}: made with other settings ({', '.join(changed)}); "
                "undo the change to continue, or choose another output or delete this file to start over"
            )
