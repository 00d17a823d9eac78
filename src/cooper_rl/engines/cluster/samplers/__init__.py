"""What draws completions in a cluster. Each kind is a file of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from cooper_rl.config.registry import Kinds

if TYPE_CHECKING:
    from cooper_rl.engines.base import Sampler
    from cooper_rl.engines.cluster.resources import Resources
    from cooper_rl.engines.cluster.session import Session
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.sampling import SamplingParams

SAMPLERS = Kinds("sampler", "cooper_rl.engines.cluster.samplers", ["check", "processes", "build"], default="native")
"""The kinds of `engine.samplers`."""


class Samplers(Protocol):
    """The settings of a cluster's samplers."""

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """Raises InputError for settings that cannot work, before any model is loaded."""
        ...

    def processes(self, on_gpus: bool) -> tuple[int, Resources]:
        """Processes besides those of the policy, and what each reserves in a cluster with GPUs, or without."""
        ...

    def build(self, session: Session, policy: LearnerConfig, max_rows: int) -> Sampler:
        """See `Engine.sampler`."""
        ...


SamplersConfig = Annotated[Samplers, SAMPLERS]
