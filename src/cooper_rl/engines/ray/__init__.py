"""Settings of the engine for several devices and machines: learners and samplers as processes of a Ray cluster."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from cooper_rl.config.base import Config
from cooper_rl.engines import ENGINES
from cooper_rl.engines.ray.samplers import SAMPLERS, NativeSamplers, Samplers
from cooper_rl.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from cooper_rl.engines.base import Sampler
    from cooper_rl.engines.config import LearnerConfig, SamplingParams
    from cooper_rl.engines.ray.learners import RemotePolicyLearner, RemoteRewardModelLearner
    from cooper_rl.engines.ray.ranks import RankGroup
    from cooper_rl.engines.ray.session import Session
    from cooper_rl.engines.ray.vllm_engines import RayEngines


@ENGINES.register
class ClusterEngine(Config):
    """One process a device under Ray, with models sharded over them by FSDP2; needs the extra `cluster`."""

    kind: Literal["cluster"] = "cluster"
    address: str | None = None
    """`auto` or host:port of a Ray cluster that is running; null starts Ray on this machine, for this run alone."""
    policy_ranks: int = Field(default=1, ge=1)
    """Processes that the policy is sharded over; its reference shares them."""
    reward_model_ranks: int = Field(default=0, ge=0)
    """Processes with devices of their own for the reward models, whose update then runs beside the policy's; 0 puts
    the reward models into the policy's processes."""
    gpus_per_rank: float | None = Field(default=None, ge=0)
    """GPUs of a process; null is 1 where the cluster has GPUs, else 0. A fraction lets a process of the policy and one
    of the reward models share a device."""
    cpus_per_rank: float = Field(default=1, gt=0)
    """CPU cores reserved for a process, and, rounded down, its threads for tensor work."""
    samplers: Annotated[Samplers, SAMPLERS] = NativeSamplers()
    """`native` draws in the policy's processes; `vllm` draws on engines with devices of their own."""
    start_timeout_s: float = Field(default=300, gt=0)
    """Seconds to wait for free devices and for the processes to start."""
    call_timeout_s: float = Field(default=1800, gt=0)
    """Seconds without an answer after which a process counts as dead; set it longer than any part of a step."""

    _session: Session | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _devices_are_whole(self) -> Self:
        if max(self.policy_ranks, self.reward_model_ranks) > 1 and 0 < (self.gpus_per_rank or 0) < 1:
            raise ValueError(
                "gpus_per_rank: a fraction would put several processes of one model on a device, which NCCL does not "
                "take; use 1, or one rank each for policy and reward models"
            )
        return self

    @property
    def learns_side_by_side(self) -> bool:
        return self.reward_model_ranks > 0

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """See `Engine`. Raises MissingExtraError without Ray, InputError for 4-bit weights, and as the samplers do."""
        if find_spec("ray") is None:
            raise MissingExtraError("engine: kind: cluster needs Ray (the extra `cluster`): pip install ray")
        _check_adapter(policy)
        self.samplers.check(policy, sampling)

    def open(self, directory: Path) -> None:
        """See `LongLived`. Raises InputError for more processes than devices, and where no devices are free."""
        from cooper_rl.engines.ray.session import Session  # noqa: PLC0415

        self.close()
        self._session = Session(self, directory)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RemotePolicyLearner:
        from cooper_rl.engines.ray.learners import RemotePolicyLearner  # noqa: PLC0415

        if trainable:
            _check_adapter(config)
        return RemotePolicyLearner(self.policy_group, config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RemoteRewardModelLearner:
        from cooper_rl.engines.ray.learners import RemoteRewardModelLearner  # noqa: PLC0415

        if trainable:
            _check_adapter(config)
        return RemoteRewardModelLearner(self.reward_model_group, config, total_steps, trainable)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        return self.samplers.sampler(self._opened(), policy, max_rows)

    @property
    def policy_group(self) -> RankGroup:
        """The processes of the policy, its reference and the sampler."""
        return self._opened().groups[0]

    @property
    def reward_model_group(self) -> RankGroup:
        """The processes of the reward models."""
        return self._opened().groups[-1]

    @property
    def engines(self) -> RayEngines | None:
        """The vLLM engines, if they are the samplers."""
        return self._opened().engines

    def _opened(self) -> Session:
        if self._session is None:
            raise RuntimeError("the cluster engine is not open; call open(directory) first, and close() at the end")
        return self._session


def _check_adapter(config: LearnerConfig) -> None:
    if config.lora is not None and config.lora.load_in_4bit:
        raise InputError(
            f"{config.model}: lora.load_in_4bit: engine kind cluster cannot shard 4-bit weights; set load_in_4bit: "
            "false (float32 weights are divided among the processes), or use kind: local"
        )
