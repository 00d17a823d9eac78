"""Limits of a server on requests and tokens a minute, which all processes of a user on this machine keep together."""

import asyncio
import hashlib
import json
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cooper_base.errors import InputError
from cooper_base.files.durable import opened

try:
    import fcntl
except ImportError:  # Windows: each process keeps the limits by itself
    fcntl = None

WINDOW_S = 60.0
"""The length of the minute."""
SLOTS = 60
"""Parts of the window in which sent requests are counted together, so that the ledger stays small."""

NOTICED_S = 0.01
"""A shorter wait is that for the ledger's lock."""

_waiting: dict[object, tuple[float, str]] = {}
"""What waits in this process, and since when."""


def waiting_for() -> str:
    """What the requests of this process wait for, in words, such as `waiting 12 s for requests_per_minute: 60`; empty
    if nothing waits."""
    since, what = min([*_waiting.values()], default=(time.monotonic(), ""))
    seconds = time.monotonic() - since
    return f"waiting {seconds:.0f} s for {what}" if seconds > NOTICED_S else ""


@dataclass(frozen=True)
class Sent:
    """A request that the ledger holds."""

    slot: int
    tokens: int


class MinuteLimits:
    """Lets requests through as the limits allow. What was sent stands in a ledger, a small file for each server and
    model that is read and replaced under a lock, so several processes of a run, and several runs, share the limits. Its
    times are those since the machine started, which all processes read alike and nobody sets.

    In no window of a minute are there more requests, or more tokens, than allowed. A request that is larger than
    `tokens` alone is let through when nothing else was sent for a minute.

    Not the package `pyrate-limiter`, which counts over processes too: it writes a row for every token, never lets a
    request through that is larger than the limit, and cannot correct an entry (`settle`).
    """

    def __init__(self, server: str, model: str, requests: int | None, tokens: int | None) -> None:
        """Raises InputError if the ledger cannot be opened."""
        self._requests, self._tokens = requests, tokens
        self._what = ", ".join(
            f"{name}: {limit}"
            for name, limit in (("requests_per_minute", requests), ("tokens_per_minute", tokens))
            if limit is not None
        )
        self._turn = asyncio.Lock()
        self._waited_s = 0.0
        name = hashlib.sha256(f"{server}\n{model}".encode()).hexdigest()[:32]
        self._ledger = _folder() / f"{name}.json"
        if requests is not None or tokens is not None:
            try:
                self._ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with self._locked():
                    _write(self._ledger, _read(self._ledger, time.monotonic()))
            except OSError as error:
                raise InputError(
                    f"{self._ledger}: cannot be written ({error}), but it holds what was sent in the last minute; set "
                    "TMPDIR to a folder of your own, or leave out requests_per_minute and tokens_per_minute"
                ) from error

    @property
    def none(self) -> bool:
        """Whether nothing is limited."""
        return not self._what

    def take_waited_s(self) -> float:
        """Seconds that requests have waited since the last call, added up."""
        waited, self._waited_s = self._waited_s, 0.0
        return waited

    async def take(self, tokens: int) -> Sent | None:
        """Wait until a request of so many tokens may be sent, and enter it; None if nothing is limited."""
        if self.none:
            return None
        call, start = object(), time.monotonic()
        _waiting[call] = (start, self._what)
        try:
            async with self._turn:  # in the order of the calls
                while not isinstance(sent := self._enter(tokens), Sent):
                    await asyncio.sleep(min(sent, WINDOW_S / SLOTS))  # others may correct their entries meanwhile
        finally:
            del _waiting[call]
            waited_s = time.monotonic() - start
            self._waited_s += waited_s if waited_s > NOTICED_S else 0.0
        return sent

    def settle(self, sent: Sent | None, tokens: int | None) -> None:
        """Correct an entry once the server has said how many tokens a request had."""
        if sent is None or tokens is None:
            return
        with self._locked():
            entries = _read(self._ledger, time.monotonic())
            if sent.slot in entries:
                requests, before = entries[sent.slot]
                entries[sent.slot] = requests, max(0, before + tokens - sent.tokens)
                _write(self._ledger, entries)

    def _enter(self, tokens: int) -> Sent | float:
        """The entry of a request that may be sent now, else the seconds after which to try again."""
        with self._locked():
            now = time.monotonic()  # not earlier: the lock may be waited for
            entries = _read(self._ledger, now)
            if not (wait_s := self._wait_s(entries, tokens, now)):
                slot = int(now / (WINDOW_S / SLOTS))
                requests, before = entries.get(slot, (0, 0))
                entries[slot] = requests + 1, before + tokens
                _write(self._ledger, entries)
                return Sent(slot, tokens)
        return wait_s

    def _wait_s(self, entries: dict[int, tuple[int, int]], tokens: int, now: float) -> float:
        """Seconds until enough of what was sent is a minute old; 0 if the request fits now."""
        sent, used = sum(requests for requests, _ in entries.values()), sum(tokens for _, tokens in entries.values())
        wait_s = 0.0
        for slot, (requests, of_slot) in sorted(entries.items()):
            fits = self._requests is None or sent < self._requests
            if fits and (self._tokens is None or used + tokens <= self._tokens):
                break
            sent, used = sent - requests, used - of_slot
            wait_s = max((slot + 1) * (WINDOW_S / SLOTS) + WINDOW_S - now, 0.001)
        return wait_s

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _opened(self._ledger.with_suffix(".lock")) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file
            yield


def _read(ledger: Path, now: float) -> dict[int, tuple[int, int]]:
    """For each slot of the last minute, the requests and tokens that were sent in it. Later slots are of a time before
    the machine was started again."""
    try:
        held = json.loads(ledger.read_bytes())
        held = {int(slot): (int(requests), int(tokens)) for slot, (requests, tokens) in held.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError, RecursionError):  # new, or written by others
        return {}
    length = WINDOW_S / SLOTS
    return {slot: entry for slot, entry in held.items() if (slot + 1) * length + WINDOW_S > now >= slot * length}


def _write(ledger: Path, entries: dict[int, tuple[int, int]]) -> None:
    """Replaces the ledger as a whole, so that a process which is killed here leaves the one before."""
    written = ledger.with_suffix(".new")
    with _opened(written) as file:
        file.write(json.dumps(entries))
    written.replace(ledger)


def _opened(path: Path) -> IO[str]:
    """The emptied file of this user; not what a link in a folder for all users names."""
    return os.fdopen(opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


def _folder() -> Path:
    """The folder of this user's ledgers, among the temporary files of this machine; or in the user's cache, under the
    machine's name, if somebody else has taken that name.
    """
    user = os.getuid() if hasattr(os, "getuid") else None  # Windows has temporary files for each user
    shared = Path(tempfile.gettempdir()) / f"cooper-limits-{'user' if user is None else user}"
    try:
        there = shared.lstat()
    except OSError:  # nothing has it
        return shared
    if stat.S_ISDIR(there.st_mode) and user in (None, there.st_uid):
        return shared
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "cooper-rl" / f"limits-{socket.gethostname()}"
