"""Attacks a grader: what it accepts that is wrong.

`cooper attack` is this package on a command line: `open_grader`, `attack_settings`, `read_attack_problems` and
`attack`. A policy that trains against the grader, and the repair of a reward model, come with `cooper-rl`.
"""

from cooper_audit.attack.attack import AttackResult, PatternResult, attack
from cooper_audit.attack.problems import attack_settings, read_attack_problems
from cooper_audit.attack.results import Finding, Repair

__all__ = [
    "AttackResult",
    "Finding",
    "PatternResult",
    "Repair",
    "attack",
    "attack_settings",
    "read_attack_problems",
]
