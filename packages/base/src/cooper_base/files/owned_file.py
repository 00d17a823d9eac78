"""Files that a command may overwrite, because a mark says that it has written them. Everything else is somebody's."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cooper_base.closing import Closing
from cooper_base.errors import InputError
from cooper_base.files.durable import REFUSED, append_line, check_name, check_target, read_regular, write_bytes, writing
from cooper_base.files.folder_lock import FileLock
from cooper_base.files.hashes import content_hash, file_hash

NOT_OWN = "holds what `{command}` did not write, or somebody has changed since"
MARK = ".written-by.jsonl"
"""The mark of a folder that a command has written: a line that names the command, and one for each content of a file in
it, by the path inside the folder and the content's hash. A file of the same name with other content is somebody else's.
In any other folder, a file has a mark of its own beside it: the same lines under the file's name and this suffix."""


def check_input(path: Path, inputs: Iterable[Path]) -> None:
    """Raises InputError if the file to be written is one of those that are read, and as `check_name`."""
    check_name(path)
    if path.exists() and any(given.exists() and given.samefile(path) for given in inputs):
        raise InputError(REFUSED.format(path=path, what="is read by this command"))


def check_file(path: Path, command: str, inputs: Iterable[Path] = ()) -> None:
    """Raises InputError if the file may not be written: it is one of the `inputs`, something else than a file, or holds
    anything that this command has not written.
    """
    check_target(path)
    check_input(path, inputs)
    if not path.exists() or path.stat().st_size == 0:
        return
    mark = _mark_of(path)
    lines = marked(mark)
    by = lines[0].get("command") if lines else None
    written = {
        line.get("sha256") for line in lines if line.get("file") == path.name and line.get("command", by) == command
    }
    if file_hash(path) not in written:
        raise InputError(REFUSED.format(path=path, what=NOT_OWN.format(command=command)))


def marked(mark: Path) -> list[dict[str, str]]:
    """The lines of a mark."""
    try:
        lines = read_regular(mark).decode("utf-8", "replace").split("\n")[:-1]  # half a line is none
    except FileNotFoundError:
        return []
    return [line for line in map(_parsed, lines) if isinstance(line, dict)]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _mark_of(path: Path) -> Path:
    of_folder = path.parent / MARK
    return of_folder if of_folder.is_file() else path.with_name(f".{path.name}{MARK}")


def write_owned(path: Path, content: str | bytes, command: str) -> None:
    """Replace the contents of a file as `OwnedFile.write` does, and raise InputError as `OwnedFile` does."""
    with OwnedFile(path, command) as file:
        file.write(content)


class OwnedFile(Closing):
    """A file that one command writes as a whole, one process at a time. It is new or empty, or the command has written
    what it holds.
    """

    def __init__(self, path: Path, command: str, inputs: Iterable[Path] = ()) -> None:
        """Raises InputError as `check_file` does, and for a file that another call is writing."""
        self.path, self._command, self._inputs = path, command, [*inputs]
        check_file(path, command, self._inputs)
        self._lock = FileLock(path)

    def write(self, content: str | bytes) -> None:
        """Replace the contents. Raises InputError as `check_file` does: somebody may have written meanwhile."""
        check_file(self.path, self._command, self._inputs)
        data = content.encode() if isinstance(content, str) else content
        line = {"file": self.path.name, "sha256": content_hash(data), "command": self._command}
        with writing(self.path):
            mark = _mark_of(self.path)
            if line not in marked(mark):  # before the file, so that no kill leaves one without a mark
                append_line(mark, line)
            write_bytes(self.path, data)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()
