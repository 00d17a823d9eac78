"""What a configuration names from elsewhere: functions and classes of the user's, and what installed packages add.

Entry points are in the groups `cooper.commands`, `cooper.verifyrm` (commands of `cooper verifyrm`),
`cooper.kinds` (see `Kinds`) and `cooper.problems` (for `problems.source`: a function of split, count and seed).
"""

import asyncio
import importlib
import importlib.util
import inspect
import sys
import weakref
import zlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from cooper_base.errors import InputError, MissingExtraError, did_you_mean, exit_fault, no_file

LISTED = 20
"""Most functions of a file in a message."""


@contextmanager
def exits_are_faults(path: str) -> Iterator[None]:
    """Makes a RuntimeError of a `sys.exit` of the user's code at this path: a command would end as if it were done."""
    try:
        yield
    except SystemExit as error:
        raise exit_fault(path, error) from error


def load_object(path: str, noun: str = "object") -> Any:
    """Import the object at `package.module:name` or `file.py:name`. Messages call it a `noun`. Raises InputError if it
    does not exist.

    Modules in the working folder are found as with `python -m`. It stays last on the module path, for what they import
    later and for the processes that this one starts.
    """
    module_name, colon, name = path.partition(":")
    if module_name.endswith(".py") and not name:
        with exits_are_faults(path):
            names = _names_in(_module_of_file(module_name))
        listed = f"name one of its own: {', '.join(f'{module_name}:{own}' for own in names)}" if names else "write one"
        raise InputError(f"{path}: is a file and no {noun}; {listed}")
    if not colon or not module_name or not name:
        raise InputError(f"{path!r}: write a {noun} as package.module:{noun}")
    if module_name.endswith(".py"):
        with exits_are_faults(path):
            return _named(path, _module_of_file(module_name), name)
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        with exits_are_faults(path):
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path}: {error}; is the module installed, on PYTHONPATH or in the working folder {folder}?"
        ) from error
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:  # last, it hides no other module
            sys.path.append(folder)
    return _named(path, module, name)


