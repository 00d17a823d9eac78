"""Settings of `cooper verifyrm collect`: which models answer which problems, and how often."""

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
    """What the column `model` says."""
    model: str
    """A folder or hub name."""
    sampling: SamplingParams = SamplingParams(temperature=0.7, top_p=0.95, max_tokens=512)
    """How completions are drawn."""
    max_rows: int = Field(default=64, ge=1)
    """Most completions drawn at once."""
    autocast: Literal["off", "bfloat16"] = "off"
    """Precision of the matrix products."""
    device: str = "auto"
    """`auto`, or a torch device."""


class ChatModelConfig(ChatConfig):
    """A model behind an OpenAI-compatible server."""

    kind: Literal["chat"] = "chat"
    """Names this kind of model."""
    name: str
    """What the column `model` says; the field `model` is its name on the server."""


ModelConfig = Annotated[LocalModelConfig | ChatModelConfig, Field(discriminator="kind")]


class DatasetConfig(ProblemsConfig):
    """One data set. Its `prompt` is what every model is asked."""

    name: str
    """What the column `dataset` says."""


class CollectConfig(Config):
    """Everything `cooper verifyrm collect` needs to know."""

    output: Path
    """The table, .parquet or .jsonl; beside it stands a journal from which an interrupted command continues."""
    n: int = Field(default=4, ge=1)
    """Completions of each model for each problem."""
    seed: int = Field(default=0, ge=0)
    """Seeds sampling."""
    batch_size: int = Field(default=16, ge=1)
    """Problems asked before their completions are written down: what an interruption can lose."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work; by default OMP_NUM_THREADS, else the cores this process may use."""
    rule: Annotated[RuleConfig, RULES] = MathsRule()
    """What every reference answer is checked by before it is asked for."""
    rules: dict[str, Annotated[RuleConfig, RULES]] = Field(default_factory=dict)
    """Further rules by name, for data sets that name theirs."""
    models: tuple[ModelConfig, ...] = Field(min_length=1)
    """Who answers."""
    datasets: tuple[DatasetConfig, ...] = Field(min_length=1)
    """What is asked."""

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
