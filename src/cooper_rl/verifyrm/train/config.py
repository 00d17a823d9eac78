"""Settings for training a VerifyRM, and for monitoring it while it learns during a run."""

from typing import Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.verifyrm.train.robustness import RobustnessKind


class VerifyRMConfig(LearnerConfig):
    """A reward model trained on labelled completions with binary cross-entropy."""

    model: str
    """The base: a causal language model, which gets a new head, or a reward model to train further."""
    learning_rate: float = Field(default=2e-5, ge=0)
    """Peak learning rate."""
    warmup_steps: int = Field(default=10, ge=0)
    """Updates of linear warm-up."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """Learning rate after the warm-up; `cosine` falls to 0 at the last update."""
    epochs: float = Field(default=3.0, gt=0)
    """Passes over the training rows."""
    batch_size: int = Field(default=64, ge=1)
    """Rows per update."""
    max_input_tokens: int = Field(default=2048, ge=16)
    """Longer inputs lose the middle of the completion, never its end. Use the same limit when scoring."""
    max_rows: int | None = Field(default=None, ge=2)
    """Use at most this many rows, drawn at random."""
    held_out: float = Field(default=0.1, gt=0, lt=1)
    """Share of the rows, in whole problems, that is used for measuring and never for training."""
    evaluate_every: int = Field(default=50, ge=1)
    """Updates between evaluations on the held-out rows. The weights with the lowest held-out loss are kept."""
    patience: int | None = Field(default=5, ge=1)
    """Stop after this many evaluations in a row without a lower held-out loss; null trains to the end."""
    balance_classes: bool = True
    """Weight rows so that right and wrong completions count the same in total."""
    robustness: float = Field(default=0.1, ge=0)
    """Robustness rows (without an honest answer) added to the training rows, as a share of them; 0 adds none."""
    robustness_kinds: tuple[RobustnessKind, ...] = (
        "empty",
        "single_token",
        "opener",
        "copied_question",
        "many_answers",
        "bare_answer",
    )
    """Kinds of robustness rows, added in equal parts. All are labelled wrong except half of the bare answers."""
    calibrate: bool = True
    """Scale the logits by a temperature fitted on the held-out rows, so that sigmoid(logit) is a probability. The
    temperature is applied only if it lowers the calibration error, both on those rows and across their two halves."""
    frozen_layers: int = Field(default=0, ge=0)
    """Do not train the embeddings and this many of the lowest layers. Updates are then cheaper on a slow machine."""
    seed: int = Field(default=0, ge=0)
    """Seed for the choice of rows, the split and the order of training."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work. The default is OMP_NUM_THREADS or, if that is not set, the number of cores this
    process may use."""

    @model_validator(mode="after")
    def _can_be_merged(self) -> Self:
        if self.lora is not None and self.lora.load_in_4bit:
            raise ValueError("lora.load_in_4bit: the model is written as a whole; set it to false")
        return self


class ScoringConfig(LearnerConfig):
    """A reward model that only scores."""

    max_input_tokens: int = Field(default=2048, ge=16)
    """Longer inputs lose the middle of the completion, never its end."""


class MonitorConfig(Config):
    """Measures the reward model during the run, on completions that it does not learn from."""

    labelled: str
    """File of held-out labelled completions: question, reference_answer, completion, label. Their problems must not be
    replayed."""
    every: int = Field(default=10, ge=1)
    """Steps between measurements. There is also one before the first step and one after the last."""
    rows: int = Field(default=256, ge=1)
    """Most rows of the file that are used. They are drawn at random."""
    attacked_problems: int = Field(default=16, ge=0)
    """Number of problems from those rows on which every attack pattern is tried; 0 tries none."""
    consistency_pairs: int = Field(default=0, ge=0)
    """Number of pairs of problems on which the model's use of the reference is measured; 0 measures none."""
