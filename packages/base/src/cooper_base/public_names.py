"""The public names of a package, each loaded on first use: a command starts without the libraries of the others."""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose `__init__.pyi`, beside `file`, imports every public name.

    The list is read at the first name that is asked for: the processes of a rule start without it.
    """

    @cache
    def homes() -> dict[str, str]:
        lines = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
        return {
            name.name: str(line.module) for line in lines if isinstance(line, ast.ImportFrom) for name in line.names
        }

    def get(name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    return get, lambda: sorted({"__version__", *homes()})
