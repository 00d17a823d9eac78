"""Cooper: reinforcement learning for language models in which the reward model learns alongside the policy."""

from functools import cache
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


@cache
def _homes() -> dict[str, str]:
    """The module of every public name, as `__init__.pyi` lists them. A rule's processes start without reading it."""
    import ast  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    return {name.name: str(line.module) for line in listed if isinstance(line, ast.ImportFrom) for name in line.names}


def __getattr__(name: str) -> Any:
    """A public name, loaded on first use: `cooper --help` starts without torch."""
    if name not in _homes():
        raise AttributeError(f"module 'cooper_rl' has no attribute {name!r}")
    return getattr(import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
