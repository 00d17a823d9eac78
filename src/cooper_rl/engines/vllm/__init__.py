"""vLLM as the sampler: learners in this process, completions drawn by a vLLM engine here or by a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.engines import ENGINES
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.vllm.config import VllmConfig

if TYPE_CHECKING:
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.local.policy import TorchPolicyLearner
    from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
    from cooper_rl.engines.vllm.sampler import VllmSampler


@ENGINES.register
class VllmEngine(VllmConfig):
    """Learners in this process; vLLM draws, in this process too or behind a `url`."""

    kind: Literal["vllm"] = "vllm"
    """Names this engine."""

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchPolicyLearner:
        """See `Engine`."""
        return LocalEngine().policy(config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchRewardModelLearner:
        """See `Engine`."""
        return LocalEngine().reward_model(config, total_steps, trainable)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> VllmSampler:
        """See `Engine`. `max_rows`, where it is set, bounds `max_num_seqs`."""
        from cooper_rl.engines.vllm.build import build_sampler  # noqa: PLC0415 - settings are checked without torch

        return build_sampler(policy.model, self.at_most(max_rows))
