"""Settings of `cooper verifyrm`: `collect` (which models answer which problems) and `train`."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from cooper_audit.attack.wrong_answers import RobustnessKind
from cooper_base.config.base import Config
from cooper_rl.engines.config import Autocast, SamplingParams, ScorerConfig
from cooper_verify.clients.chat import ChatConfig
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import RULES, RuleConfig


class LocalModelConfig(Config):
    """A causal language model in this process."""

    kind: Literal["local"] = "local"
    """Names this kind of model."""
    name: str
    """Its name in the column `model`."""
    model: str
    """A folder or hub name."""
    sampling: SamplingParams = SamplingParams(temperature=0.7, top_p=0.95, max_tokens=512)
    """How completions are drawn."""
    max_rows: int = Field(default=64, ge=1)
    """Largest number of completions drawn at once."""
    autocast: Autocast = "auto"
    """Precision of the matrix products: `auto` is `bfloat16` on a GPU that has it, elsewhere `off` (float32)."""
    device: str = "auto"
    """`auto`, or a torch device."""


class ChatModelConfig(ChatConfig):
    """A model behind an OpenAI-compatible server."""

    kind: Literal["chat"] = "chat"
    """Names this kind of model."""
    name: str
    """Its name in the column `model`. The setting `model` is its name on the server."""


ModelConfig = Annotated[LocalModelConfig | ChatModelConfig, Field(discriminator="kind")]


class DatasetConfig(ProblemsConfig):
    """One dataset. Its `prompt` is used for every model."""

    name: str
    """Its name in the column `dataset`."""


class CollectConfig(Config):
    """Everything `cooper verifyrm collect` needs to know."""

    output: Path
    """The table, .parquet or .jsonl. A journal beside it lets an interrupted command continue."""
    n: int = Field(default=4, ge=1)
    """Completions from each model for each problem."""
    seed: int = Field(default=0, ge=0)
    """Seed of the sampling."""
    batch_size: int = Field(default=16, ge=1)
    """Number of problems after which completions are written down. An interruption loses at most this many."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work. The default is OMP_NUM_THREADS or, if that is not set, the number of cores this
    process may use."""
    rule: Annotated[RuleConfig, RULES] = MathsRule()
    """Rule that checks whether every reference answer can be used, before any model is asked."""
    rules: dict[str, Annotated[RuleConfig, RULES]] = Field(default_factory=dict)
    """Additional rules by name, for datasets that name their own rule."""
    models: tuple[ModelConfig, ...] = Field(min_length=1)
    """The models that write completions."""
    datasets: tuple[DatasetConfig, ...] = Field(min_length=1)
    """The datasets whose problems the models are asked."""

    @field_validator("output")
    @classmethod
    def _known_suffix(cls, output: Path) -> Path:
        if output.suffix.lower() not in (".parquet", ".jsonl"):
            raise ValueError("write to a .parquet or .jsonl file")
        return output

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for what, items in (("models", self.models), ("datasets", self.datasets)):
            twice = [name for name, count in Counter(item.name for item in items).items() if count > 1]
            if twice:
                raise ValueError(f"{what}: the name {twice[0]!r} is used twice; each needs its own")
        return self


class VerifyRMConfig(ScorerConfig):
    """A reward model trained on labelled completions with binary cross-entropy."""

    model: str
    """The base: a causal language model, which gets a new head (none with `kind: yes_no`), or a reward model to train
    further."""
    learning_rate: float = Field(default=2e-5, ge=0)
    """Peak learning rate."""
    warmup_steps: int = Field(default=10, ge=0)
    """Updates of linear warm-up."""
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    """Learning rate after the warm-up; `linear` and `cosine` fall to 0 at the last update."""
    epochs: float = Field(default=3.0, gt=0)
    """Passes over the training rows."""
    batch_size: int = Field(default=64, ge=1)
    """Rows per update."""
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
    robustness_kinds: tuple[RobustnessKind, ...] = get_args(RobustnessKind)
    """Kinds of robustness rows, added in equal parts. All are labelled wrong except half of the bare answers."""
    calibrate: bool = True
    """Scale the logits by a temperature fitted on the held-out rows, so that sigmoid(logit) is a probability. The
    temperature is applied only if it lowers the calibration error, both on those rows and across their two halves, and
    only fitted on 100 held-out rows or more."""
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
