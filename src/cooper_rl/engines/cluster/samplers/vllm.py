"""vLLM engines with devices of their own, or a server that is running already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from cooper_rl.engines.cluster.resources import Resources
from cooper_rl.engines.cluster.samplers import SAMPLERS
from cooper_rl.engines.vllm.config import VllmConfig

if TYPE_CHECKING:
    from cooper_rl.engines.cluster.session import Session
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.vllm.sampler import VllmSampler


@SAMPLERS.register
class VllmSamplers(VllmConfig):
    """vLLM draws, each engine in a process of its own; the policy's processes hand it their weights.

    `transfer_host` is not used: the policy's first process knows its own address. `timeout_s` also holds for an engine
    that is asked anything but to draw.
    """

    kind: Literal["vllm"] = "vllm"
    """Names this kind."""
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
        """See `Samplers`."""
        each = Resources(cpus=self.cpus_per_engine, gpus=float(self.tensor_parallel) if on_gpus else 0.0)
        return 0 if self.url else self.engines, each

    def build(self, session: Session, policy: LearnerConfig, max_rows: int) -> VllmSampler:
        """See `Samplers`."""
        from cooper_rl.engines.cluster.inference.build import build_sampler  # noqa: PLC0415

        return build_sampler(self.at_most(max_rows), session, policy.model)
