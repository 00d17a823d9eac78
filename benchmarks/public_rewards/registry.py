"""The public rewards by name, and how their modules are imported without what they do not use.

Runs in the environment of one package, without Cooper and without torch.
"""

import asyncio
import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

Score = Callable[[str, Any, str], Any]
"""(question, reference, completion) -> what the reward pays."""
REWARDS: dict[str, tuple[str, Callable[[], Score]]] = {}
"""What each reward is for, and how it is made, by `package:name`."""


def reward(name: str, what: str) -> Callable[[Callable[[], Score]], Callable[[], Score]]:
    """Registers a function that makes a reward."""

    def add(make: Callable[[], Score]) -> Callable[[], Score]:
        REWARDS[name] = what, make
        return make

    return add


def rewards_of(
    package: str, make: Callable[..., Score], rows: Sequence[tuple[str, str, tuple[Any, ...], dict[str, Any]]]
) -> None:
    """Registers one reward for each (name, what it is for, arguments of `make`, options of `make`)."""
    for name, what, arguments, options in rows:
        REWARDS[f"{package}:{name}"] = what, functools.partial(make, *arguments, **options)


def bare(package: str) -> None:
    """Lets modules of a package be imported without its `__init__.py`, where that imports torch or a server."""
    parts = package.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if name in sys.modules:
            continue
        folder = next(folder for entry in sys.path if (folder := Path(entry, *parts[:end])).is_dir())
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        if end > 1:
            setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], module)


def stub(name: str, **values: Any) -> None:
    """Stands in for a module of which the reward needs nothing but these values."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)


class _AnythingClass(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=_AnythingClass):
    """A class, a base class, a decorator or a function that is imported and not used for a score."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return arguments[0] if arguments else self

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class _StandIn(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def absent(*names: str) -> None:
    """Stands in for modules that the reward's module imports and does not use for its score, such as torch."""
    sys.meta_path.insert(0, _Finder(names))


def found_at(path: str) -> Any:
    """What stands at `module:name` or `module:Class.method`."""
    module, _, names = path.partition(":")
    return functools.reduce(getattr, names.split("."), importlib.import_module(module))


def of_module(path: str, **options: Any) -> Score:
    """A function of (completion, reference) at `module:name`."""
    function = found_at(path)
    return lambda question, reference, completion: function(completion, reference, **options)


def alone(folder: str, path: str, away: tuple[str, ...] = (), turned: bool = False, **options: Any) -> Score:
    """A function of (completion, reference), or with `turned` of (reference, completion), in a package whose
    `__init__.py` is not run and whose imports `away` are stood in for."""
    bare(folder)
    absent(*away)
    score = of_module(path, **options)
    return (lambda question, reference, completion: score(question, completion, reference)) if turned else score


def batched(function: Callable[..., Any], key: str = "answer", chats: bool = False, **options: Any) -> Score:
    """A function in TRL's style, of lists by name, with the reference under `key`."""

    def score(question: str, reference: str, completion: str) -> Any:
        given = [{"role": "assistant", "content": completion}] if chats else completion
        return function(prompts=[question], completions=[given], **{key: [reference]}, **options)[0]

    return score


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def waited(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine."""
    return _loop().run_until_complete(work)
