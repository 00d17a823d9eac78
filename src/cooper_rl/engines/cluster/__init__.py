"""The engine of several devices and machines: sharded learners and samplers as processes of a Ray cluster."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from cooper_rl.config.base import Config
from cooper_rl.engines import ENGINES
from cooper_rl.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from cooper_rl.engines.cluster.group import RankGroup
    from cooper_rl.engines.cluster.learners import RemotePolicyLearner, RemoteRewardModelLearner
    from cooper_rl.engines.cluster.sampler import RemoteSampler
    from cooper_rl.engines.cluster.session import Session
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.sampling import SamplingParams


@ENGINES.register
class ClusterEngine(Config):
    """One process a device under Ray, models sharded over them with FSDP2; needs the extra `cluster`."""

    kind: Literal["cluster"] = "cluster"
    """Names this engine."""
    address: str | None = None
    """`auto` or host:port of a Ray cluster that is running; null starts Ray on this machine, for this run alone."""
    policy_ranks: int = Field(default=1, ge=1)
    """Processes that the policy is sharded over; its reference shares them, and each samples."""
    reward_model_ranks: int = Field(default=0, ge=0)
    """Processes with devices of their own for the reward models, whose update then runs while the policy's does; 0
    puts them beside the policy, into its processes."""
    gpus_per_rank: float | None = Field(default=None, ge=0)
    """GPUs of a process; null is 1 where the cluster has GPUs, else 0. A fraction lets a process of the policy and one
    of the reward models share a device."""
    cpus_per_rank: float = Field(default=1, gt=0)
    """CPU cores reserved for a process, and, rounded down, its threads for tensor work."""
    start_timeout_s: float = Field(default=300, gt=0)
    """Seconds to wait for free devices and for the processes to start."""
    call_timeout_s: float = Field(default=1800, gt=0)
    """Seconds after which a process that does not answer counts as dead: longer than any part of a step takes."""

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
        """See `LongLived`."""
        return self.reward_model_ranks > 0

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """See `Engine`. Raises InputError for 4-bit weights, and MissingExtraError without Ray."""
        if find_spec("ray") is None:
            raise MissingExtraError("engine: kind: cluster needs Ray (the extra `cluster`): pip install ray")
        _check_adapter(policy)

    def open(self, directory: Path) -> None:
        """See `LongLived`. Raises InputError for more processes than devices, and where none are free."""
        from cooper_rl.engines.cluster.session import Session  # noqa: PLC0415

        self.close()
        self._session = Session(self, directory)

    def close(self) -> None:
        """See `LongLived`."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RemotePolicyLearner:
        """See `Engine`."""
        from cooper_rl.engines.cluster.learners import RemotePolicyLearner  # noqa: PLC0415

        if trainable:
            _check_adapter(config)
        return RemotePolicyLearner(self.policy_group, config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RemoteRewardModelLearner:
        """See `Engine`."""
        from cooper_rl.engines.cluster.learners import RemoteRewardModelLearner  # noqa: PLC0415

        if trainable:
            _check_adapter(config)
        return RemoteRewardModelLearner(self.reward_model_group, config, total_steps, trainable)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> RemoteSampler:
        """See `Engine`."""
        from cooper_rl.engines.cluster.sampler import RemoteSampler  # noqa: PLC0415

        return RemoteSampler(self.policy_group, policy, max_rows)

    @property
    def is_open(self) -> bool:
        """Whether its processes are there."""
        return self._session is not None

    @property
    def policy_group(self) -> RankGroup:
        """The processes of the policy, its reference and the sampler."""
        return self._opened().groups[0]

    @property
    def reward_model_group(self) -> RankGroup:
        """The processes of the reward models."""
        return self._opened().groups[-1]

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
