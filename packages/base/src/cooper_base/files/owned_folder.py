"""Folders that a command may overwrite, because a mark says that it has written them. Everything else is somebody's."""

import json
from pathlib import Path
from typing import Self

from cooper_base.errors import InputError
from cooper_base.files.durable import append_line, check_regular, read_regular, write_text, writing
from cooper_base.files.folder_lock import BUSY_OUT, LOCK, FolderLock, holder_of
from cooper_base.files.hashes import content_hash, file_hash

MARK = ".written-by.jsonl"
"""The mark of a folder: a line that names the command, and one for each content that it wrote with `OwnedFolder.write`,
by the path inside the folder and the content's hash. A file of the same name with other content is somebody else's."""


def check_owned(folder: Path, command: str) -> None:
    """Raises InputError for a folder that holds anything and has no mark of this command."""
    if folder.is_dir() and any(path.name != LOCK for path in folder.iterdir()) and _marked_by(folder) != command:
        raise InputError(
            f"{folder}: holds files, and no mark says that `{command}` wrote them, so none of them is overwritten; "
            "choose a new or empty folder"
        )


def is_owned(folder: Path) -> bool:
    """Whether the mark of any command says that it wrote this folder."""
    return (folder / MARK).is_file() and bool(_marked_by(folder))


def _marked_by(folder: Path) -> str:
    """The command whose mark the folder has; empty without one."""
    lines = _lines(folder)
    return str(lines[0].get("command", "")) if lines else ""


def _lines(folder: Path) -> list[dict[str, str]]:
    try:
        lines = read_regular(folder / MARK).decode("utf-8", "replace").split("\n")[:-1]  # half a line is none
    except FileNotFoundError:
        return []
    parsed = []
    for line in lines:
        try:
            parsed.append(json.loads(line))
        except ValueError:
            continue
    return [line for line in parsed if isinstance(line, dict)]


class OwnedFolder:
    """A folder that one command writes, one process at a time. It is new or empty, or has the command's mark."""

    def __init__(self, path: Path, command: str, busy: str = BUSY_OUT) -> None:
        """Raises InputError for a folder with anything that the command has not written, and for one that is being
        written, with the message `busy`.
        """
        if (holder := holder_of(path)) is not None:  # a lock does not keep out its own process
            raise InputError(busy.format(folder=path, holder=holder))
        check_owned(path, command)
        self.path, self._command = path, command
        self._lock = FolderLock(path, busy)
        try:
            check_owned(path, command)  # again, now that nobody else writes
            lines = _lines(path)
            if not lines:
                with writing(path / MARK):
                    append_line(path / MARK, {"command": command})
        except BaseException:
            self._lock.withdraw()
            raise
        self._hashes = {(line["file"], line["sha256"]) for line in lines if {"file", "sha256"} <= line.keys()}

    def folder(self, name: str) -> Path:
        """The folder of this name inside it, which is made. Raises InputError if it is a link to somewhere else."""
        inner = self.path / name
        if inner.is_symlink():
            raise InputError(f"{inner}: is a link, and what lies behind it is not this folder's; remove the link")
        with writing(inner):
            inner.mkdir(exist_ok=True)
        return inner

    def owns(self, path: Path) -> bool:
        """Whether the file's content is one that the command wrote under this name."""
        check_regular(path)
        return path.is_file() and (self._name(path), file_hash(path)) in self._hashes

    def holds(self, path: Path, sha256: str | None) -> bool:
        """Whether the file is there, with this content."""
        check_regular(path)
        return path.is_file() and file_hash(path) == sha256

    def write(self, path: Path, text: str) -> str:
        """Replace the contents of a file inside the folder; their hash. Raises InputError for a file of somebody's."""
        self._check(path)
        name, sha256 = self._name(path), content_hash(text.encode())
        with writing(path):
            if (name, sha256) not in self._hashes:  # before the file, so that no kill leaves one without a mark
                append_line(self.path / MARK, {"file": name, "sha256": sha256})
                self._hashes.add((name, sha256))
            write_text(path, text)
        return sha256

    def remove(self, path: Path) -> None:
        """Delete a file inside the folder. Raises InputError for a file of somebody's."""
        self._check(path)
        path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _name(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    def _check(self, path: Path) -> None:
        if path.exists() and not self.owns(path):
            raise InputError(
                f"{path}: `{self._command}` did not write this file, or somebody has changed it since; move it to "
                "another place, or choose another folder"
            )
