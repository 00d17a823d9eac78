"""Tells which part of a run a stack belongs to."""

import inspect
import re
from collections.abc import Callable
from types import ModuleType

import cooper_audit.report.report
import cooper_rl.reward.cooptimization
import cooper_rl.run.recorder
from cooper_rl import CooperReward, CooperTrainer
from cooper_rl.policy.rollout_source import RolloutSource
from cooper_rl.policy.update import update_policy
from cooper_rl.record.checkpoint import CheckpointStore
from cooper_rl.reward.scored import ProbeSet, step_health
from cooper_rl.run.build import assemble
from cooper_verify.rules.verifier import Verifier

PHASES: list[tuple[str, ModuleType | Callable]] = [
    ("sample", RolloutSource.take),
    ("verify", Verifier.verify_groups),
    ("health", step_health),
    ("health", ProbeSet.measure),
    ("policy", update_policy),
    ("cooptimization", cooper_rl.reward.cooptimization),
    ("cooptimization", CooperReward.update),
    ("reward", CooperReward.score),
    ("evaluate", CooperTrainer.evaluate),
    ("record", cooper_rl.run.recorder),
    ("checkpoint", CheckpointStore.save),
    ("restore", CooperTrainer._restore),
    ("load", assemble),
    ("report", cooper_audit.report.report),
]
"""Name and function of each part, or the module of which any function counts. The innermost match of a stack counts."""

_PLACES = [
    (name, inspect.getsourcefile(part), "" if isinstance(part, ModuleType) else part.__name__) for name, part in PHASES
]


def phase_of(stack: str) -> str:
    """The part of the run that a stack belongs to. `faulthandler` writes stacks with the innermost frame first."""
    for file, function in re.findall(r'File "(.*)", line \d+ in (\S+)', stack):
        for name, phase_file, phase_function in _PLACES:
            if file == phase_file and phase_function in ("", function):
                return name
    return "other"
