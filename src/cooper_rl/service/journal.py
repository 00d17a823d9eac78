"""A file of JSON lines that is only added to: a line is there whole, or not at all."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from cooper_rl.errors import InputError
from cooper_rl.persist.durable import sync, write_text

Record = dict[str, Any]


class StepJournal:
    """The records of some steps. What a crash has cut short at the end is dropped when the file is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self._end = max((end for end, _ in read_records(path)), default=0)

    @classmethod
    def create(cls, path: Path, records: Iterable[Record]) -> Self:
        """A new journal, on disk with its first records, in place of one of this name."""
        write_text(path, "".join(map(_line, records)))
        return cls(path)

    def append(self, records: Sequence[Record], durable: bool) -> None:
        """Add records: all or none. They outlast the process and, where `durable`, a power cut.

        Raises OSError where there is no room.
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
    """Every whole line, with the place in the file where it ends. Raises InputError for a damaged one."""
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
                    f"{path}:{number}: damaged ({error}); put the file back from a copy, or delete it from this line "
                    "on and have the trainer restore a step before it"
                ) from error
            yield end, record


def cut(path: Path, end: int) -> None:
    """Drop what stands behind `end`. Needs no room on the disk."""
    os.truncate(path, end)
    sync(path)


def not_undone(records: Sequence[Record]) -> list[Record]:
    """Without the commits that failed, each of which an `undo` follows."""
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
