"""How a run was started, each time: the command, the versions and the machine."""

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "numpy")


def record_session(directory: Path, completed_steps: int, test_problems: Sequence[int]) -> None:
    """Append a line about this start of the run to `sessions.jsonl`.

    `completed_steps` is the step after which the run begins or goes on; `test_problems` are the sizes of its sets of
    held-out problems, that of `test_problems` first.
    """
    session: dict[str, Any] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "after_step": completed_steps,
        "command": sys.argv,
        "python": platform.python_version(),
        **{package: found for package in PACKAGES if (found := _version(package))},
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "test_problems": test_problems[0] if test_problems else None,
    }
    with (directory / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(session) + "\n")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # numpy may come with torch in a form of its own
        return None
