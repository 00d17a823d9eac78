"""Settings of graders that need a model in this process. Importing them loads no torch."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_base.config.base import Config
from cooper_rl.engines.config import Autocast, LearnerConfig, ScorerConfig
from cooper_verify.graders.judge import Reading

if TYPE_CHECKING:
    from cooper_rl.adapters.graders.local_judge import LocalJudge


class LocalJudgeConfig(Config):
    """A judge in this process."""

    kind: Literal["local"] = "local"
    """Names this kind of judge."""
    model: str
    """A folder or hub name of a causal language model."""
    read: Reading = "first_token"
    """`first_token` compares the probabilities of yes and no as the first token of the reply; `text` parses a reply."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, in tokens. Only used with `text`."""
    max_rows: int = Field(default=16, ge=1)
    """Largest number of completions judged at once."""
    max_completion_chars: int = Field(default=6000, ge=100)
    """Most characters of a completion. A longer one loses its middle."""
    autocast: Autocast = "auto"
    """Precision of the matrix products: `auto` is `bfloat16` on a GPU that has it, elsewhere `off` (float32)."""
    device: str = "auto"
    """`auto`, or a torch device."""

    def build(self) -> "LocalJudge":
        """Raises InputError for an unusable folder or tokenizer."""
        from cooper_rl.adapters.graders.local_judge import LocalJudge  # noqa: PLC0415 - torch, after bad input is reported

        return LocalJudge(self)


READING = ScorerConfig.model_fields.keys() - LearnerConfig.model_fields.keys() | {"model", "attention", "autocast"}
"""Settings of a reward model that decide its scores. The others are for training it."""
