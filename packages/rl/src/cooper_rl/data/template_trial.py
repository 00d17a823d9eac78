"""Renders a chat template once in a process of its own, to see that it ends before anything that it may harm is loaded.

A template is a program: the sandbox that transformers renders it in keeps it from files and from Python, and neither
from loops within loops nor from text without end. `python -m cooper_rl.data.template_trial` reads it from standard
input, and limits its own time and memory.
"""

import os
import subprocess
import sys
from functools import cache

from cooper_base.packages import with_own_paths

MOST_CHARACTERS = 1_000_000
"""Of a template, and of the trial's prompt. Templates of today have up to 20,000."""
CPU_SECONDS, MEMORY_MIB = 3, 1024
_WALL_S = 120.0
_COSTS = 3
"""The exit code of a trial that took too much."""
_TRIAL = [{"role": "user", "content": "Two words"}]


@cache
def costs_too_much(template: str) -> bool:
    """Whether a prompt of two words takes the template more than `CPU_SECONDS`, `MEMORY_MIB` or `MOST_CHARACTERS`.

    Other faults of the template, which are reported where it is used with real messages, are none of this.
    """
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "cooper_rl.data.template_trial"],
            input=template.encode("utf-8", "replace"),
            env=with_own_paths({**os.environ}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode == _COSTS or ended.returncode < 0


def main() -> int:
    """The exit code of the trial. The system kills a process that exceeds its time."""
    from jinja2 import TemplateError  # noqa: PLC0415 - the caller needs none of this
    from jinja2.ext import loopcontrols  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    template = sys.stdin.buffer.read().decode()
    _limit()
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])

    def refuse(message: object) -> None:
        raise TemplateError(str(message))

    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: "2000-01-01"}
    names = {"messages": _TRIAL, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    length = 0
    try:
        for piece in environment.from_string(template).generate(**names):
            length += len(piece)
            if length > MOST_CHARACTERS:
                return _COSTS
    except (MemoryError, OverflowError):
        return _COSTS
    except Exception:  # noqa: BLE001 - a template may raise anything; see `costs_too_much`
        return 0
    return 0


def _limit() -> None:
    try:
        import resource  # noqa: PLC0415 - not on Windows, where the wall time limits it alone
    except ImportError:
        return
    for kind, value in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY_MIB * 2**20)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


if __name__ == "__main__":
    sys.exit(main())
