"""Settings of stage 2: how pairs are made and how the reward model learns from them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.losses.reward_model import PairLossConfig, PairwiseLoss
from cooper_rl.stage2.assistant import AssistantConfig

NegativeOrigin = Literal["assistant", "on_policy", "swapped_reference"]
PositiveOrigin = Literal["rollout", "reference_solution", "repaired"]
Unread = Literal["several_answers", "cut_off", "keeps_score", "above_solution"]
TieOrigin = Literal["two_right", "irrelevant_question"]
Weighting = Literal["equal", "misranked", "overpaid"]


class OnPolicyConfig(Config):
    """Negatives taken from the policy's own completions.

    The rule's verdict is their only label. If the rule misses right answers, some of these negatives are in fact right,
    and taking the highest-scored first finds exactly those. Prefer `order: random` if the rule often says `wrong` of
    right answers.
    """

    order: Literal["hardest", "random"] = "hardest"
    """`hardest` takes the completions that the reward model scores highest, because these show how it is hacked;
    `random` takes any."""
    trust_unparsed: bool = False
    """Whether a completion in which the rule finds no answer counts as wrong. Off by default, because the rule may
    also fail to find a right answer of unusual form. A completion without any letter or digit is always a negative."""
    unread: tuple[Unread, ...] = ("several_answers", "cut_off")
    """Why a completion is wrong that the rule does not judge, because it cannot read it or is silent on its problem. It
    gives more answers than the reference has (`several_answers`), was cut at the length limit (`cut_off`), is accepted
    under the reference of another problem of the step too, where that is a different answer (`keeps_score`), or scores
    higher than the data set's solution (`above_solution`)."""
    agree_with: tuple[str, ...] = ()
    """Names of further reward models (`reward_models`), such as a frozen copy of the start. A completion that all of
    them and the learning model score above 1/2 is not a negative, since the rule has probably missed a right answer.
    This helps against a rule that misses many; a hack that all the models accept is then never taught as wrong."""


class PeerConfig(Config):
    """A second reward model that picks the pairs."""

    model: str
    """Its name in `reward_models`, best a model trained from another seed or on other data."""
    noise: float = Field(gt=0, lt=1)
    """Share of a step's pairs to leave out, about the share whose labels are wrong."""


class ReplayConfig(Config):
    """Past pairs and VerifyRM's training data, mixed into every update so that the reward model does not forget."""

    capacity: int = Field(default=4096, ge=0)
    """Maximum number of remembered pairs. They are a uniform sample of all pairs of the run."""
    pairs_per_step: int = Field(default=32, ge=0)
    """Number of remembered pairs added to each update; 0 turns their replay off."""
    labelled: str | None = None
    """JSONL file of VerifyRM's training data: question, reference_answer, completion, label."""
    labelled_per_step: int = Field(default=32, ge=0)
    """Number of labelled completions added to each update if `labelled` is set."""
    labelled_weight: float = Field(default=1.0, ge=0)
    """Weight of the labelled completions' binary cross-entropy relative to the pairwise loss."""

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.pairs_per_step and not self.capacity:
            raise ValueError("pairs_per_step needs a capacity of at least 1; raise capacity, or set pairs_per_step: 0")
        if self.labelled and not self.labelled_per_step:
            raise ValueError("labelled is set but labelled_per_step is 0; raise it, or leave labelled out")
        return self


class CooptimizationConfig(Config):
    """Stage 2 of every step."""

    negatives: tuple[NegativeOrigin, ...] = ("assistant", "on_policy")
    """Sources of negatives: the `assistant` rewrites the positive; `on_policy` takes rule-rejected completions;
    `swapped_reference` takes the positive itself under a reference answer that it does not match."""
    positives: tuple[PositiveOrigin, ...] = ("rollout", "reference_solution")
    """Sources of positives: `rollout` takes a rule-accepted completion; `reference_solution` takes the data set's
    solution if the group has no accepted completion; `repaired` adds pairs of a rule-rejected completion and its repair
    by the assistant, also in groups without a positive of another source."""
    ties: tuple[TieOrigin, ...] = ()
    """Sources of pairs that should score the same: `two_right` takes two completions of a problem that the rule
    accepts; `irrelevant_question` takes a right and a wrong one under the question of another problem."""
    pairs_per_problem: int = Field(default=4, ge=1)
    """Maximum number of pairs per problem from each source of negatives, and of ties."""
    on_policy: OnPolicyConfig = OnPolicyConfig()
    """Which completions become negatives."""
    assistant: AssistantConfig | None = None
    """The model or function that writes the wrong solutions and the repairs; needed if `negatives` lists `assistant` or
    `positives` lists `repaired`."""
    loss: PairLossConfig = PairwiseLoss()
    """The loss of the pairs: `pairwise`, or `package.module:Class`."""
    tie_weight: float = Field(default=1.0, ge=0)
    """Weight of the mean loss of the ties relative to the mean loss of the other pairs."""
    weighting: Weighting = "equal"
    """Weights of the pairs in an update, scaled to mean 1. `equal` weights them equally; `misranked` by 1 -
    sigmoid(positive logit - negative logit), how wrong the order was; `overpaid` by sigmoid(negative logit), the reward
    that the wrong completion got. The logits are those from before the update in which the pair was new."""
    before_policy: float | None = Field(default=0.1, ge=0, le=1)
    """Train the reward model before the policy, and score the step's completions again, in steps in which the model
    accepts more than this share of what the rule calls wrong. The policy is then not paid for a hack that the step has
    already shown, but it waits for the assistant. Null trains the policy first in every step. It has no effect where
    another trainer calls `CooperReward`."""
    peer: PeerConfig | None = None
    """Leave out the share of a step's pairs that another reward model finds hardest, because their labels may be wrong.
    It helps against a rule that is often wrong; a hole that both models have is then never closed, since its pairs are
    the hardest. Null keeps all."""
    replay: ReplayConfig = ReplayConfig()
    """Past pairs and VerifyRM's training data in each update."""
    epochs: int = Field(default=1, ge=1)
    """Updates per step on the step's pairs. Each update draws its own replay. A reward model that pays alone learns in
    time with 2, which is what `kind: cooper_model` has."""
    skip_gradient_share: float = Field(default=0.0, ge=0, lt=1)
    """Skip the backward pass of the pairs and labelled rows that pull least at their logits, as many as together have
    at most this share of the sum of |dloss / dlogit| in an update. Where the reward model is already right about most
    pairs, 0.05 skips most of them. 0 skips none and gives the whole gradient."""
    settled_below: float = Field(default=0.0, ge=0)
    """Skip as well the backward pass of each pair and row at whose logits its own loss pulls less than this, by
    |dloss / dlogit| without the row's weight (for a pair, the sum over both sides: 1.25 where the logits are 0). Where
    that is all of a step's new pairs, past ones are not drawn and the weights stay as they are. 0 skips none."""
    pairs_scored_after: int | None = Field(default=16, ge=1)
    """How many of a step's new pairs are scored again after the last update, for `reward_model/pair_accuracy_after` and
    the record: of each origin its share, evenly spaced. It changes no training. Null scores all."""

    @property
    def needs_assistant(self) -> bool:
        """Whether a source of negatives or positives is the assistant."""
        return "assistant" in self.negatives or "repaired" in self.positives

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        for name in ("negatives", "positives", "ties"):
            values = getattr(self, name)
            if not values and name != "ties":
                raise ValueError(f"{name} is empty; list at least one source")
            if len(values) != len(set(values)):
                raise ValueError(f"{name} lists a source twice: {', '.join(values)}")
        return self
