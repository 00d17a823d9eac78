"""The base of estimators that add to the advantages of another one, or take from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cooper_rl import AdvantageConfig
from cooper_rl.policy.advantages import ADVANTAGES, GRPO, AdvantagesWithMetrics, estimate_usable

if TYPE_CHECKING:
    from cooper_rl import Completions, Ragged, RunConfig
    from cooper_rl.policy.config import AlgorithmConfig


class OutcomeAdvantages(AdvantageConfig):
    """Estimators that build on the advantages of another, `outcome`."""

    outcome: Annotated[AdvantageConfig, ADVANTAGES] = GRPO()
    """The estimator of the advantages of the finished reward."""

    @property
    def reads_completions(self) -> bool:
        """Whether the other estimator reads more than rewards."""
        return self.outcome.reads_completions

    @property
    def reads_summands(self) -> bool:
        """Whether the other estimator reads the single rewards."""
        return self.outcome.reads_summands

    def check_algorithm(self, algorithm: AlgorithmConfig) -> None:
        """Raises what the other estimator's check raises."""
        self.outcome.check_algorithm(algorithm)

    def check_run(self, config: RunConfig) -> None:
        """Raises what the other estimator's check raises."""
        self.outcome.check_run(config)

    def of_outcome(self, rewards: Ragged, completions: Completions | None) -> AdvantagesWithMetrics:
        """The other estimator's advantages."""
        return estimate_usable(self.outcome, rewards, completions)
