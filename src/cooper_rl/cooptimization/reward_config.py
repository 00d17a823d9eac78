"""What pays a policy and which reward model learns: the settings of `CooperReward`, a part of every run's."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.cooptimization.config import CooptimizationConfig
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.rewards.base import REWARDS, SHAPINGS
from cooper_rl.rewards.kinds.function import FunctionRewardConfig
from cooper_rl.rewards.kinds.hybrid import HybridConfig
from cooper_rl.rewards.kinds.sum import read_by
from cooper_rl.rewards.rule.config import RuleConfig

RunKind = Literal["rule", "static", "cooper", "hybrid", "function"]


class RewardModelConfig(LearnerConfig):
    """A reward model, frozen or learning."""

    learns: bool = False
    """Whether stage 2 trains it; at most one reward model of a run learns. In the short form `reward_model`, `kind`
    decides."""
    learning_rate: float = Field(default=1e-5, ge=0)
    """Peak learning rate of stage 2."""
    max_input_tokens: int = Field(default=2048, ge=16)
    """Longer inputs lose the middle of the completion, never its end."""


class CooperRewardConfig(Config):
    """What pays, what learns, and how.

    `kind`, `reward_model`, `hybrid` and `extra_rewards` are short forms: a checked record has what they say in
    `rewards` and `reward_models`, and nothing in them but `kind`.
    """

    kind: RunKind | None = None
    """Short form of `rewards` and of which model learns: the `rule` pays, a `static` reward model, a co-trained one
    (`cooper`), rule and co-trained model (`hybrid`), or nothing but functions of your own (`function`; problems then
    need no reference answer). Null is `cooper` where `rewards` is empty."""
    seed: int = Field(default=0, ge=0)
    """Seeds data order, sampling and pair selection."""
    rewards: tuple[Annotated[Any, REWARDS], ...] = ()
    """What pays the policy: the sum of these rewards, each times its `weight`. Kinds: `rule`, `reward_model`, `hybrid`,
    `function`, `sum`, or `package.module:Class`."""
    reward_models: dict[str, RewardModelConfig] = Field(default_factory=dict)
    """Reward models by name. A model that `learns` is trained whether it pays or not; one that neither learns nor pays
    is not loaded."""
    shaping: tuple[Annotated[Any, SHAPINGS], ...] = ()
    """Transforms of the finished rewards, in order. Kinds: `clip`, `overlong`, `length_penalty`, or
    `package.module:Class`."""
    reward_model: RewardModelConfig | None = None
    """Short form of `reward_models: {main: …}`; needed by the kinds `static`, `cooper` and `hybrid`."""
    hybrid: HybridConfig | None = None
    """Short form of the settings of the reward of `kind: hybrid`."""
    extra_rewards: tuple[FunctionRewardConfig, ...] = ()
    """Short form of more `rewards` of kind `function`; `kind: function` needs one."""
    cooptimization: CooptimizationConfig = CooptimizationConfig()
    """Stage 2: pairs and the reward model's update."""
    rule: RuleConfig = RuleConfig()
    """The rule verifier."""

    @model_validator(mode="after")
    def _expand(self) -> Self:
        from cooper_rl.cooptimization.short_forms import expanded  # noqa: PLC0415 - it reads this module's records

        vars(self).update(expanded(self))  # frozen for everyone else
        _check_tree(self)
        return self

    @property
    def learning_model(self) -> str | None:
        """The name of the reward model that stage 2 trains."""
        return next((name for name, model in self.reward_models.items() if model.learns), None)

    @property
    def used_models(self) -> dict[str, RewardModelConfig]:
        """The reward models that learn or pay, the one that learns first."""
        names = dict.fromkeys([*filter(None, [self.learning_model]), *read_by(self.rewards)])
        return {name: self.reward_models[name] for name in names}

    @property
    def needs_references(self) -> bool:
        """Whether problems need a reference answer that the rule accepts."""
        return bool(self.used_models) or any(getattr(part, "needs_reference", True) for part in self.rewards)

    @property
    def planned_steps(self) -> int | None:
        """Steps of the whole run, where they are known."""
        return None


def _check_tree(config: CooperRewardConfig) -> None:
    learning = [name for name, model in config.reward_models.items() if model.learns]
    if len(learning) > 1:
        raise ValueError(
            f"reward_models: {' and '.join(learning)} both learn; at most one can, set learns: false for the others"
        )
    for name in read_by(config.rewards):
        if name not in config.reward_models:
            known = ", ".join(config.reward_models) or "none is configured"
            raise ValueError(f"rewards: no reward model is named {name!r} (reward_models: {known})")
