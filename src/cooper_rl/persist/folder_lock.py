"""One process at a time writes a folder: that of a run, or that of a server."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from cooper_rl.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None


BUSY_RUN = (
    "{folder}: a process is training in this folder already ({holder}); wait for it, stop it, or choose another name"
)


class FolderLock:
    """Held until it is closed or its process ends, however it ends."""

    def __init__(self, directory: Path, busy: str = BUSY_RUN) -> None:
        """Raises InputError with the text `busy` if another process holds the folder.

        The text may name the `{folder}`, and the `{holder}` as it described itself.
        """
        self._path = directory / ".lock"
        self._made = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a+", encoding="utf-8")
        if fcntl is None:
            return
        try:
            # Not `flock`, which the verifier's processes would inherit, and hold when this one has been killed.
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "elsewhere"
            self._file.close()
            raise InputError(busy.format(folder=directory, holder=holder)) from error
        with suppress(OSError):  # the name is for others to read; a full disk does not make the lock any weaker
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
            self._file.flush()

    def close(self) -> None:
        """Let others in."""
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()

    def withdraw(self) -> None:
        """Close, and leave no folder behind that was not there before, as nothing was written into it."""
        self.close()
        if self._made and sorted(self._path.parent.iterdir()) == [self._path]:
            self._path.unlink()
            self._path.parent.rmdir()
