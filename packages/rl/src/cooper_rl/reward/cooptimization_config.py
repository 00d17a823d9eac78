"""Settings of `cooptimization`: how pairs are made and how the reward model learns from them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from cooper_base.config.base import Config
from cooper_rl.engines.losses.reward_model import PairLossConfig, PairwiseLoss
from cooper_rl.reward.pairs.assistant import Assistant, AssistantConfig
from cooper_rl.reward.pairs.base import PAIRS, PairFilterConfig, PairsConfig
from cooper_rl.reward.pairs.sources.assistant import AssistantPairs
from cooper_rl.reward.pairs.sources.on_policy import OnPolicyPairs
from cooper_verify.rules.rule import Rule

PositiveOrigin = Literal["rollout", "reference_solution"]

LABELLED_PER_STEP = 32
"""Labelled completions added to each update, as many as past pairs by default."""


class ReplayConfig(Config):
    """Past pairs and VerifyRM's training data, mixed into every update so that the reward model does not forget."""

    pairs_per_step: int = Field(default=32, ge=0)
    """Number of past pairs added to each update; 0 turns their replay off. Up to 4,096 pairs are remembered: a uniform
    sample of all pairs of the run."""
    labelled: str | None = None
    """JSONL file of VerifyRM's training data: question, reference_answer, completion, label. 32 of its rows are added
    to each update, by a binary cross-entropy whose weight is that of all pairs together."""


class CooptimizationConfig(Config):
    """The reward model's half of every step: making pairs and learning from them."""

    pairs: tuple[PairsConfig, ...] = (AssistantPairs(), OnPolicyPairs())
    """Sources of pairs, and filters that leave out pairs or weight them, in this order. The `assistant` rewrites the
    positive into a wrong completion; `on_policy` takes rule-rejected completions; `swapped_reference` takes the
    positive itself under a reference answer that it does not match; `near_reference`, which `kind: cooper` has too,
    takes a completion under the answer that it states and one near to that; or `package.module:Class`. Where neither
    `pairs` nor an `assistant` is set, the recipes go without the assistant's pairs, but for `paper`, which has no
    others."""
    positives: tuple[PositiveOrigin, ...] = ("rollout", "reference_solution")
    """Sources of positives: `rollout` takes a rule-accepted completion; `reference_solution` takes the data set's
    solution if the group has no accepted completion."""
    pairs_per_problem: int = Field(default=4, ge=1)
    """Maximum number of pairs per problem from each source."""
    assistant: AssistantConfig | None = None
    """The model or function that writes the wrong solutions; needed if your `pairs` list `assistant`, and by `kind:
    paper`."""
    loss: PairLossConfig = PairwiseLoss()
    """The loss of the pairs: `pairwise`, or `package.module:Class`."""
    before_policy: float | None = Field(default=0.1, ge=0, le=1)
    """Train the reward model before the policy, and score the step's completions again, in steps in which the model
    accepts more than this share of what the rule calls wrong; 0 does so in every step. The policy is then not paid for
    a hack that the step has already shown, but it waits for the assistant. Null trains the policy first in every step.
    It has no effect where another trainer calls `CooperReward`."""
    replay: ReplayConfig = ReplayConfig()
    """Past pairs and VerifyRM's training data in each update."""
    epochs: int = Field(default=1, ge=1)
    """Updates per step on the step's pairs. Each update draws its own replay. A reward model that pays alone learns in
    time with 2, which is what `kind: cooper_model` has."""
    skip_gradient_share: float = Field(default=0.0, ge=0, lt=1)
    """Skip the backward pass of the pairs and labelled rows that pull least at their logits, as many as together have
    at most this share of the sum of |dloss / dlogit| in an update, and each that is settled: at whose logits its own
    loss pulls less than 0.05, without the row's weight (for a pair, the sum over both sides: 1.25 where the logits are
    0). Where all of a step's new pairs are settled, past ones are not drawn and the weights stay as they are. 0 skips
    none and gives the whole gradient."""

    def build_assistant(self, verifier: Rule) -> Assistant | None:
        """The configured assistant, or None if no source of pairs uses it.

        Raises InputError if its API key is not set or its function is not found.
        """
        used = any(isinstance(part, AssistantPairs) for part in self.pairs)
        return self.assistant.build(verifier) if used and self.assistant is not None else None

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if all(isinstance(part, PairFilterConfig) for part in self.pairs):
            raise ValueError("pairs lists no source of pairs; add one, such as {kind: on_policy}")
        if not self.positives:
            raise ValueError("positives is empty; list at least one source")
        for name, kinds in (("pairs", [PAIRS.kind_of(part) for part in self.pairs]), ("positives", self.positives)):
            if len(kinds) != len(set(kinds)):
                raise ValueError(f"{name} lists a source twice: {', '.join(kinds)}")
        return self
