"""Cooper: reinforcement learning for language models in which the reward model learns alongside the policy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cooper_rl.errors import InputError, MissingExtraError
    from cooper_rl.loop import CooperTrainer
    from cooper_rl.problems.problem import Problem
    from cooper_rl.rewards.rule_verifier import RuleVerifier
    from cooper_rl.runs.config import RunConfig
    from cooper_rl.runs.loading import build_config, load_config
    from cooper_rl.sampling.sampler import Completion, Group, SamplingParams

# Loaded on first use, so that the verifier's worker processes and `cooper --help` start without torch.
_HOMES = {
    "Completion": "cooper_rl.sampling.sampler",
    "CooperTrainer": "cooper_rl.loop",
    "Group": "cooper_rl.sampling.sampler",
    "InputError": "cooper_rl.errors",
    "MissingExtraError": "cooper_rl.errors",
    "Problem": "cooper_rl.problems.problem",
    "RuleVerifier": "cooper_rl.rewards.rule_verifier",
    "RunConfig": "cooper_rl.runs.config",
    "SamplingParams": "cooper_rl.sampling.sampler",
    "build_config": "cooper_rl.runs.loading",
    "load_config": "cooper_rl.runs.loading",
}

__all__ = [
    "Completion",
    "CooperTrainer",
    "Group",
    "InputError",
    "MissingExtraError",
    "Problem",
    "RuleVerifier",
    "RunConfig",
    "SamplingParams",
    "build_config",
    "load_config",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cooper_rl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
