"""Settings for how a sampler draws tokens."""

from typing import Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config

StopReason = Literal["stop", "length"]


class SamplingParams(Config):
    """How tokens are drawn. The defaults sample from the model's own distribution."""

    temperature: float = Field(default=1.0, ge=0)
    """Divides the logits; 0 always takes the most likely token."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Keep the smallest set of most likely tokens whose total probability reaches this."""
    top_k: int = Field(default=0, ge=0)
    """Keep this many most likely tokens; 0 keeps all."""
    min_p: float = Field(default=0.0, ge=0, le=1)
    """Drop tokens whose probability is below this fraction of that of the most likely token."""
    max_tokens: int = Field(default=512, ge=1)
    """Longest completion. One that reaches this many tokens ends with the stop reason `length`."""
    min_tokens: int = Field(default=0, ge=0)
    """No stop token is drawn before this many tokens. Stop strings still end a completion."""
    stop: tuple[str, ...] = ()
    """A completion ends before the first of these strings."""
    stop_token_ids: tuple[int, ...] = ()
    """A completion ends with the first of these tokens or of the model's own end-of-sequence tokens."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens: {self.min_tokens} exceeds max_tokens: {self.max_tokens}")
        return self

    @property
    def truncations(self) -> list[str]:
        """The settings under which some tokens cannot be drawn at all, as "name: value"."""
        names = ("top_p", "top_k", "min_p", "min_tokens")
        values = {name: getattr(self, name) for name in names}
        return [f"{name}: {value}" for name, value in values.items() if value != type(self).model_fields[name].default]
