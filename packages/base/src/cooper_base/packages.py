"""Where Cooper's own packages lie: their code is ours in a traceback, and child processes have to find it."""

import logging
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("cooper_base", "cooper_verify", "cooper_audit", "cooper_rl", "cooper_lab")
"""The packages, from the lowest to the highest. Some of them may not be installed."""


def loggers() -> list[logging.Logger]:
    """The logger of each package, above those of its modules."""
    return [logging.getLogger(name) for name in PACKAGES]


def set_log_level(level: int) -> None:
    """Show our packages' log from this level on."""
    for logger in loggers():
        if logger.level != level:  # to set it empties what every logger of the process remembers
            logger.setLevel(level)


@cache
def package_folders() -> tuple[str, ...]:
    """The folder of each package that is installed."""
    specs = [find_spec(name) for name in PACKAGES]
    return tuple(str(Path(spec.origin).resolve().parent) for spec in specs if spec is not None and spec.origin)


def with_own_paths(environment: dict[str, str]) -> dict[str, str]:
    """An environment in which a child process finds our packages where this process has found them."""
    roots = dict.fromkeys(str(Path(folder).parent) for folder in package_folders())
    paths = [*roots, *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}
