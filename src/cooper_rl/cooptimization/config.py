"""Settings of stage 2: how pairs are made and how the reward model learns from them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.cooptimization.negatives.assistant import AssistantConfig

NegativeOrigin = Literal["assistant", "on_policy"]
PositiveOrigin = Literal["rollout", "reference_solution"]


class OnPolicyConfig(Config):
    """Negatives taken from the policy's own completions.

    The rule's verdict is their only label: where the rule misses right answers, some of these negatives are right,
    and taking the highest-scored first looks for exactly those. Prefer `order: random` with a rule of low precision
    on the verdict `wrong`.
    """

    order: Literal["hardest", "random"] = "hardest"
    """`hardest` takes the completions that the reward model scores highest, which is where it is being hacked."""
    trust_unparsed: bool = False
    """Whether a completion in which the rule finds no answer counts as wrong. Off, because the rule also finds none in
    right answers of an unusual form; a completion without any letter or digit is a negative either way."""


class ReplayConfig(Config):
    """Past pairs and VerifyRM's own data, mixed into every update so that old lessons are not unlearned."""

    capacity: int = Field(default=4096, ge=0)
    """Most pairs remembered: a uniform sample of all pairs of the run."""
    pairs_per_step: int = Field(default=32, ge=0)
    """Remembered pairs added to each update; 0 is no replay."""
    labelled: str | None = None
    """JSONL file of VerifyRM's training data: question, reference_answer, completion, label."""
    labelled_per_step: int = Field(default=32, ge=0)
    """Labelled completions added to each update, where there are any."""
    labelled_weight: float = Field(default=1.0, ge=0)
    """Weight of their binary cross-entropy beside the pairwise loss."""

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.pairs_per_step and not self.capacity:
            raise ValueError("pairs_per_step needs a capacity of at least 1; raise capacity, or set pairs_per_step: 0")
        if self.labelled and not self.labelled_per_step:
            raise ValueError("labelled is set but labelled_per_step is 0; raise it, or leave labelled out")
        return self


class CooptimizationConfig(Config):
    """Stage 2 of every step. The defaults are the preset `cooper`."""

    negatives: tuple[NegativeOrigin, ...] = ("assistant", "on_policy")
    """Where negatives come from: the `assistant` rewrites the positive; `on_policy` takes rule-rejected completions."""
    positives: tuple[PositiveOrigin, ...] = ("rollout", "reference_solution")
    """`rollout`: a rule-accepted completion. `reference_solution`: the data set's solution, for a group without one."""
    pairs_per_problem: int = Field(default=1, ge=1)
    """Most pairs of one problem from each source of negatives."""
    on_policy: OnPolicyConfig = OnPolicyConfig()
    """Which completions become negatives."""
    assistant: AssistantConfig | None = None
    """Who writes the wrong solutions; needed where `negatives` lists `assistant`."""
    anchor: float = Field(default=0.5, ge=0)
    """Weight of the binary cross-entropy beside the pairwise loss: keeps sigmoid(logit) an absolute reward."""
    replay: ReplayConfig = ReplayConfig()
    """Past pairs and VerifyRM's data in each update."""
    epochs: int = Field(default=1, ge=1)
    """Updates per step on the step's pairs; each draws its own replay."""

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        for name, values in (("negatives", self.negatives), ("positives", self.positives)):
            if not values:
                raise ValueError(f"{name} is empty; list at least one source")
            if len(values) != len(set(values)):
                raise ValueError(f"{name} lists a source twice: {', '.join(values)}")
        return self
