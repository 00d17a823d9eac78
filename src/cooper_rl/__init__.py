"""Cooper: reinforcement learning for language models in which the reward model learns alongside the policy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cooper_rl.config.base import Config
    from cooper_rl.config.registry import Kinds
    from cooper_rl.data.problem import Problem
    from cooper_rl.data.text import fenced
    from cooper_rl.engines.base import Learner, PolicyLearner, RewardModelLearner, Sampler
    from cooper_rl.engines.config import SamplingParams
    from cooper_rl.errors import InputError, MissingExtraError
    from cooper_rl.observe.run_frames import Run, load_run
    from cooper_rl.policy.advantages import ADVANTAGES, Completions
    from cooper_rl.policy.process import PROCESS_CREDITS, ProcessCredit
    from cooper_rl.rewards.base import REWARDS, SHAPINGS, Reward, RewardConfig, Scores, ShapingConfig
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rewards.kinds.judge import JudgedReward, JudgeRewardConfig
    from cooper_rl.rewards.kinds.plain import RuleReward, SumConfig, WeightedSum
    from cooper_rl.rewards.rule.verifier import RuleVerifier
    from cooper_rl.rollouts import Answer, AnswerGroup, Ragged, Rollouts
    from cooper_rl.run_config import RunConfig, build_config, load_config
    from cooper_rl.service.client import AsyncRewardClient, RewardClient
    from cooper_rl.stage2.cooper_reward import CooperReward
    from cooper_rl.stage2.open_step import Scored, Updated
    from cooper_rl.stage2.reward_config import CooperRewardConfig
    from cooper_rl.trainer import CooperTrainer

# Loaded on first use, so that the verifier's worker processes and `cooper --help` start without torch.
_HOMES = {
    "ADVANTAGES": "cooper_rl.policy.advantages",
    "PROCESS_CREDITS": "cooper_rl.policy.process",
    "REWARDS": "cooper_rl.rewards.base",
    "SHAPINGS": "cooper_rl.rewards.base",
    "Answer": "cooper_rl.rollouts",
    "AnswerGroup": "cooper_rl.rollouts",
    "AsyncRewardClient": "cooper_rl.service.client",
    "Completions": "cooper_rl.policy.advantages",
    "Config": "cooper_rl.config.base",
    "CooperReward": "cooper_rl.stage2.cooper_reward",
    "CooperRewardConfig": "cooper_rl.stage2.reward_config",
    "CooperTrainer": "cooper_rl.trainer",
    "InputError": "cooper_rl.errors",
    "JudgeRewardConfig": "cooper_rl.rewards.kinds.judge",
    "JudgedReward": "cooper_rl.rewards.kinds.judge",
    "Kinds": "cooper_rl.config.registry",
    "Learner": "cooper_rl.engines.base",
    "MissingExtraError": "cooper_rl.errors",
    "PolicyLearner": "cooper_rl.engines.base",
    "Problem": "cooper_rl.data.problem",
    "ProcessCredit": "cooper_rl.policy.process",
    "Ragged": "cooper_rl.rollouts",
    "Reward": "cooper_rl.rewards.base",
    "RewardClient": "cooper_rl.service.client",
    "RewardConfig": "cooper_rl.rewards.base",
    "RewardModelLearner": "cooper_rl.engines.base",
    "Rollouts": "cooper_rl.rollouts",
    "RuleReward": "cooper_rl.rewards.kinds.plain",
    "RuleVerifier": "cooper_rl.rewards.rule.verifier",
    "Run": "cooper_rl.observe.run_frames",
    "RunConfig": "cooper_rl.run_config",
    "Sampler": "cooper_rl.engines.base",
    "SamplingParams": "cooper_rl.engines.config",
    "Scored": "cooper_rl.stage2.open_step",
    "Scores": "cooper_rl.rewards.base",
    "ShapingConfig": "cooper_rl.rewards.base",
    "StepContext": "cooper_rl.rewards.context",
    "SumConfig": "cooper_rl.rewards.kinds.plain",
    "Updated": "cooper_rl.stage2.open_step",
    "WeightedSum": "cooper_rl.rewards.kinds.plain",
    "build_config": "cooper_rl.run_config",
    "fenced": "cooper_rl.data.text",
    "load_config": "cooper_rl.run_config",
    "load_run": "cooper_rl.observe.run_frames",
}

__all__ = [
    "ADVANTAGES",
    "PROCESS_CREDITS",
    "REWARDS",
    "SHAPINGS",
    "Answer",
    "AnswerGroup",
    "AsyncRewardClient",
    "Completions",
    "Config",
    "CooperReward",
    "CooperRewardConfig",
    "CooperTrainer",
    "InputError",
    "JudgeRewardConfig",
    "JudgedReward",
    "Kinds",
    "Learner",
    "MissingExtraError",
    "PolicyLearner",
    "Problem",
    "ProcessCredit",
    "Ragged",
    "Reward",
    "RewardClient",
    "RewardConfig",
    "RewardModelLearner",
    "Rollouts",
    "RuleReward",
    "RuleVerifier",
    "Run",
    "RunConfig",
    "Sampler",
    "SamplingParams",
    "Scored",
    "Scores",
    "ShapingConfig",
    "StepContext",
    "SumConfig",
    "Updated",
    "WeightedSum",
    "build_config",
    "fenced",
    "load_config",
    "load_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cooper_rl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
