"""Loads what a configuration names as `package.module:name`, from installed packages or the working folder."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cooper_rl.errors import InputError

MOVED = {
    "cooper_rl.problems.arithmetic": "cooper_lab.arithmetic.problems",
    "cooper_rl.problems.arithmetic_corruption": "cooper_lab.arithmetic.corruption",
    "cooper_rl.data.arithmetic.problems": "cooper_lab.arithmetic.problems",
    "cooper_rl.data.arithmetic.corruption": "cooper_lab.arithmetic.corruption",
    "cooper_rl.policy.losses": "cooper_rl.losses.policy",
    "cooper_rl.engines.cluster": "cooper_rl.engines.ray",
    "cooper_rl.engines.sampling": "cooper_rl.engines.config",
}
"""Modules that configurations and parts of earlier versions name, and their present names."""


def load_object(path: str, noun: str = "object") -> Any:
    """Import the object at `package.module:name`. Messages call it a `noun`.

    Modules in the working folder are found as with `python -m`, even by the `cooper` command. The folder stays last on
    the module path, for what they import later and for the processes that this one starts.
    Raises InputError for a malformed path, and for a module or name that does not exist.
    """
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise InputError(f"{path!r}: write a {noun} as package.module:{noun}")
    if module_name in MOVED:
        raise InputError(f"{path}: {module_name} has moved; write {MOVED[module_name]}:{name}")
    try:
        with _working_folder_first():
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name in MOVED:
            raise InputError(f"{path}: its import of {error.name} fails; write {MOVED[error.name]}") from error
        raise InputError(
            f"{path}: {error}; is the module installed, on PYTHONPATH or in the working folder {Path.cwd()}?"
        ) from error
    if not hasattr(module, name):
        raise InputError(f"{path}: {name} does not exist in {module.__name__}")
    return getattr(module, name)


def load_function(path: str, parameters: Sequence[str]) -> Callable[..., Any]:
    """Import the function at `package.module:function`. It must take `parameters` as positional arguments.

    Raises InputError like `load_object`, and if the object is not callable or takes other arguments.
    """
    function = load_object(path, "function")
    if not callable(function):
        raise InputError(f"{path}: is not callable")
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        raise InputError(f"{path}: must take ({', '.join(parameters)}): {error}") from error
    except ValueError:  # built-in functions have no signature to look at
        return function
    return function


@contextmanager
def _working_folder_first() -> Iterator[None]:
    """Put the working folder first on the module path, which `python -m` does but an installed script does not.

    Afterwards it is last, where it hides no other module.
    """
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
