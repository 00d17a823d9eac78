"""Folders that a command may overwrite, because a mark says that it has written them. Everything else is somebody's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cooper_base.closing import Closing
from cooper_base.errors import InputError
from cooper_base.files.durable import (
    REFUSED,
    append_line,
    check_name,
    check_regular,
    check_target,
    delete,
    folder_aside,
    write_text,
    writing,
)
from cooper_base.files.folder_lock import BUSY_OUT, LOCK, FileLock, FolderLock, check_writable, holder_of
from cooper_base.files.hashes import content_hash, file_hash
from cooper_base.files.owned_file import MARK, NOT_OWN, marked


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
    lines = marked(folder / MARK)
    return str(lines[0].get("command", "")) if lines else ""


def check_new(folder: Path) -> None:
    """Raises InputError if anything but an empty folder has this name, and for a folder that cannot be written."""
    check_name(folder)
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
        raise InputError(REFUSED.format(path=folder, what="already in use"))
    check_writable(folder)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """An empty hidden folder beside `folder`, which takes its name at the end of the block, so that a folder of this
    name is whole. One process at a time writes it. Raises InputError as `check_new` does.
    """
    check_new(folder)
    with FileLock(folder):
        check_new(folder)
        aside = folder_aside(folder)
        try:
            yield aside
            aside.replace(folder)
        finally:
            delete(aside)


class OwnedFolder(Closing):
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
            lines = marked(path / MARK)
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

    def check(self, *paths: Path) -> None:
        """Raises InputError if one of these files inside the folder is somebody's."""
        for path in paths:
            check_target(path)
            if path.exists() and not self.owns(path):
                raise InputError(REFUSED.format(path=path, what=NOT_OWN.format(command=self._command)))

    def write(self, path: Path, text: str) -> str:
        """Replace the contents of a file inside the folder; their hash. Raises InputError for a file of somebody's."""
        self.check(path)
        name, sha256 = self._name(path), content_hash(text.encode())
        with writing(path):
            if (name, sha256) not in self._hashes:  # before the file, so that no kill leaves one without a mark
                append_line(self.path / MARK, {"file": name, "sha256": sha256})
                self._hashes.add((name, sha256))
            write_text(path, text)
        return sha256

    def remove(self, *paths: Path) -> None:
        """Delete files inside the folder. Raises InputError for a file of somebody's, before any is deleted."""
        self.check(*paths)
        for path in paths:
            delete(path)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def _name(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()
