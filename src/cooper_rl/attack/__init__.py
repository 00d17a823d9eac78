"""Attacks a reward: what it pays that is wrong, what a small policy finds in it, and a repair of a reward model.

`cooper attack` is this package on a command line: `attack_settings`, `open_reward`, `attack`, `adapt` and `repair`.
"""

from cooper_rl.attack.adapt import Finding, adapt, adapt_settings
from cooper_rl.attack.attack import AttackResult, PatternResult, attack
from cooper_rl.attack.repair import Repair, repair, repair_settings
from cooper_rl.attack.rewards import AttackedReward, attack_settings, open_reward, read_attack_problems

__all__ = [
    "AttackResult",
    "AttackedReward",
    "Finding",
    "PatternResult",
    "Repair",
    "adapt",
    "adapt_settings",
    "attack",
    "attack_settings",
    "open_reward",
    "read_attack_problems",
    "repair",
    "repair_settings",
]
