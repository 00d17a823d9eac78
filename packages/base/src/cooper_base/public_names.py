"""The public names of a package, each loaded on first use: a command starts without the libraries of the others."""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from cooper_base.packages import package_folders


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose `__init__.pyi`, beside `file`, imports every public name.

    The list is read at the first name that is asked for: the processes of a rule start without it.
    """

    @cache
    def homes() -> dict[str, str]:
        return _homes(Path(file).with_suffix(".pyi"))

    def get(name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    return get, lambda: sorted({"__version__", *homes()})


def public_name(record: type) -> str:
    """What a user imports a class as: `cooper_verify.RuleConfig`, from the lowest package among whose public names it
    is, or else its module and name."""
    for folder in package_folders():
        listed = Path(folder) / "__init__.pyi"
        if listed.exists() and _homes(listed).get(record.__name__) == record.__module__:
            return f"{Path(folder).name}.{record.__name__}"
    return f"{record.__module__}.{record.__name__}"


def _homes(listed: Path) -> dict[str, str]:
    """The module of each public name, by name."""
    lines = ast.parse(listed.read_text(encoding="utf-8")).body
    return {name.name: str(line.module) for line in lines if isinstance(line, ast.ImportFrom) for name in line.names}
