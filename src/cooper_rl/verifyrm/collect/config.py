"""Settings of `cooper verifyrm collect`: which models answer which problems, and how many times."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from cooper_rl.clients.chat_config import ChatConfig
from cooper_rl.config.base import Config
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.rewards.rule.base import RuleConfig
from cooper_rl.rewards.rule.kinds import RULES
from cooper_rl.rewards.rule.kinds.maths import MathsRule


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
    autocast: Literal["off", "bfloat16"] = "off"
    """Precision of the matrix products."""
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
    """One dataset. Every model is asked with its `prompt`."""

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
