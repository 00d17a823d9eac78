"""An append-only file of JSON lines; a line is written whole or not at all."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from cooper_rl.errors import InputError
from cooper_rl.persist.durable import sync, write_text

Record = dict[str, Any]


class StepJournal:
    """The records of some steps. Opening the file drops a last line that a crash cut short."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self._end = max((end for end, _ in read_records(path)), default=0)

    @classmethod
    def create(cls, path: Path, records: Iterable[Record]) -> Self:
        """A new journal with these first records, forced to disk; replaces a file of this name."""
        write_text(path, "".join(map(_line, records)))
        return cls(path)

    def append(self, records: Sequence[Record], durable: bool) -> None:
        """Append all records or none. They survive the process and, if `durable`, a power cut.

        Raises OSError if the disk is full.
        """
        data = "".join(map(_line, records)).encode()
        os.ftruncate(self._file, self._end)  # what an earlier failure may have left
        os.lseek(self._file, self._end, os.SEEK_SET)
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            if durable:
                os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_records(path: Path) -> Iterator[tuple[int, Record]]:
    """Every whole line with the offset of its end. Raises InputError for a damaged line."""
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            end += len(line)
            try:
                record = json.loads(line)
            except ValueError as error:
                raise InputError(
                    f"{path}:{number}: damaged ({error}); restore the file from a copy, or delete this line and "
                    "all after it and let the trainer restore an earlier step"
                ) from error
            yield end, record


def cut(path: Path, end: int) -> None:
    """Drop everything after `end`. Works on a full disk."""
    os.truncate(path, end)
    sync(path)


def not_undone(records: Sequence[Record]) -> list[Record]:
    """Without the commits that failed; an `undo` follows each of them."""
    undone: set[int] = set()
    kept: list[Record] = []
    for record in reversed(records):
        if record["kind"] == "undo":
            undone.add(record["step"])
        elif record["kind"] == "commit" and record["step"] in undone:
            undone.remove(record["step"])
        else:
            kept.append(record)
    return kept[::-1]


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
