"""The rows of the files in which trainers and trackers keep rollouts: JSON and JSON lines, tables, zips of samples and
databases. Every file may come from a stranger, so nothing that it holds is run, and no row is read without a bound."""

import gzip
import io
import os
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from cooper_audit.rollouts.formats import FORMATS
from cooper_audit.rollouts.unrolling import LOGGED, TRACKIO_TYPES, parse_dump
from cooper_audit.run.run_record import is_run
from cooper_base.data.readers import EXPANSION, LONGEST_ROW, DataRow, read_file
from cooper_base.errors import InputError, MissingExtraError, refuse_saved_data_set
from cooper_base.files.durable import check_regular
from cooper_base.files.owned_folder import is_owned

LONGEST_LINE = LONGEST_ROW
"""Bytes of a line, and of a JSON file that is one value. A line may hold a whole step in columns."""
TEXTS = (".jsonl", ".ndjson", ".json")
TABLES = (".parquet", ".csv", ".tsv")
COMPRESSED = (".gz", ".zst")
ZIP = ".eval"
"""Inspect's log, a zip with a JSON file for each sample."""
DATABASE = ".db"
"""trackio's runs of a project. `project.db/run` is the path of one of them."""
PICKLES = (".pkl", ".pickle", ".pt", ".pth")
_ZSTANDARD = 93
"""The number of this compression in a zip, which Python reads itself from 3.14 on."""
_WANDB_RUN = re.compile(r"/(?:offline-)?run-\d{8}_\d{6}-(\w++)/")
_UNREADABLE = (EOFError, OSError, RuntimeError, UnicodeDecodeError, sqlite3.Error, zipfile.BadZipFile, zlib.error)
"""What the readers of packed files raise for damage: a zip's encrypted file is a RuntimeError, and a database's
complaint may quote bytes that are no text."""
MOST_BROKEN = 3
"""So many lines of a file may be no JSON, as a process that dies in a line leaves them before a resumed one goes on. A
file that has more, or begins with one, is damaged otherwise or something else."""
LeaveOut = Callable[[str], None]


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files that may hold rollouts. Raises InputError for none, and for those that are pickles."""
    files, pickles = [], []
    left_out = re.compile("|".join(form.left_out for form in FORMATS if form.left_out))
    for path in paths:
        check_regular(path)
        if not path.exists() and not _database(path):
            raise InputError(f"{path}: no such file or folder; name what the trainer wrote, see docs/audit.md")
        if is_run(path) and not is_owned(path):
            raise InputError(f"{path}: is a run of Cooper; `cooper report {path}` has its verdict")
        refuse_saved_data_set(path)
        inner = sorted(_files_in(path), key=_natural) if path.is_dir() else [path]
        pickles += [file for file in inner if file.suffix.lower() in PICKLES]
        kept = [file for file in inner if _kind(file) and not file.name.startswith(".")]
        files += [file for file in kept if not left_out.search(f"/{file.relative_to(path).as_posix()}")] or kept
    if files:
        return files
    if pickles:
        raise InputError(
            f"{pickles[0]}: a pickle runs code when it is read, so it is refused. SkyRL and slime write them: dump the "
            "rollouts as JSON lines from your generator, or audit the evaluations (dumped_evals), which are JSON lines"
        )
    known = ", ".join((*TEXTS, *TABLES, ZIP, DATABASE))
    raise InputError(f"{paths[0]}: holds no rollouts, which are files with the suffixes {known}, or these with .gz")


def _files_in(folder: Path) -> Iterator[Path]:
    """The files in a folder, without pipes and devices, and without those of Cooper's own results."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_owned(Path(place, name))]
        yield from (path for name in names if (path := Path(place, name)).is_file())


