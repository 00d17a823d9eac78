"""The kinds of error that a user can act on, the remedy for a mistyped name, and where a user's code failed."""

import os
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from cooper_base.packages import package_folders

Value = TypeVar("Value")

DEBUG = "COOPER_DEBUG"
"""An environment variable. If it is set, tracebacks of a user's code show the frames of this package too."""


MOST_CHARACTERS = 10_000
"""Of a message: a file or a database may hold a hundred megabytes of names."""


def bounded(message: str) -> str:
    """The message, without its middle where it is longer than `MOST_CHARACTERS`: a remedy stands at the end."""
    if len(message) <= MOST_CHARACTERS:
        return message
    half = MOST_CHARACTERS // 2
    return f"{message[:half]} […{len(message) - 2 * half:,} characters…] {message[-half:]}"


class InputError(ValueError):
    """Bad input: a config key, a data row, a model folder. The command line prints it and exits with code 2.

    The message names the file, line and field, if there are any, and the remedy. It is `bounded`.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(bounded(message))


class MissingExtraError(ImportError):
    """An optional library is missing. The message says which extra to install."""


class EngineLost(RuntimeError):
    """A process of the engine is dead or silent, and its state is gone: open the engine again, load a checkpoint."""


def value_or_raise(outcome: Value | Exception) -> Value:
    """One of several outcomes, each a value or the exception in its place, which this raises."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def exit_fault(where: str, error: SystemExit) -> RuntimeError:
    """The fault that a `sys.exit` in a user's code is. `where` names the code."""
    return RuntimeError(f"{where}: called sys.exit({error.code!r}), which ends no command; raise an exception instead")


def with_causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that led to it, the last one first."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def did_you_mean(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The known name nearest to a mistyped one, as a question, or else another remedy."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {nearest[0]!r}?" if nearest else otherwise


_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "scripts")})


def users_traceback(error: BaseException) -> TracebackType | None:
    """The frames of an exception that are neither of this package nor of a library; None if there are none."""
    frames, traceback = [], error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        of_library = {"site-packages", "dist-packages"} & {*Path(file).parts}
        if not of_library and not file.startswith((*package_folders(), *_LIBRARIES, "<frozen")):
            frames.append(traceback)
        traceback = traceback.tb_next
    shortened = None
    for frame in reversed(frames):
        shortened = TracebackType(shortened, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shortened


def users_function(error: BaseException) -> str | None:
    """The function of the user's code in which an exception began, and the line that raised it:
    `rewards:brevity, rewards.py:12`. None if no frame is the user's."""
    first = last = users_traceback(error)
    if first is None or last is None:
        return None
    while last.tb_next is not None:
        last = last.tb_next
    module, code = first.tb_frame.f_globals.get("__name__", "?"), first.tb_frame.f_code
    return f"{module}:{code.co_qualname}, {Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"


def show_users_frames(error: BaseException, full: str = f"{DEBUG}=1 shows them") -> None:
    """Leave an exception of the user's code its own frames alone, and add a note that names the function and says where
    the other frames are (`full`). Any other exception, and any with COOPER_DEBUG set, stays as it is.
    """
    own = users_traceback(error)
    if own is None or not isinstance(error, Exception) or os.environ.get(DEBUG):
        return
    if not hasattr(error, "__notes__"):
        error.add_note(f"raised in {users_function(error)}; frames of Cooper and of libraries are left out: {full}")
    error.__traceback__ = own


def no_file(path: Path, suffixes: Collection[str], what: str = "file") -> InputError:
    """The error of a path that leads to no file: to a folder, or to nothing. `what` says which file was expected, and
    `suffixes` which a file has that may be meant."""
    if path.is_dir():
        refuse_saved_data_set(path)
        inner = next((file for file in sorted(path.iterdir()) if file.suffix in suffixes and file.is_file()), None)
        return InputError(f"{path}: is a folder and not a {what}; name a file{f', such as {inner}' if inner else ''}")
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()] if path.parent.is_dir() else []
    nearest = get_close_matches(path.name, names, n=1)
    remedy = f"did you mean {path.parent / nearest[0]}?" if nearest else "check its name and folder"
    return InputError(f"{path}: no such {what}; {remedy}")


def refuse_saved_data_set(path: Path) -> None:
    """Raises InputError for a folder that `save_to_disk` of datasets has written: its JSON holds no rows."""
    for name, split in (("dataset_info.json", ""), ("dataset_dict.json", "['train']")):
        if (path / name).is_file():
            raise InputError(
                f"{path}: is a data set that datasets has saved; write its rows to a file: "
                f"datasets.load_from_disk({str(path)!r}){split}.to_parquet('rows.parquet')"
            )


def no_folder(path: Path, remedy: str) -> InputError:
    """The error of a path that leads to no folder: to a file, or to nothing."""
    missing = "is a file and not a folder" if path.is_file() else "no such folder"
    return InputError(f"{path}: {missing}; {remedy}")
