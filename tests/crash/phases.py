"""Which part of a run a stack belongs to."""

import re

PHASES = [
    ("sample", "cooper_rl/step.py", "_sample_groups"),
    ("verify", "rule_verifier.py", "verify_groups"),
    ("reward", "rewards/reward_model.py", "score"),
    ("stage 1", "policy/update.py", "update_policy"),
    ("stage 2", "stage2.py", ""),
    ("health", "cooper_rl/step.py", "_health"),
    ("evaluate", "loop.py", "evaluate"),
    ("record", "recorder.py", ""),
    ("checkpoint", "checkpoint.py", "save"),
    ("restore", "loop.py", "_restore"),
    ("load", "assembly.py", ""),
    ("report", "report.py", ""),
]
"""Name, file and function (any, if empty) of each part; the innermost of a stack counts."""


def phase_of(stack: str) -> str:
    """The part of the run in a stack as `faulthandler` writes it, innermost frame first."""
    for file, function in re.findall(r'File "(.*)", line \d+ in (\S+)', stack):
        for name, phase_file, phase_function in PHASES:
            if "cooper_rl" in file and file.endswith(phase_file) and phase_function in ("", function):
                return name
    return "other"
