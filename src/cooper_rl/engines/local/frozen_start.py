"""The reference of a policy with an adapter: the policy itself, with the adapter switched off."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int

from cooper_rl.engines.base import Metrics
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.rollouts import Column


class AdaptedPolicy(Protocol):
    """What the reference needs of a policy."""

    config: LearnerConfig

    def start_logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0
    ) -> Float[np.ndarray, " N"]:
        """`logprobs` with the adapter switched off."""
        ...


class FrozenStart:
    """The model that a policy with an adapter started from, in the same memory.

    Implements `PolicyLearner`; it does not learn, and has nothing of its own to save.
    """

    def __init__(self, policy: AdaptedPolicy) -> None:
        if policy.config.lora is None:
            raise ValueError("a policy without an adapter does not keep the weights it started from")
        self._policy = policy

    def logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0
    ) -> Float[np.ndarray, " N"]:
        """As the policy's."""
        return self._policy.start_logprobs(token_ids, lengths, temperature)

    def frozen_start(self) -> "FrozenStart":
        """Itself."""
        return self

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        """Refused."""
        raise RuntimeError("the reference is frozen")

    def optim_step(self) -> Metrics:
        """Refused."""
        raise RuntimeError("the reference is frozen")

    def save(self, directory: Path) -> None:
        """Nothing: the weights are the base's."""

    def load(self, directory: Path) -> None:
        """Nothing."""
