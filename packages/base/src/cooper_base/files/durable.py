"""Writes that leave either the old or the new contents of a file and follow no link, and safe reads of a folder that
others write into too."""

import io
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any

from cooper_base.errors import InputError, MissingExtraError

REFUSED = "{path}: {what}, so it is not written; choose another place, or remove it"
"""The message about a name that is taken by something that a command may not write."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds this file's name to an OSError of a write, which names no file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def writing(path: Path, remedy: str = "make room on its disk, or choose another place") -> Iterator[None]:
    """Turns the system's refusal to write `path`, for instance because the disk is full, into an InputError that names
    it.

    Raises InputError for a pipe or a device of this name too, because writing to it could wait forever.
    """
    check_regular(path)
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); {remedy}") from error


def check_regular(path: Path) -> None:
    """Raises InputError if this name is not that of a file: opening a pipe or a device may take forever."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: is a pipe or a device and not a file; remove it")


def read_regular(path: Path) -> bytes:
    """The contents of a file. Raises FileNotFoundError if it is missing, and InputError if it is not a file or cannot
    be read.
    """
    check_regular(path)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); make it readable or remove it"
        ) from error


def read_fields(path: Path, fields: Mapping[str, type | UnionType], remedy: str) -> dict[str, Any]:
    """The JSON object in a file that Cooper has written, with at least these fields of these types.

    Raises InputError, which names the file and the remedy, for anything else in it.
    """
    try:
        value = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, not JSON ({error}); {remedy}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: damaged, not a JSON object; {remedy}")
    if wrong := [name for name, kind in fields.items() if name not in value or not isinstance(value[name], kind)]:
        raise InputError(f"{path}: damaged, {wrong[0]} is missing or has the wrong type; {remedy}")
    return value


def by_step(folder: Path, suffix: str = "") -> dict[int, Path]:
    """The files of a folder whose names are a step and the suffix (`000120.jsonl`), in the order of their steps;
    without a suffix, its folders. Everything else in the folder is ignored.
    """
    paths = [path for path in folder.glob("*") if re.fullmatch(r"\d{6,}" + re.escape(suffix), path.name, re.ASCII)]
    kept = [path for path in paths if (path.is_file() if suffix else path.is_dir())]
    return {int(path.stem): path for path in sorted(kept, key=lambda path: int(path.stem))}


def check_target(path: Path) -> None:
    """Raises InputError if this name is taken by something else than a file, or if no file can have it. A link is such
    a thing, whatever it leads to.
    """
    check_name(path)
    kind = _kind_of(path)
    if kind is not None and kind != stat.S_IFREG:
        what = {stat.S_IFLNK: "is a link", stat.S_IFDIR: "is a folder"}.get(
            kind, "is a pipe or a device and not a file"
        )
        raise InputError(REFUSED.format(path=path, what=what))


def check_name(path: Path) -> None:
    """Raises InputError for a path that ends in no name, and for one that the system refuses, such as a long one."""
    if not path.name:
        raise InputError(f"{str(path)!r}: names no file and no folder; give its name")
    try:
        path.with_name(f".{path.name}.written-by.jsonl").lstat()  # the longest name that is written beside it
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another output") from error


def _kind_of(path: Path) -> int | None:
    """The kind of what has this name (`stat.S_IFREG` and so on); None if nothing has it."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def opened(path: Path, flags: int, folder: int | None = None) -> int:
    """The descriptor of a file, opened with these flags (`os.O_RDWR` and so on), which waits for no pipe and follows no
    link. `folder` is a handle of the file's folder, if there is one.

    Raises InputError for a link, a folder, a pipe and a device, and OSError.
    """
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # Windows has neither
    try:
        descriptor = os.open(path if folder is None else path.name, flags, 0o666, dir_fd=folder)
    except OSError:
        check_target(path)
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        check_target(path)
    return descriptor


@contextmanager
def _handle(folder: Path) -> Iterator[int | None]:
    """A handle of a folder: names in it are then those of this folder, whatever takes its own name meanwhile."""
    if os.open not in os.supports_dir_fd:  # Windows
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """`write_bytes` of a text in UTF-8."""
    write_bytes(path, text.encode(), durable)


def write_bytes(path: Path, data: bytes, durable: bool = True) -> None:
    """Replace the contents of the file: write them to a hidden file beside it, force that to disk and rename it.

    Without `durable` nothing is forced to disk, so a power cut may lose it. If the disk is full, raises OSError with
    the file's name, and the file is unchanged. A link of either name is replaced by the file.
    """
    aside = path.with_name(f".{path.name}.partial")
    check_regular(aside)
    with naming(path), _handle(path.parent) as folder:
        places = [file if folder is None else file.name for file in (aside, path)]
        with suppress(FileNotFoundError):  # of a call that was killed, or of somebody who would have us write elsewhere
            os.unlink(places[0], dir_fd=folder)
        try:
            with os.fdopen(opened(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder), "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(places[0], dir_fd=folder)
            raise
        os.replace(*places, src_dir_fd=folder, dst_dir_fd=folder)
        if durable and folder is not None:
            os.fsync(folder)


def delete(path: Path) -> None:
    """Delete a folder as far as possible, or a file or a link of this name, but not what the link leads to."""
    if _kind_of(path) == stat.S_IFDIR:
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def folder_aside(folder: Path) -> Path:
    """The hidden folder beside `folder` that holds what will be `folder` once it is whole. It is new and empty: what an
    earlier call has left there is deleted.
    """
    aside = folder.with_name(f".{folder.name}.partial")
    delete(aside)
    aside.mkdir(parents=True)
    return aside


def open_to_append(path: Path) -> io.FileIO:
    """The file, opened for `append`; it is made if there is none."""
    return io.FileIO(opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+")


def append(file: io.FileIO, text: str) -> None:
    """Append whole lines to a file of `open_to_append`: all of them or, where the disk is full, none.

    Half a line, which a crash has left at the end, is ended first, so that it spoils no other. Raises OSError.
    """
    end = file.seek(0, os.SEEK_END)
    data = text.encode()
    if end:
        file.seek(end - 1)
        data = data if file.read(1) == b"\n" else b"\n" + data
    try:
        while data:  # a disk that becomes full takes a part, and refuses the rest
            data = data[file.write(data) or 0 :]
    except OSError:
        file.truncate(end)
        raise


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """`append` one JSON object to the file of this name. Raises OSError."""
    with naming(path), open_to_append(path) as file:
        append(file, json.dumps(row) + "\n")


def sync(path: Path) -> None:
    """Force a file's contents, or a folder's list of names, to disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Force everything inside the folder to disk."""
    for path in [*folder.rglob("*"), folder]:
        sync(path)


def check_table_path(path: Path) -> None:
    """Raises InputError for a suffix other than .parquet and .jsonl, MissingExtraError for Parquet without pyarrow."""
    if path.suffix.lower() not in (".parquet", ".jsonl"):
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; write to .parquet or .jsonl")
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtraError("writing Parquet needs pyarrow (the extra `data`): pip install pyarrow")


def table_bytes(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    """The contents of a table of this name, with these columns of the rows, as Parquet or JSON lines."""
    check_table_path(path)
    if path.suffix.lower() == ".jsonl":
        lines = (json.dumps({name: row[name] for name in columns}, ensure_ascii=False) + "\n" for row in rows)
        return "".join(lines).encode()
    import pyarrow  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415

    written = io.BytesIO()
    parquet.write_table(pyarrow.table({name: [row[name] for row in rows] for name in columns}), written)
    return written.getvalue()
