"""Checkpoints, for each a journal of what came after it, and the assistant's replies for a replay."""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cooper_rl.errors import InputError
from cooper_rl.persist.checkpoint import CheckpointStore
from cooper_rl.persist.durable import by_step, sync, write_text
from cooper_rl.persist.folder_lock import FolderLock
from cooper_rl.run_config import CheckpointConfig
from cooper_rl.stage2.assistant import Assistant, RewriteRequest, Rewrites

BUSY = "serve.folder: another server is using {folder}; give each a folder of its own"
Record = dict[str, Any]
logger = logging.getLogger(__name__)


class History:
    """`<root>/checkpoints/000010/` and `<root>/journals/000010.jsonl`, which continues the checkpoint.

    Journals are kept from the oldest checkpoint on, so the current state can be reached from every checkpoint. A
    replay skips records of steps that are already done.
    """

    def __init__(self, root: Path, keep: int) -> None:
        self.root = root
        self.store = CheckpointStore(root / "checkpoints", CheckpointConfig(keep=keep))
        self._journals = root / "journals"
        self._file: int | None = None
        """The newest journal, once something is appended."""
        self._end = 0
        try:
            self._journals.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"serve.folder: {root} cannot be written: {error.strerror}") from error
        self._lock = FolderLock(root, BUSY)

    def checkpoints(self) -> list[int]:
        """Their steps, oldest first."""
        return [int(path.name) for path in self.store.list()]

    def state_of(self, step: int) -> dict[str, Any]:
        return json.loads((self.store.directory / f"{step:06d}" / "state.json").read_text(encoding="utf-8"))

    def records(self, since: int) -> list[Record]:
        """What was recorded since the checkpoint of step `since`."""
        return [record for path in self._paths(since) for _, record in read_records(path)]

    def append(self, records: Sequence[Record], durable: bool) -> None:
        """Append all records or none; `durable` ones survive a power cut. Raises OSError if the disk is full."""
        if self._file is None:
            path = [self._path(0), *self._paths(0)][-1]
            self._file = os.open(path, os.O_RDWR | os.O_CREAT)
            self._end = max((end for end, _ in read_records(path)), default=0)
        data = _lines(records).encode()
        os.ftruncate(self._file, self._end)  # what a crash or an earlier failure may have left
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

    def checkpoint(self, step: int, write: Callable[[Path], dict[str, Any]], carried: Sequence[Record]) -> None:
        """Write a checkpoint and begin its journal with the records `carried`. Raises OSError with nothing changed."""
        journal = self._path(step)
        existed = journal.exists()
        if not existed:
            write_text(journal, _lines(carried))
        try:
            self.store.save(step, write)
        except BaseException:
            if not existed:
                journal.unlink()
            raise
        self._close_journal()
        for number in by_step(self._journals, ".jsonl"):
            if number < self.checkpoints()[0]:
                self._path(number).unlink()

    def cut_behind(self, base: int, is_last: Callable[[Record], bool]) -> None:
        """Delete everything after the last record since checkpoint `base` for which `is_last` is true.

        Without such a record, delete everything since the checkpoint. A crash leaves the state before or after.
        """
        last, end = self._path(base), 0
        for path in self._paths(base):
            last, end = max([(path, end) for end, record in read_records(path) if is_last(record)], default=(last, end))
        self._close_journal()
        for path in reversed(self._paths(base)):
            if int(path.stem) > int(last.stem):
                self.store.drop_after(int(path.stem) - 1)
                path.unlink()
        self.store.drop_after(base)
        if last.exists():
            os.truncate(last, end)  # works on a full disk
            sync(last)

    def close(self) -> None:
        self._close_journal()
        self._lock.close()

    def _close_journal(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _path(self, step: int) -> Path:
        return self._journals / f"{step:06d}.jsonl"

    def _paths(self, since: int) -> list[Path]:
        return [path for number, path in by_step(self._journals, ".jsonl").items() if number >= since]


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


def _lines(records: Sequence[Record]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in records)


class RememberingAssistant:
    """An `Assistant` that asks `inner` only once for equal requests, until `forget_used`."""

    def __init__(self, inner: Assistant) -> None:
        self.check, self.close = inner.check, inner.close
        self._inner = inner
        self._replies: dict[str, Future[Rewrites]] = {}
        self._recorded: set[str] = set()
        self._used: set[str] = set()

    def submit(self, requests: Sequence[RewriteRequest]) -> "Future[Rewrites]":
        """See `Assistant`; an exception of the assistant is raised by `new_records`."""
        name = _name(requests)
        self._used.add(name)
        if name not in self._replies:
            try:
                self._replies[name] = self._inner.submit(requests)
            except Exception as error:
                logger.exception("the assistant failed")
                self._replies[name] = Future()
                self._replies[name].set_exception(error)
        return self._replies[name]

    def new_records(self) -> list[Record]:
        """The new replies as JSON values. Raises the assistant's exception; the same requests are then asked again."""
        new = sorted(self._used - self._recorded)
        for failed in [self._replies.pop(name) for name in new if self._replies[name].exception() is not None]:
            failed.result()  # raises
        return [{"name": name, **asdict(self._replies[name].result())} for name in new]

    def start_over(self, records: Sequence[Record]) -> None:
        """Forget everything but `records`, which `new_records` returned before."""
        self._used.clear()
        self._recorded = {record["name"] for record in records}
        self._replies = {}
        for record in records:
            reply = self._replies[record["name"]] = Future()
            reply.set_result(Rewrites(record["texts"], record["counts"]))

    def forget_used(self) -> None:
        """The step is over: its requests will not come again."""
        for name in self._used:
            self._replies.pop(name, None)
        self._recorded -= self._used
        self._used.clear()


def _name(requests: Sequence[RewriteRequest]) -> str:
    content = json.dumps([asdict(request) for request in requests], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
