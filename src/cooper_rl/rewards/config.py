"""Settings of rewards: the user's own functions, and how rule and reward model are combined."""

from typing import Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config


class FunctionRewardConfig(Config):
    """A reward of the user's own: added to that of the run's kind, or, with `kind: function`, all there is."""

    function: str
    """`package.module:function`, of an installed package or a module in the working folder; plain or `async def`.
    `function(problem, completion) -> float` is called once for each completion, an `async def` for all of a step
    together."""
    weight: float = 1.0
    """Multiplies the function's values before they are added."""
    batched: bool = False
    """Call the function once a step, as `function(problems, completions) -> list[float]`: two lists with one entry for
    each completion, and one number back for each, in order."""


class HybridConfig(Config):
    """Bands and weights of the hybrid reward. Weights are the paper's appendix A; its main text has 0.5, 2 and 5."""

    alpha: float = Field(default=0.05, ge=0)
    """Rule-rejected completions are rewarded between -alpha and +alpha."""
    beta: float = Field(default=0.05, ge=0)
    """Rule-accepted completions are rewarded between 1 - beta and 1 + beta."""
    eps: float = Field(default=1e-6, gt=0)
    """Keeps the normalisation finite where all scores are equal."""
    w_min: float = Field(default=0.4, gt=0)
    """Weight of a group on which the reward model's scores agree."""
    w_max: float = Field(default=3.0, gt=0)
    """Weight of a group on which they differ widely."""
    k: float = Field(default=6.0, ge=0)
    """Steepness between the two; 0 gives every group the same weight."""
    sigma_decay: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the running mean of the groups' standard deviation. The paper says only "running mean"."""

    @model_validator(mode="after")
    def _bands_are_apart(self) -> Self:
        if self.alpha + self.beta >= 1:
            raise ValueError("alpha + beta must stay below 1, or a wrong answer can be rewarded above a right one")
        if self.w_min > self.w_max:
            raise ValueError("w_min exceeds w_max")
        return self
