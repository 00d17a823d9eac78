"""The verbs of a learner, the same for the policy and the reward model, whatever engine runs them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # settings are checked, and `cooper config` explains them, before torch is loaded
    from torch import Tensor

Metrics = dict[str, float]


@dataclass(frozen=True)
class PolicyBatch:
    """Completions with their prompts, as ragged lists: one entry a completion, one number a completion token.

    `token_ids[i]` is the prompt followed by the completion; the last `len(advantages[i])` tokens are the
    completion. All per-token lists of a row have that length: `old_logprobs` (behaviour policy under the
    learner, nats), `sampler_logprobs` (as the sampler reported them), `reference_logprobs` (frozen reference
    policy; empty without a KL term in the loss), `weights` (the share of each token in the step's loss: masking,
    aggregation and normalisation over the *whole* step are already in it, so micro-batches add up exactly).
    All log-probabilities, those the learner computes included, are of the logits divided by `temperature`.
    """

    token_ids: list[list[int]]
    advantages: list[list[float]]
    weights: list[list[float]]
    old_logprobs: list[list[float]]
    sampler_logprobs: list[list[float]]
    reference_logprobs: list[list[float]]
    temperature: float = 1.0


@dataclass(frozen=True)
class PairBatch:
    """Reward-model inputs for the pairwise loss: `positives[i]` against `negatives[i]`.

    `weights[i]` is the share of pair i in the step's loss (1 / number of valid pairs for a plain mean).
    """

    positives: list[list[int]]
    negatives: list[list[int]]
    weights: list[float]


@dataclass(frozen=True)
class LabelledBatch:
    """Reward-model inputs with labels in [0, 1] for binary cross-entropy; `weights` as in `PairBatch`."""

    token_ids: list[list[int]]
    labels: list[float]
    weights: list[float]


class Learner(Protocol):
    """A model that is being trained."""

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        """Accumulate the gradient of `loss` (a `Config` record of the learner's kind) on `batch`.

        Metrics are step-level sums or means (unprefixed names).
        """
        ...

    def optim_step(self) -> Metrics:
        """Clip, step the optimizer and the schedule, clear gradients.

        A non-finite gradient skips the step. Metrics: `grad_norm` (before clipping), `learning_rate`,
        `skipped_updates` (total so far).
        """
        ...

    def save(self, directory: Path) -> None:
        """Write weights as a plain Hugging Face folder, and optimizer, schedule and counters beside them."""
        ...

    def load(self, directory: Path) -> None:
        """Restore what `save` wrote, exactly."""
        ...


class PolicyLearner(Learner, Protocol):
    """A causal language model."""

    def logprobs(
        self, token_ids: list[list[int]], completion_lengths: list[int], temperature: float = 1.0
    ) -> list[list[float]]:
        """Log-probabilities (nats) of the last `completion_lengths[i]` tokens of each row.

        They are log softmax(logits / temperature), of the distribution that is sampled at that temperature (> 0).
        """
        ...


class RewardModelLearner(Learner, Protocol):
    """A reference-based reward model with one output."""

    def score(self, token_ids: list[list[int]]) -> "Tensor":
        """Logits, float32 [len(token_ids)], on the CPU."""
        ...
