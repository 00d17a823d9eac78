"""Cooper's own sampler, in the policy's processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.config.base import Config
from cooper_rl.engines.cluster.resources import Resources
from cooper_rl.engines.cluster.samplers import SAMPLERS

if TYPE_CHECKING:
    from cooper_rl.engines.cluster.sampler import RemoteSampler
    from cooper_rl.engines.cluster.session import Session
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.sampling import SamplingParams


@SAMPLERS.register
class NativeSamplers(Config):
    """Each process of the policy draws for its share of the prompts, with a whole copy of the weights."""

    kind: Literal["native"] = "native"
    """Names this kind."""

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """See `Samplers`. They take what the policy's processes take."""

    def processes(self, on_gpus: bool) -> tuple[int, Resources]:
        """See `Samplers`."""
        return 0, Resources(cpus=0, gpus=0)

    def build(self, session: Session, policy: LearnerConfig, max_rows: int) -> RemoteSampler:
        """See `Samplers`."""
        from cooper_rl.engines.cluster.sampler import RemoteSampler  # noqa: PLC0415

        return RemoteSampler(session.groups[0], policy, max_rows)
