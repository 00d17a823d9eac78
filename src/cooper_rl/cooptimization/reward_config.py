"""Settings of `CooperReward`, part of every run's settings: how answers are rewarded and which reward model learns."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.cooptimization.config import CooptimizationConfig
from cooper_rl.engines import EngineConfig
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.rewards.base import REWARDS, SHAPINGS
from cooper_rl.rewards.kinds.function import FunctionRewardConfig
from cooper_rl.rewards.kinds.hybrid import HybridConfig
from cooper_rl.rewards.kinds.sum import read_by
from cooper_rl.rules.kinds.maths import MathsRule
from cooper_rl.rules.rule import RULES, RuleConfig

RunKind = Literal["rule", "static", "cooper", "hybrid", "function"]


class RewardModelConfig(LearnerConfig):
    """A reward model, frozen or learning."""

    learns: bool = False
    """Whether stage 2 trains it. At most one reward model of a run learns. For the short form `reward_model`, `kind`
    decides."""
    learning_rate: float = Field(default=1e-5, ge=0)
    """Peak learning rate of stage 2."""
    max_input_tokens: int = Field(default=2048, ge=16)
    """Maximum length of an input in tokens. Longer inputs lose the middle of the completion, never its end."""


class CooperRewardConfig(Config):
    """How answers are rewarded, which reward model learns, and how it learns.

    `kind`, `reward_model`, `hybrid` and `extra_rewards` are short forms. Validation writes their content into `rewards`
    and `reward_models`; of the short forms, only `kind` keeps its value.
    """

    kind: RunKind | None = None
    """Short form of `rewards` and of which model learns. The reward comes from the `rule`, a `static` reward model, a
    co-trained one (`cooper`), the rule and a co-trained model (`hybrid`), or only your own functions (`function`;
    problems then need no reference answer). Null means `cooper` if `rewards` is empty."""
    seed: int = Field(default=0, ge=0)
    """Seeds data order, sampling and pair selection."""
    rewards: tuple[Annotated[Any, REWARDS], ...] = ()
    """The policy's reward is the sum of these rewards, each times its `weight`. Kinds: `rule`, `reward_model`,
    `hybrid`, `ensemble`, `rule_then_model`, `earned`, `pointwise_judge`, `pairwise_judge`, `rubric_judge`, `function`,
    `sum`, or `package.module:Class`."""
    reward_models: dict[str, RewardModelConfig] = Field(default_factory=dict)
    """Reward models by name. A model that `learns` is trained even if no reward uses it. A model that neither learns
    nor is used is not loaded."""
    shaping: tuple[Annotated[Any, SHAPINGS], ...] = ()
    """Transforms applied to the finished rewards, in this order. Kinds: `cap`, `par`, `log_sigmoid`, `gate`, `rank`,
    `constraints`, `clip`, `overlong`, `length_penalty`, or `package.module:Class`."""
    reward_model: RewardModelConfig | None = None
    """Short form of `reward_models: {main: …}`; needed by the kinds `static`, `cooper` and `hybrid`."""
    hybrid: HybridConfig | None = None
    """Short form of the hybrid reward's settings, for `kind: hybrid`."""
    extra_rewards: tuple[FunctionRewardConfig, ...] = ()
    """Short form of further `rewards` of kind `function`; `kind: function` needs at least one."""
    cooptimization: CooptimizationConfig = CooptimizationConfig()
    """Stage 2: pairs and the reward model's update."""
    rule: Annotated[RuleConfig, RULES] = MathsRule()
    """The rule that gives verdicts on completions: `maths`, `exact`, `choice`, `numeric`, or `package.module:function`
    for your own rule. Problems that name a rule use that one instead."""
    rules: dict[str, Annotated[RuleConfig, RULES]] = Field(default_factory=dict)
    """Further rules by name, for problems that name their rule. A problem can also name a kind directly; it then gets
    that kind's defaults."""
    engine: EngineConfig = LocalEngine()
    """Where models are trained and sampled."""

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
        """The reward models that learn, or are used in a reward, in a shaping or to check pairs.

        The one that learns comes first.
        """
        used = (*read_by((*self.rewards, *self.shaping)), *_asked_in_stage2(self))
        names = dict.fromkeys([*filter(None, [self.learning_model]), *used])
        return {name: self.reward_models[name] for name in names}

    @property
    def needs_references(self) -> bool:
        """Whether problems need a reference answer that the rule accepts."""
        return (
            bool(self.used_models)
            or any(getattr(part, "needs_reference", True) for part in self.rewards)
            or any(getattr(part, "needs_reference", False) for part in self.shaping)
        )

    @property
    def planned_steps(self) -> int | None:
        """Number of steps of the whole run, if known."""
        return None


def _check_tree(config: CooperRewardConfig) -> None:
    learning = [name for name, model in config.reward_models.items() if model.learns]
    if len(learning) > 1:
        raise ValueError(
            f"reward_models: {' and '.join(learning)} both learn; at most one can, set learns: false for the others"
        )
    for field, names in (
        ("rewards", read_by(config.rewards)),
        ("shaping", read_by(config.shaping)),
        ("cooptimization (agree_with, peer)", _asked_in_stage2(config)),
    ):
        for name in names:
            if name not in config.reward_models:
                known = ", ".join(config.reward_models) or "none is configured"
                raise ValueError(f"{field}: no reward model is named {name!r} (reward_models: {known})")
    for index, part in enumerate(config.shaping):
        if hasattr(part, "check_place"):
            part.check_place(config.rewards, config.shaping[:index])


def _asked_in_stage2(config: CooperRewardConfig) -> tuple[str, ...]:
    """Names of the reward models that are asked about pairs; without stage 2, none are."""
    if config.learning_model is None:
        return ()
    peer = config.cooptimization.peer
    return (*config.cooptimization.on_policy.agree_with, *([peer.model] if peer is not None else []))
