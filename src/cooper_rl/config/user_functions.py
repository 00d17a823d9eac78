"""Functions that a configuration names: `package.module:function`, from installed packages or the working folder."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cooper_rl.errors import InputError


def load_function(path: str, parameters: Sequence[str]) -> Callable[..., Any]:
    """Import `package.module:function`; it must take `parameters` as positional arguments.

    Modules of the working folder are found as with `python -m`, also by the `cooper` command.
    Raises InputError for a malformed path, a module or name that does not exist, or a function of other arity.
    """
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise InputError(f"{path!r}: name a function as package.module:function")
    try:
        with _working_folder_first():
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path}: {error}; is the module installed, on PYTHONPATH or in the working folder {Path.cwd()}?"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        problem = "is not callable" if hasattr(module, name) else "does not exist"
        raise InputError(f"{path}: {name} {problem} in {module.__name__}")
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        raise InputError(f"{path}: must take ({', '.join(parameters)}): {error}") from error
    except ValueError:  # built-in functions have no signature to look at
        return function
    return function


@contextmanager
def _working_folder_first() -> Iterator[None]:
    """A script of an installed package, unlike `python -m`, does not look for modules where the user stands."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
