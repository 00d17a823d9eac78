"""The interface of every engine: learners for the policy and the reward model, and a sampler, all in plain data."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from cooper_base.errors import InputError
from cooper_rl.engines.config import SamplingParams
from cooper_rl.records import Column, Samples, offsets_of

if TYPE_CHECKING:  # this module is also imported where settings are checked and explained, without torch
    from torch import Tensor

Metrics = dict[str, float]
Prompts = Sequence[Sequence[int]]
Lengths = Int[np.ndarray, " B"]
PerToken = Float[np.ndarray, " N"]


@dataclass(frozen=True)
class PolicyBatch:
    """B completions with their prompts. The flat arrays hold N completion tokens, one completion after another.

    All log-probabilities, also those that the learner computes, are in nats and of the logits divided by `temperature`.
    """

    token_ids: Column  # B rows, each a prompt followed by its completion
    lengths: Lengths  # the last `lengths[i]` tokens of row i are the completion
    advantages: PerToken
    weights: PerToken
    """The share of each token in the step's loss. It already includes masking, aggregation and normalisation over the
    *whole* step, so that micro-batches add up exactly."""
    old_logprobs: PerToken  # under the policy as it was before the step's first update
    sampler_logprobs: PerToken  # as the sampler reported them
    reference_logprobs: PerToken | None = None  # under the reference policy; needed for a KL term in the loss
    temperature: float = 1.0
    trained: Bool[np.ndarray, " N"] | None = None
    """False at tokens that an environment wrote; they are in no sum and no mean. None: all true."""

    def __post_init__(self) -> None:
        tokens = int(self.lengths.sum())
        if len(self.lengths) != len(self.token_ids):
            raise ValueError(f"{len(self.lengths)} completion lengths for {len(self.token_ids)} rows")
        for name, values in self.flat.items():
            if len(values) != tokens:
                raise ValueError(f"{len(values)} {name} for {tokens} completion tokens")

    @property
    def flat(self) -> dict[str, PerToken]:
        names = ("advantages", "weights", "old_logprobs", "sampler_logprobs", "reference_logprobs", "trained")
        return {name: values for name in names if (values := getattr(self, name)) is not None}

    @property
    def count(self) -> int:
        """The number of tokens in the loss."""
        return len(self.weights) if self.trained is None else int(self.trained.sum())

    def take(self, rows: Sequence[int]) -> Self:
        """Some of the completions. Their weights stay the same."""
        tokens = Column(self.advantages, offsets_of(self.lengths)).places(rows)
        flat = {name: values[tokens] for name, values in self.flat.items()}
        return replace(self, token_ids=self.token_ids.take(rows), lengths=self.lengths[rows], **flat)


class _Rows:
    def take(self, rows: Sequence[int]) -> Self:
        """Some of the rows, or pairs. Their weights stay the same."""
        return type(self)(**{name: [values[i] for i in rows] for name, values in vars(self).items()})


@dataclass(frozen=True)
class PairBatch(_Rows):
    """Reward-model inputs for the pairwise loss: `positives[i]` against `negatives[i]`."""

    positives: list[list[int]]
    negatives: list[list[int]]
    weights: list[float]  # the share of each pair in the step's loss (1 / number of valid pairs for a plain mean)

    @property
    def inputs(self) -> list[list[int]]:
        return self.positives + self.negatives

    @property
    def columns(self) -> list[Column]:
        return [Column.of(self.positives), Column.of(self.negatives)]


@dataclass(frozen=True)
class LabelledBatch(_Rows):
    """Reward-model inputs with labels in [0, 1] for binary cross-entropy; `weights` as in `PairBatch`."""

    token_ids: list[list[int]]
    labels: list[float]
    weights: list[float]

    @property
    def inputs(self) -> list[list[int]]:
        return self.token_ids

    @property
    def columns(self) -> list[Column]:
        return [Column.of(self.token_ids)]


class Learner(ABC):
    """A model that is being trained."""

    @abstractmethod
    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        """Accumulate the gradient of `loss` on `batch`. Metrics are step-level sums or means (unprefixed names)."""

    @abstractmethod
    def optim_step(self) -> Metrics:
        """Clip the gradient, advance the optimizer and the schedule, and clear the gradient.

        The update is skipped if the gradient is not finite. Metrics: `grad_norm` (before clipping), `learning_rate`,
        `skipped_updates` (total so far).
        """

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write the weights as a plain Hugging Face folder, with the optimizer, schedule and counters beside them."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Restore what `save` wrote, exactly."""

    def set_learning_rate(self, peak: float) -> None:
        """Change the peak learning rate and keep the schedule. Raises InputError if this learner cannot do so."""
        raise InputError(f"learning_rate: learners of the class {type(self).__name__} cannot change it")

    def describe(self) -> str:
        """One line for the log: the device, and the precision and kernels that were chosen for it. May be empty."""
        return ""


class PolicyLearner(Learner):
    @abstractmethod
    def logprobs(self, token_ids: Column, lengths: Lengths, temperature: float = 1.0, adapter: bool = True) -> PerToken:
        """Log-probabilities (nats) of the last `lengths[i]` tokens of each row, row after row.

        They are log softmax(logits / temperature): those of the distribution that is sampled at that temperature (> 0).
        With `adapter=False` they are those of the frozen model under the low-rank adapter, which is the start policy.
        """


class WeightSender(Protocol):
    """One rank's side of a weight transfer: rank 0 sends, all ranks gather."""

    def sync_weights(self, version: str) -> None:
        """Send the current weights. The samplers report `version` afterwards. Parameters may be DTensors."""

    def disconnect(self) -> None: ...


class RewardModelLearner(Learner):
    @abstractmethod
    def score(self, token_ids: list[list[int]]) -> "Tensor":
        """Logits, float32 [len(token_ids)], on the CPU."""


class Sampler(ABC):
    """Draws completions from a policy's current weights."""

    @abstractmethod
    def sample(self, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> Samples:
        """Draw `n` completions for each prompt (token ids): row `p * n + i` is sample i of prompt p.

        Equal calls draw equal completions.
        """

    @abstractmethod
    def sync_weights(self, learner: PolicyLearner) -> None:
        """Load the learner's weights, before each step's `sample`. Raises TypeError for an unsuitable learner."""

    def submit(self, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> "Future[Samples]":
        """Like `sample`, but returns a future at once, for `rollout.lag: 1`; the future's `result` raises what `sample`
        raises. By default, sampling is over when this returns."""
        return sample_at_once(self, prompts, n, params, seed)

    def take_metrics(self) -> Metrics:
        """Metrics since the last call, such as faults and seconds, under their full names."""
        return {}

    def rest(self) -> None:  # noqa: B027 - need not be overridden
        """Free memory for the learners. Nothing is sampled until the next `sync_weights`."""


def sample_at_once(sampler: Sampler, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> "Future[Samples]":
    """Sample now, and return the result or the error as a finished future."""
    future: Future[Samples] = Future()
    try:
        future.set_result(sampler.sample(prompts, n, params, seed))
    except Exception as error:  # noqa: BLE001 - the future holds it
        future.set_exception(error)
    return future