def _natural(path: Path) -> list[Any]:
    """An order in which `step_2` comes before `step_10`."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]


def _kind(path: Path) -> str:
    """The suffix without that of a compression; empty for a file that cannot hold rollouts."""
    if _database(path):
        return DATABASE
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in (*TEXTS, *TABLES, ZIP, DATABASE) else ""


def _database(path: Path) -> Path | None:
    """The database of a path such as `project.db/run`."""
    return next((outer for outer in path.parents if outer.suffix.lower() == DATABASE and outer.is_file()), None)


def tracked_run(path: Path) -> str:
    """The tracker's name for the run that a file belongs to; empty for a trainer's own file."""
    if _kind(path) == DATABASE:
        return str(path)
    if not path.name.endswith(".table.json"):
        return ""
    match = _WANDB_RUN.search(path.resolve().as_posix())  # `latest-run` is a link
    return match[1] if match else ""


def records(path: Path, leave_out: LeaveOut) -> Iterator[DataRow]:
    """The rows of a file, each with its place. A few lines that are cut off are left out. Raises InputError."""
    kind = _kind(path)
    if path.suffix.lower() in COMPRESSED and kind not in TEXTS:
        raise InputError(f"{path}: unpack it first; only {', '.join(TEXTS)} are read from a compressed file")
    try:
        if kind in TABLES:
            yield from read_file(path)
        elif kind == ZIP:
            yield from _samples(path)
        elif kind == DATABASE:
            yield from _logged(path)
        else:
            with _opened(path) as file:
                yield from _values(path, file) if kind == ".json" else _lines(path, file, leave_out)
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from error
        raise InputError(f"{path}: cannot be read to its end ({error}); is it damaged?") from error
    except _UNREADABLE as error:
        raise InputError(
            f"{path}: cannot be read to its end ({error}); is it damaged or still being written?"
        ) from error


def _values(path: Path, file: IO[bytes]) -> Iterator[DataRow]:
    """The elements of an array, or the one value of the file."""
    value = _parsed(file.read(LONGEST_LINE + 1), str(path))
    for place, element in enumerate(value if isinstance(value, list) else [value], start=1):
        yield _row(element, f"{path}:{place}")


def _lines(path: Path, file: IO[bytes], leave_out: LeaveOut) -> Iterator[DataRow]:
    line, good, broken = 0, 0, 0
    unpack = _Unpacking(path) if path.suffix.lower() in COMPRESSED else None
    while data := file.readline(LONGEST_LINE + 1):
        line += 1
        if unpack is not None:
            unpack.add(len(data))
        if not data.strip() and len(data) <= LONGEST_LINE:
            continue
        try:
            value = _parsed(data, f"{path}:{line}")
        except InputError:
            is_last = not data.endswith(b"\n")
            broken += not is_last
            if broken > min(MOST_BROKEN, good) or len(data) > LONGEST_LINE:
                raise
            leave_out("a last line that is cut off" if is_last else f"a broken line ({path.name}:{line})")
            continue
        good += 1
        yield _row(value, f"{path}:{line}")


def _samples(path: Path) -> Iterator[DataRow]:
    """The samples of an Inspect log. A name that comes twice means its last file, as every reader of zips takes it."""
    unpack = _Unpacking(path)
    with zipfile.ZipFile(path) as archive:
        by_name = {info.filename: info for info in archive.infolist()}
        for name, info in by_name.items():
            if name.startswith("samples/") and name.endswith(".json"):
                unpack.add(info.compress_size)  # several names may stand for the same bytes
                with _member(path, archive, info) as file:
                    data = file.read(LONGEST_LINE + 1)
                unpack.add(len(data))
                yield _row(_parsed(data, f"{path}:{name}"), f"{path}:{name}")


class _Unpacking:
    """Counts what comes out of a packed file. Raises InputError for far more than it takes."""

    def __init__(self, path: Path) -> None:
        self._path, self._bytes = path, 0
        self._most = max(2 * LONGEST_LINE, EXPANSION * path.stat().st_size)

    def add(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._most:
            raise InputError(
                f"{self._path}: unpacks to more than {EXPANSION} times its size, which no rollouts do; if they are "
                "yours, unpack the file and audit what was in it"
            )


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.compress_type != _ZSTANDARD:
        return archive.open(info)
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        name_bytes, extra_bytes = (int.from_bytes(file.read(2), "little") for _ in range(2))
        file.seek(name_bytes + extra_bytes, io.SEEK_CUR)  # the data stand behind them
        return _unzstd(io.BytesIO(file.read(min(info.compress_size, LONGEST_LINE))))


def _logged(path: Path) -> Iterator[DataRow]:
    """What a run has logged to trackio with tables or traces of rollouts. Raises InputError for several runs."""
    database = _database(path) or path
    run = None if database == path else path.relative_to(database).as_posix()
    with database.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":  # another kind of `.db`
            return
    with closing(sqlite3.connect(f"file:{quote(str(database.resolve()))}?mode=ro", uri=True)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
        connection.set_progress_handler(lambda: None, 100_000)  # so that Python sees an interruption
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'metrics'").fetchone():
            return
        kinds = " OR ".join(f"instr(CAST(metrics AS TEXT), '{kind}')" for kind in TRACKIO_TYPES)
        tables = f"FROM metrics WHERE ({kinds})"
        runs = [name for (name,) in connection.execute(f"SELECT DISTINCT run_name {tables}")]
        if not runs and run is None:
            return
        if len(runs) > 1 and run is None:
            raise InputError(f"{path}: holds the runs {', '.join(map(str, runs))}; name one, as {path / str(runs[0])}")
        if run is not None and run not in runs:
            raise InputError(f"{path}: no such run; rollouts were logged by {', '.join(map(str, runs)) or 'none'}")
        chosen = f"SELECT id, step, CAST(metrics AS BLOB) {tables} AND run_name = ? ORDER BY id"
        for number, step, data in connection.execute(chosen, runs if run is None else [run]):
            row = _row(_parsed(data, f"{path}:{number}"), f"{path}:{number}")
            yield DataRow(row.location, {**row.fields, LOGGED: step})


def _row(value: Any, location: str) -> DataRow:
    if not isinstance(value, dict):
        raise InputError(f"{location}: expected an object with fields, found {type(value).__name__}")
    return DataRow(location, value)


def _parsed(data: bytes, location: str) -> Any:
    """The value of a JSON text as `parse_dump` reads it."""
    if len(data) > LONGEST_LINE:
        raise InputError(
            f"{location}: longer than {LONGEST_LINE >> 20} MB; write a row a line, as JSON lines or Parquet, "
            f"and of Inspect a {ZIP} log"
        )
    try:
        return parse_dump(data.decode("utf-8-sig"))
    except RecursionError as error:
        raise InputError(f"{location}: nested too deeply; this is no row of rollouts") from error
    except ValueError as error:  # text that is no UTF-8, too
        raise InputError(f"{location}: not JSON ({error}); write one JSON object per line") from error


def _opened(path: Path) -> Any:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")
    return _unzstd(path.open("rb")) if path.suffix.lower() == ".zst" else path.open("rb")


def _unzstd(file: IO[bytes]) -> IO[bytes]:
    try:
        import pyarrow  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("zstandard needs pyarrow (the extra `data`): pip install pyarrow") from error
    return io.BufferedReader(pyarrow.input_stream(file, compression="zstd"))
