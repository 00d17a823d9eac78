"""What a sampler is given, what it returns, and the protocol every sampling engine implements."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.data.problem import Problem
from cooper_rl.engines.base import Learner
from cooper_rl.rollouts.answers import Answer, AnswerGroup

StopReason = Literal["stop", "length"]


class SamplingParams(Config):
    """How tokens are drawn. The defaults sample from the model's own distribution."""

    temperature: float = Field(default=1.0, ge=0)
    """Divides the logits; 0 takes the most likely token."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Keep the smallest set of tokens whose probability reaches this."""
    top_k: int = Field(default=0, ge=0)
    """Keep this many most likely tokens; 0 keeps all."""
    min_p: float = Field(default=0.0, ge=0, le=1)
    """Drop tokens less likely than this fraction of the most likely one."""
    max_tokens: int = Field(default=512, ge=1)
    """A completion that reaches this many tokens stops with reason `length`."""
    min_tokens: int = Field(default=0, ge=0)
    """No stop token is drawn before this many tokens; stop strings still end a completion."""
    stop: tuple[str, ...] = ()
    """A completion ends before the first of these strings."""
    stop_token_ids: tuple[int, ...] = ()
    """A completion ends with the first of these tokens, besides the model's own end-of-sequence tokens."""

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


@dataclass(frozen=True)
class Completion:
    """One sampled answer.

    `token_ids` are exactly the tokens drawn, including the end-of-sequence token if it was drawn; `logprobs`
    are their log-probabilities (nats) under the sampled model at the sampling temperature (at 1 where that is 0)
    with no filter, so that they compare with a learner's. `text` is decoded without special tokens and cut before
    a stop string.
    """

    text: str
    token_ids: list[int]
    logprobs: list[float]
    stop_reason: StopReason


@dataclass(frozen=True)
class Group:
    """The completions sampled for one problem in one step."""

    problem: Problem
    prompt_ids: list[int]
    completions: list[Completion]

    def answered(self) -> AnswerGroup:
        """What judges see of it."""
        answers = [Answer(c.text, c.stop_reason == "stop", tokens=len(c.token_ids)) for c in self.completions]
        return AnswerGroup(self.problem.id, self.problem, answers)


class Sampler(Protocol):
    """An engine that draws completions from a policy's current weights."""

    def sample(self, prompts: Sequence[list[int]], n: int, params: SamplingParams, seed: int) -> list[list[Completion]]:
        """Draw `n` completions for each prompt (token ids). The same seed gives the same completions."""
        ...

    def load_weights(self, learner: Learner) -> None:
        """Take over the learner's current weights."""
        ...
