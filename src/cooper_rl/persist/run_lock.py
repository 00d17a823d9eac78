"""One process at a time writes a run's folder."""

import os
import socket
from pathlib import Path

from cooper_rl.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None


class RunLock:
    """Held until it is closed or its process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        """Raises InputError where another process holds the folder."""
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
            raise InputError(
                f"{directory}: a process is training in this folder already ({holder}); wait for it, stop it, or "
                "choose another name"
            ) from error
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
