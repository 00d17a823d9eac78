"""Checkpoints, for each a journal of what came after it, and the assistant's replies for a replay."""

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cooper_base.data.strict_json import parse_json
from cooper_base.errors import InputError
from cooper_base.files.durable import by_step, opened, read_fields, sync, write_text
from cooper_base.files.folder_lock import LOCK, FolderLock
from cooper_base.files.hashes import text_key
from cooper_base.files.journal import is_intact, seal_of, sealed
from cooper_rl.record.checkpoint import OF_SERVICE, CheckpointConfig, CheckpointStore
from cooper_rl.reward.pairs.assistant import Assistant, RewriteRequest, Rewrites

BUSY = "serve.folder: another server is using {folder} ({holder}); give each a folder of its own"
HistoryRecord = dict[str, Any]
"""What a line of a journal says."""
logger = logging.getLogger(__name__)


class History:
    """`<root>/checkpoints/000010/` and `<root>/journals/000010.jsonl`, which continues the checkpoint.

    Journals are kept from the oldest checkpoint on, so the current state can be reached from every checkpoint. A
    replay skips records of steps that are already done. Every line has a checksum of itself and all lines before it,
    and the last record of a journal names the one that continues it, so that damage and missing files are noticed.
    """

    def __init__(self, root: Path, keep: int) -> None:
        self.root = root
        self.store = CheckpointStore(root / "checkpoints", CheckpointConfig(keep=keep), OF_SERVICE)
        self._journals = root / "journals"
        self._cut = root / "restore.json"
        """The cut under way, if there is one; see `plan_cut`."""
        self._file: int | None = None
        """The newest journal, once something is appended."""
        self._end, self._seal = 0, ""
        """Where its last whole line ends, and that line's checksum."""
        self._check()
        self._lock = FolderLock(root, BUSY)
        try:
            self._check()  # again, now that nobody else writes
            self._journals.mkdir(exist_ok=True)
        except BaseException as error:
            self._lock.withdraw()
            if isinstance(error, OSError):
                raise InputError(f"serve.folder: {root} cannot be written: {error.strerror}") from error
            raise

    def _check(self) -> None:
        """Raises InputError for a folder that holds anything and is not that of a service."""
        others = {*self.root.iterdir()} - {self.root / LOCK} if self.root.is_dir() else {}
        if others and not self._journals.is_dir():
            raise InputError(
                f"serve.folder: {self.root}: holds files and no journals of a service, so it is left as it is; "
                "choose a new or empty folder"
            )
        self.store.check()

    def checkpoints(self) -> list[int]:
        """Their steps, oldest first."""
        return [int(path.name) for path in self.store.list()]

    def state_of(self, step: int) -> dict[str, Any]:
        path = self.store.directory / f"{step:06d}" / "state.json"
        return read_fields(path, {"digest": str}, f"delete {path.parent}, so that an older checkpoint serves")

    def records(self, since: int) -> list[HistoryRecord]:
        """What was recorded since the checkpoint of step `since`. Raises InputError for damaged or lost journals."""
        paths = self._paths(since)
        records = [record for path in paths for _, record in read_records(path)]
        needed = {record["step"] for record in records if record["kind"] == "next"} | {*self.checkpoints()}
        if missing := sorted(step for step in needed if step >= since and self._path(step) not in paths):
            raise InputError(
                f"{self._path(missing[0])}: missing, with the steps that were recorded in it; restore the file from a "
                f"copy, or go back: delete {self.store.directory / f'{missing[0]:06d}'}, every journal from "
                f"{missing[0]:06d} on and the last line of the journal before, and let the trainer restore an earlier "
                "step"
            )
        return [record for record in records if record["kind"] != "next"]

    def append(self, records: Sequence[HistoryRecord], durable: bool) -> None:
        """Append all records or none; `durable` ones survive a power cut. Raises OSError if the disk is full."""
        file = self._opened()
        text, seal = _lines(records, self._seal)
        data = text.encode()
        os.ftruncate(file, self._end)  # what a crash or an earlier failure may have left
        os.lseek(file, self._end, os.SEEK_SET)
        try:
            written = 0
            while written < len(data):
                written += os.write(file, data[written:])
            if durable:
                os.fsync(file)
        except OSError:
            os.ftruncate(file, self._end)
            raise
        self._end, self._seal = self._end + len(data), seal

    def checkpoint(self, step: int, write: Callable[[Path], dict[str, Any]], carried: Sequence[HistoryRecord]) -> None:
        """Write a checkpoint and begin its journal with the records `carried`.

        Raises OSError if the disk is full; nothing is lost then, and earlier checkpoints stay as they are.
        """
        journal = self._path(step)
        if not journal.exists():
            if before := self._paths(0):
                self._opened()
            try:
                write_text(journal, _lines(carried, journal.stem)[0])
                if before:
                    self.append([{"kind": "next", "step": step}], durable=True)
            except BaseException:
                journal.unlink(missing_ok=True)
                raise
            self._close_journal()  # from here on, the new journal goes on
        self.store.save(step, write)
        for number, path in by_step(self._journals, ".jsonl").items():
            if number < self.checkpoints()[0]:
                path.unlink()

    def plan_cut(self, base: int, is_last: Callable[[HistoryRecord], bool]) -> None:
        """Decide to delete everything after the last record since checkpoint `base` for which `is_last` is true.

        Without such a record, that is everything since the checkpoint. `finish_cut` deletes it, after a restart too, so
        a crash leaves the state before or after. Raises OSError with nothing changed if the disk is full.
        """
        last, end = self._path(base), 0
        for path in self._paths(base):
            last, end = max([(path, end) for end, record in read_records(path) if is_last(record)], default=(last, end))
        write_text(self._cut, sealed({"base": base, "journal": int(last.stem), "end": end}))

    def finish_cut(self) -> None:
        """Delete what `plan_cut` has written down, if anything. Raises InputError if that is damaged."""
        if not self._cut.exists():
            return
        line = self._cut.read_text(encoding="utf-8", errors="replace")
        if not is_intact(line):
            raise InputError(f"{self._cut}: damaged; delete it and let the trainer restore its step again")
        plan = parse_json(line)
        self._close_journal()
        self.store.drop_after(plan["base"])
        for path in reversed(self._paths(plan["journal"] + 1)):
            path.unlink()
        last = self._path(plan["journal"])
        if last.exists():
            file = opened(last, os.O_RDWR)
            try:
                os.ftruncate(file, plan["end"])
                os.fsync(file)
            finally:
                os.close(file)
        sync(self._journals)
        self._cut.unlink()
        sync(self.root)

    def close(self) -> None:
        self._close_journal()
        self._lock.close()

    def _opened(self) -> int:
        """The descriptor of the newest journal. It stays open, so that a server out of descriptors can still write."""
        if self._file is None:
            path = [self._path(0), *self._paths(0)][-1]
            self._end, self._seal = 0, path.stem
            for end, _, seal in _read_lines(path) if path.exists() else ():
                self._end, self._seal = end, seal
            self._file = opened(path, os.O_RDWR | os.O_CREAT)
        return self._file

    def _close_journal(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _path(self, step: int) -> Path:
        return self._journals / f"{step:06d}.jsonl"

    def _paths(self, since: int) -> list[Path]:
        return [path for number, path in by_step(self._journals, ".jsonl").items() if number >= since]


def read_records(path: Path) -> Iterator[tuple[int, HistoryRecord]]:
    """Every whole line with the offset of its end. Raises InputError for a damaged line, and for a line without a
    checksum."""
    for end, line, _ in _read_lines(path):
        record = json.loads(line)  # not strict: a reward may be NaN
        del record["sum"]
        yield end, record


def _read_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Every whole line: the offset of its end, its text and its checksum, which goes on from the line before."""
    end, seal = 0, path.stem
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            line = data.removesuffix(b"\n").decode("utf-8", "replace")
            if not data.endswith(b"\n") and not is_intact(line[:-1], seal):
                return  # a crash came while it was written
            if not data.endswith(b"\n") or not is_intact(line, seal):
                raise InputError(
                    f"{path}:{number}: damaged, its checksum does not fit; restore the file from a copy, or delete "
                    "this line and all after it and let the trainer restore an earlier step"
                )
            seal = seal_of(line) or ""
            end += len(data)
            yield end, line, seal


def not_undone(records: Sequence[HistoryRecord]) -> list[HistoryRecord]:
    """Without the commits that failed; an `undo` follows each of them."""
    undone: set[int] = set()
    kept: list[HistoryRecord] = []
    for record in reversed(records):
        if record["kind"] == "undo":
            undone.add(record["step"])
        elif record["kind"] == "commit" and record["step"] in undone:
            undone.remove(record["step"])
        else:
            kept.append(record)
    return kept[::-1]


def _lines(records: Sequence[HistoryRecord], seal: str) -> tuple[str, str]:
    """The records as lines that go on from the checksum `seal`, and the checksum of the last."""
    lines = []
    for record in records:
        lines.append(sealed(record, seal) + "\n")
        seal = seal_of(lines[-1][:-1]) or ""
    return "".join(lines), seal


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
        name = text_key(json.dumps([asdict(request) for request in requests], sort_keys=True))
        self._used.add(name)
        if name not in self._replies:
            try:
                self._replies[name] = self._inner.submit(requests)
            except Exception as error:
                logger.exception("the assistant failed")
                self._replies[name] = Future()
                self._replies[name].set_exception(error)
        return self._replies[name]

    def new_records(self) -> list[HistoryRecord]:
        """The new replies as JSON values. Raises the assistant's exception; the same requests are then asked again."""
        new = sorted(self._used - self._recorded)
        for failed in [self._replies.pop(name) for name in new if self._replies[name].exception() is not None]:
            failed.result()  # raises
        return [{"name": name, **asdict(self._replies[name].result())} for name in new]

    def start_over(self, records: Sequence[HistoryRecord]) -> None:
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
