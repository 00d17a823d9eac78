"""Settings of the samplers of a cluster: Cooper's own in the policy's processes, or vLLM engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds
from cooper_rl.engines.vllm import VllmConfig

if TYPE_CHECKING:
    from cooper_rl.engines.base import Sampler
    from cooper_rl.engines.config import LearnerConfig, SamplingParams
    from cooper_rl.engines.ray.learners import RemoteSampler
    from cooper_rl.engines.ray.session import Session
    from cooper_rl.engines.vllm.sampler import VllmSampler

SAMPLERS = Kinds("sampler", "cooper_rl.engines.ray.samplers", ["check", "processes", "sampler"], default="native")
"""The kinds of `engine.samplers`."""


@dataclass(frozen=True)
class Resources:
    """CPU cores and GPUs that one process reserves."""

    cpus: float
    gpus: float


class Samplers(Protocol):
    """The settings of a cluster's samplers."""

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """Raises InputError for settings that cannot work, before any model is loaded."""
        ...

    def processes(self, on_gpus: bool) -> tuple[int, Resources]:
        """The number of processes besides the policy's, and what each reserves in a cluster with GPUs, or without."""
        ...

    def sampler(self, session: Session, policy: LearnerConfig, max_rows: int) -> Sampler:
        """A sampler for the policy, as `Engine.sampler`, on the processes of `session`."""
        ...


@SAMPLERS.register
class NativeSamplers(Config):
    """Cooper's own sampler: each process of the policy draws for its share of the prompts, with all weights."""

    kind: Literal["native"] = "native"

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """Nothing: they take what the policy's processes take."""

    def processes(self, on_gpus: bool) -> tuple[int, Resources]:
        return 0, Resources(cpus=0, gpus=0)

    def sampler(self, session: Session, policy: LearnerConfig, max_rows: int) -> RemoteSampler:
        from cooper_rl.engines.ray.learners import RemoteSampler  # noqa: PLC0415

        return RemoteSampler(session.groups[0], policy, max_rows)


@SAMPLERS.register
class VllmSamplers(VllmConfig):
    """vLLM engines, each in a process with devices of its own, or a server that is running already.

    `transfer_host` is not used: the policy's first process knows its own address. `timeout_s` also limits every other
    call to an engine except drawing.
    """

    kind: Literal["vllm"] = "vllm"
    engines: int = Field(default=1, ge=1)
    """Engines, each with `tensor_parallel` GPUs of one machine where the cluster has any; prompts are divided over
    them, with all samples of a prompt on one engine. With `url` it is 1."""
    cpus_per_engine: float = Field(default=1, gt=0)
    """CPU cores reserved for an engine, and, rounded down, its threads for tensor work."""

    @model_validator(mode="after")
    def _fits_a_cluster(self) -> Self:
        if self.transfer == "ipc":
            raise ValueError("transfer: ipc needs engine and policy on one device; use nccl, or engine: {kind: vllm}")
        if self.url is not None and self.engines > 1:
            raise ValueError("engines: url names one server, which may itself hold several; leave engines out")
        return self

    def processes(self, on_gpus: bool) -> tuple[int, Resources]:
        each = Resources(cpus=self.cpus_per_engine, gpus=float(self.tensor_parallel) if on_gpus else 0.0)
        return 0 if self.url else self.engines, each

    def sampler(self, session: Session, policy: LearnerConfig, max_rows: int) -> VllmSampler:
        from cooper_rl.engines.ray.vllm_engines import connect_ranks  # noqa: PLC0415
        from cooper_rl.engines.vllm.sampler import build_sampler  # noqa: PLC0415

        auto = "nccl" if session.on_gpus else "gloo"
        return build_sampler(policy.model, self.at_most(max_rows), auto, session.start_engines, connect_ranks)
