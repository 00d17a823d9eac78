"""The engine in this process: torch learners and the native sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.engines import ENGINES, Engine

if TYPE_CHECKING:
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.local.learner import TorchPolicyLearner
    from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
    from cooper_rl.engines.local.sampler import NativeSampler


class LearnsHere:
    """The learners of an engine in this process. Their modules are imported on use, because settings are checked
    without torch."""

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchPolicyLearner:
        from cooper_rl.engines.local.learner import TorchPolicyLearner  # noqa: PLC0415

        return TorchPolicyLearner.from_config(config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchRewardModelLearner:
        from cooper_rl.engines.local.reward_model import TorchRewardModelLearner  # noqa: PLC0415

        return TorchRewardModelLearner.from_config(config, total_steps, trainable)


@ENGINES.register
class LocalEngine(LearnsHere, Engine):
    """Runs everything in this process, on one device. The sampler uses the learner's own weights."""

    kind: Literal["local"] = "local"
    evaluates_folders: ClassVar[bool] = True

    def sampler(self, policy: LearnerConfig, max_rows: int) -> NativeSampler:
        from cooper_rl.engines.local.models import load_tokenizer  # noqa: PLC0415
        from cooper_rl.engines.local.sampler import NativeSampler  # noqa: PLC0415

        return NativeSampler(load_tokenizer(policy.model), max_rows=max_rows, autocast=policy.autocast)
