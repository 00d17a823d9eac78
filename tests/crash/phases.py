"""Tells which part of a run a stack belongs to."""

import re

PHASES = [
    ("sample", "cooper_rl/build.py", "take"),
    ("verify", "rewards/rule/routing.py", "verify_groups"),
    ("health", "cooptimization/health.py", ""),
    ("stage 1", "policy/update.py", "update_policy"),
    ("stage 2", "cooptimization/stage2.py", ""),
    ("stage 2", "cooptimization/cooper_reward.py", "update"),
    ("reward", "cooptimization/cooper_reward.py", "score"),
    ("evaluate", "cooper_rl/trainer.py", "evaluate"),
    ("record", "observe/record.py", ""),
    ("checkpoint", "persist/checkpoint.py", "save"),
    ("restore", "cooper_rl/trainer.py", "_restore"),
    ("load", "cooper_rl/build.py", ""),
    ("report", "observe/report/report.py", ""),
]
"""Name, file and function of each part; an empty function means any. The innermost match of a stack counts."""


def phase_of(stack: str) -> str:
    """The part of the run that a stack belongs to. `faulthandler` writes stacks with the innermost frame first."""
    for file, function in re.findall(r'File "(.*)", line \d+ in (\S+)', stack):
        for name, phase_file, phase_function in PHASES:
            if "cooper_rl" in file and file.endswith(phase_file) and phase_function in ("", function):
                return name
    return "other"