def _named(path: str, module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        names = _names_in(module)
        remedy = did_you_mean(name, names, f"it has {', '.join(names) or 'nothing that can be called'}")
        raise InputError(f"{path}: {name} does not exist in {path.partition(':')[0]}; {remedy}")
    return getattr(module, name)


def _names_in(module: ModuleType) -> list[str]:
    """The functions and classes that a module defines for others, in its order, at most `LISTED`."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in own if callable(getattr(module, name)) and not name.startswith("_")][:LISTED]


def _module_of_file(file: str) -> ModuleType:
    """The module in a Python file, which is run once in a process. What lies beside the file can be imported by it."""
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise no_file(Path(file).expanduser(), (".py",))
    name = f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"  # never that of an installed module
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]  # the next attempt runs it again
            raise
    return sys.modules[name]


def source_file(path: str) -> Path | None:
    """The file with the function at `package.module:function` or `file.py:function`; None for a built-in."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(load_object(path, "function")))
    except TypeError:  # of an object that is called, or built in
        file = None
    return None if file is None else Path(file)


def load_function(path: str, parameters: Sequence[str] | None) -> Callable[..., Any]:
    """Import the function at `package.module:function`. Raises InputError if it does not take these `parameters`; with
    None it may take any.
    """
    function = load_object(path, "function")
    if not callable(function):
        raise InputError(f"{path}: is not callable")
    if parameters is not None:
        _check_parameters(path, function, parameters)
    return function


def _check_parameters(path: str, function: Callable[..., Any], parameters: Sequence[str]) -> None:
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        raise InputError(f"{path}: must take ({', '.join(parameters)}): {error}") from error
    except ValueError:  # built-in functions have no signature to look at
        pass


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, or of calling the objects of a class; none of a built-in function."""
    try:
        if not isinstance(function, type):
            return [*inspect.signature(function).parameters.values()]
        return [*inspect.signature(getattr(function, "__call__")).parameters.values()][1:]  # noqa: B004, B009
    except ValueError:
        return []


def made(path: str, of: type) -> Any:
    """An object of the user's class. Raises InputError if it is not made without arguments."""
    try:
        inspect.signature(of).bind()
    except TypeError as error:
        raise InputError(
            f"{path}: its objects are made with arguments ({error}); give each a default, or name an object of the file"
        ) from error
    except ValueError:  # a built-in class has no signature to look at
        pass
    with exits_are_faults(path):
        return of()


class UserFunction:
    """The function at `package.module:function`, plain or `async def`, or a class whose objects are called like one and
    are made without arguments. Raises InputError like `load_function`."""

    def __init__(self, path: str, parameters: Sequence[str] | None) -> None:
        self._path, function = path, load_function(path, None)
        self._call: Callable[..., Any] = made(path, function) if isinstance(function, type) else function
        if not callable(self._call):
            raise InputError(f"{path}: its objects are not callable; write __call__, or name a function")
        if parameters is not None:
            _check_parameters(path, self._call, parameters)
        either = self._call, getattr(self._call, "__call__", None)  # noqa: B004 - of an object that is callable
        self._loop = EventLoop() if any(map(inspect.iscoroutinefunction, either)) else None

    def results(self, calls: Sequence[tuple[Any, ...] | dict[str, Any]]) -> list[Any]:
        """What it returns for each tuple of arguments, or arguments by name. All calls of an `async def` run
        concurrently. Raises what it raises, and RuntimeError for its `sys.exit`."""

        if self._loop is None:
            with exits_are_faults(self._path):
                return [self._returned(arguments) for arguments in calls]

        async def returned(arguments: tuple[Any, ...] | dict[str, Any]) -> Any:
            with exits_are_faults(self._path):  # in the task, since it would end the loop
                return await self._returned(arguments)

        async def gathered() -> list[Any]:
            return await asyncio.gather(*map(returned, calls))

        return self._loop.run(gathered)

    def _returned(self, arguments: tuple[Any, ...] | dict[str, Any]) -> Any:
        return self._call(**arguments) if isinstance(arguments, dict) else self._call(*arguments)


class EventLoop:
    """An event loop in its own thread, so that it also works if the caller already runs in a loop (a notebook)."""

    def __init__(self) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        Thread(target=lambda: asyncio.run(_serve(started)), name="user-function", daemon=True).start()
        self._loop, closing = started.result()
        # Garbage collection may call this at any place of any thread, so it must not wait for a lock.
        weakref.finalize(self, _close, self._loop, closing)

    def run(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of the coroutine that `start` creates. Raises what it raises."""

        async def call() -> tuple[Any, BaseException | None]:
            try:
                return await start(), None
            except BaseException as error:  # noqa: BLE001 - raised below; a SystemExit here would end the loop
                return None, error

        result, error = asyncio.run_coroutine_threadsafe(call(), self._loop).result()
        if error is not None:
            raise error
        return result


async def _serve(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    closing = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), closing))
    await closing.wait()


def _close(loop: asyncio.AbstractEventLoop, closing: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(closing.set)


@cache
def added(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, sorted."""
    return {entry.name: entry for entry in sorted(entry_points(group=f"cooper.{group}"), key=lambda entry: entry.name)}


def load_added(group: str, name: str) -> Any:
    """The object behind one entry point. Raises InputError if no installed package adds it."""
    if name not in added(group):
        raise InputError(f"{name}: no installed package adds it to cooper.{group}; install the one that does")
    return added(group)[name].load()


def brought_by_training(group: str, name: str, what: str) -> Any:
    """The object behind an entry point of the package that trains, which `what` needs. Raises MissingExtraError without
    that package."""
    if name not in added(group):
        raise MissingExtraError(f"{what} needs the package cooper-rl, which trains; install it beside this one")
    return load_added(group, name)
