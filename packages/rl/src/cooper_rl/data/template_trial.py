"""Renders a chat template once in a process of its own, to see that it ends before anything that it may harm is loaded.

A template is a program: the sandbox that transformers renders it in keeps it from files and from Python, and neither
from loops within loops nor from text without end. `python -m cooper_rl.data.template_trial` limits its own time and
memory before it renders.
"""

import json
import sys
from contextlib import closing
from functools import cache

from cooper_verify.rules.child import ChildProcess, limit, reply_to_parent

MOST_CHARACTERS = 1_000_000
"""Of a template, and of the trial's prompt. Templates of today have up to 20,000."""
CPU_SECONDS, MEMORY_MIB = 3, 1024
_WALL_S = 120.0
_TRIAL = [{"role": "user", "content": "Two words"}]


@cache
def costs_too_much(template: str) -> bool:
    """Whether a prompt of two words takes the template more than `CPU_SECONDS`, `MEMORY_MIB` or `MOST_CHARACTERS`.

    Other faults of the template, which are reported where it is used with real messages, are none of this.
    """
    with closing(ChildProcess("cooper_rl.data.template_trial")) as trial:
        return trial.exchange(template, 1, _WALL_S) != [False]


def main() -> None:
    """Reply whether the template of the first line costs too much. The system kills a process that exceeds its time."""
    from jinja2 import TemplateError  # noqa: PLC0415 - the caller needs none of this
    from jinja2.ext import loopcontrols  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    reply_to_parent({"ready": True})
    template = json.loads(sys.stdin.readline())
    limit("RLIMIT_CPU", CPU_SECONDS)
    limit("RLIMIT_AS", MEMORY_MIB * 2**20)
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
                break
    except (MemoryError, OverflowError):
        length = MOST_CHARACTERS + 1
    except Exception:  # noqa: BLE001 - a template may raise anything; see `costs_too_much`
        length = 0
    reply_to_parent(length > MOST_CHARACTERS)


if __name__ == "__main__":
    main()
