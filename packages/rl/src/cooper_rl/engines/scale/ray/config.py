"""Settings of the engine for several devices and machines, and of its samplers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self

from pydantic import Field, PrivateAttr, model_validator

from cooper_base.config.base import Config, Kinds
from cooper_base.errors import InputError, MissingExtraError
from cooper_rl.engines import ENGINES, Engine
from cooper_rl.engines.scale.vllm import VllmConfig

if TYPE_CHECKING:
    from cooper_rl.engines.base import Sampler
    from cooper_rl.engines.config import LearnerConfig, SamplingParams
    from cooper_rl.engines.scale.ray.ranks import (
        RankGroup,
        RemotePolicyLearner,
        RemoteRewardModelLearner,
        RemoteSampler,
    )
    from cooper_rl.engines.scale.ray.session import Session
    from cooper_rl.engines.scale.vllm.sampler import VllmSampler

SAMPLERS = Kinds("sampler", "cooper_rl.engines.scale.ray.config", ["check", "processes", "sampler"], default="native")


@dataclass(frozen=True)
class Resources:  # of one process
    cpus: float
    gpus: float


class Samplers(Protocol):
    """The settings of a cluster's samplers; `check` and `sampler` are as in `Engine`."""

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None: ...

    def processes(self, on_gpus: bool, cpus: float) -> tuple[int, Resources]: ...  # besides the policy's; what each has

    def sampler(self, session: Session, policy: LearnerConfig, max_rows: int) -> Sampler: ...


@SAMPLERS.register
class NativeSamplers(Config):
    """Cooper's own sampler: each process of the policy draws for its share of the prompts, with all weights."""

    kind: Literal["native"] = "native"

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None: ...

    def processes(self, on_gpus: bool, cpus: float) -> tuple[int, Resources]:
        return 0, Resources(cpus=0, gpus=0)

    def sampler(self, session: Session, policy: LearnerConfig, max_rows: int) -> RemoteSampler:
        from cooper_rl.engines.scale.ray.ranks import RemoteSampler  # noqa: PLC0415

        return RemoteSampler(session.groups[0], policy, max_rows)


@SAMPLERS.register
class VllmSamplers(VllmConfig):
    """vLLM engines, each in a process with devices of its own, or a server that is running already.

    `timeout_s` also limits every other call to an engine except drawing.
    """

    kind: Literal["vllm"] = "vllm"
    engines: int = Field(default=1, ge=1)
    """Engines, each with `tensor_parallel` GPUs of one machine where the cluster has any; prompts are divided over
    them, with all samples of a prompt on one engine. With `url` it is 1."""

    @model_validator(mode="after")
    def _fits_a_cluster(self) -> Self:
        if self.sleep:
            raise ValueError("sleep: the engines of a cluster have devices of their own; leave it out")
        if self.url is not None and self.engines > 1:
            raise ValueError("engines: url names one server, which may itself hold several; leave engines out")
        return self

    def processes(self, on_gpus: bool, cpus: float) -> tuple[int, Resources]:
        each = Resources(cpus, gpus=float(self.tensor_parallel) if on_gpus else 0.0)
        return 0 if self.url else self.engines, each

    def sampler(self, session: Session, policy: LearnerConfig, max_rows: int) -> VllmSampler:
        from cooper_rl.engines.scale.ray.vllm_engines import connect_ranks  # noqa: PLC0415
        from cooper_rl.engines.scale.vllm.sampler import build_sampler  # noqa: PLC0415

        engines: Any = session.engines  # None where a server draws, and nothing is started
        backend, config = "nccl" if session.on_gpus else "gloo", self.at_most(max_rows)
        return build_sampler(policy, config, backend, lambda *given: engines.start(*given), connect_ranks)


@ENGINES.register
class ClusterEngine(Engine):
    """One process a device under Ray, with models sharded over them by FSDP2; needs the extra `cluster`."""

    kind: Literal["cluster"] = "cluster"
    address: str | None = None
    """`auto` or host:port of a Ray cluster that is running; null starts Ray on this machine, for this run alone."""
    policy_ranks: int = Field(default=1, ge=1)
    """Processes that the policy is sharded over; its reference shares them."""
    reward_model_ranks: int = Field(default=0, ge=0)
    """Processes with devices of their own for the reward models, whose update then runs beside the policy's; 0 puts
    the reward models into the policy's processes."""
    cpus_per_rank: float = Field(default=1, gt=0)
    """CPU cores reserved for each process, a vLLM engine too, and, rounded down, its threads for tensor work."""
    samplers: Annotated[Samplers, SAMPLERS] = NativeSamplers()
    """`native` draws in the policy's processes; `vllm` draws on engines with devices of their own."""

    _session: Session | None = PrivateAttr(default=None)

    @property
    def draws_elsewhere(self) -> bool:
        return not isinstance(self.samplers, NativeSamplers)

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
        """See `Engine`. Raises InputError for more processes than devices, and where no devices are free."""
        from cooper_rl.engines.scale.ray.session import Session  # noqa: PLC0415

        self.close()
        self._session = Session(self, directory)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RemotePolicyLearner:
        from cooper_rl.engines.scale.ray.ranks import RemotePolicyLearner  # noqa: PLC0415

        _check_adapter(config, trainable)
        return RemotePolicyLearner(self.policy_group, config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RemoteRewardModelLearner:
        from cooper_rl.engines.scale.ray.ranks import RemoteRewardModelLearner  # noqa: PLC0415

        _check_adapter(config, trainable)
        return RemoteRewardModelLearner(self.reward_model_group, config, total_steps, trainable)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        return self.samplers.sampler(self.session, policy, max_rows)

    @property
    def policy_group(self) -> RankGroup:
        return self.session.groups[0]

    @property
    def reward_model_group(self) -> RankGroup:
        return self.session.groups[-1]

    @property
    def session(self) -> Session:
        if self._session is None:
            raise RuntimeError("the cluster engine is not open; call open(directory) first, and close() at the end")
        return self._session


def _check_adapter(config: LearnerConfig, trainable: bool = True) -> None:
    if trainable and config.lora is not None and config.lora.load_in_4bit:
        raise InputError(
            f"{config.model}: lora.load_in_4bit: engine kind cluster cannot shard 4-bit weights; set load_in_4bit: "
            "false (float32 weights are divided among the processes), or use kind: local"
        )
