"""Settings of `CooperReward`, part of every run's settings, and what it reads besides its models' weights.

The recipe of `kind` is put under the settings as they were written, before any record is made of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from cooper_rl.config.base import Config, Places, layered
from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.engines import EngineConfig
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.model_folder import check_reward_model_folder
from cooper_rl.errors import InputError
from cooper_rl.recipes import RECIPES, STANDS_FOR, Kind, trains
from cooper_rl.rewards.base import REWARDS, SHAPINGS
from cooper_rl.rewards.kinds.plain import read_by
from cooper_rl.rules.kinds.maths import MathsRule
from cooper_rl.rules.rule import RULES, RuleConfig
from cooper_rl.rules.verifier import Verifier
from cooper_rl.stage2.assistant import Assistant, build_assistant
from cooper_rl.stage2.config import CooptimizationConfig
from cooper_rl.stage2.pairs import PairInputs

MAIN = "main"
"""The name of `reward_model` among `reward_models`."""


class RewardModelConfig(ScorerConfig):
    """A reward model, frozen or learning."""

    learns: bool = False
    """Whether stage 2 trains it. At most one reward model of a run learns. For `reward_model`, the recipe
    of `kind` decides."""
    learning_rate: float = Field(default=1e-5, ge=0)
    """Peak learning rate of stage 2."""


class CooperRewardConfig(Config):
    """How answers are rewarded, which reward model learns, and how it learns.

    `reward_model` is the short form of `reward_models: {main: …}`, to which its content is moved.
    """

    kind: Kind = "cooper"
    """The recipe: what pays, which model learns, and the defaults of stage 2 and algorithm that go with it. `cooper`
    pays rule and co-trained reward model by their agreement, `cooper_model` the co-trained model alone, `cooper_light`
    the same with a smaller stage 2, and `paper` is Cooper as published. Without a model that learns, `rule` pays the
    rule, `static` a reward model, and `function` only the `rewards` that you list; problems then need no reference
    answer. `cooper config --kind KIND` prints the recipe. Your own settings win over it."""
    seed: int = Field(default=0, ge=0)
    """Seeds data order, sampling and pair selection."""
    rewards: tuple[Annotated[Any, REWARDS], ...] = ()
    """The policy's reward is the sum of these rewards, each times its `weight`; by default what `kind` pays. Kinds:
    `rule`, `reward_model`, `hybrid`, `ensemble`, `rule_then_model`, `earned`, `pointwise_judge`, `pairwise_judge`,
    `rubric_judge`, `function`, `sum`, or `package.module:Class`."""
    reward_models: dict[str, RewardModelConfig] = Field(default_factory=dict)
    """Reward models by name. A model that `learns` is trained even if no reward uses it. A model that neither learns
    nor is used is not loaded."""
    shaping: tuple[Annotated[Any, SHAPINGS], ...] = ()
    """Transforms applied to the finished rewards, in this order. Kinds: `cap`, `par`, `log_sigmoid`, `gate`, `rank`,
    `constraints`, `clip`, `overlong`, `length_penalty`, or `package.module:Class`."""
    reward_model: RewardModelConfig | None = None
    """Short form of `reward_models: {main: …}`; needed by all kinds but `rule` and `function`."""
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

    @classmethod
    def expand(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Places]:
        """The recipe of `kind` under the settings, and `reward_model` among `reward_models`.

        Values of a wrong type stay, for the record to refuse. Raises ValueError where a model is set in both places.
        """
        kind, models = settings.get("kind", "cooper"), settings.get("reward_models", {})
        recipe = dict(RECIPES.get(kind, {})) if isinstance(kind, str) else {}
        learned, places = recipe.pop("reward_model", {}), Places()
        if isinstance(models, dict):
            if settings.get("reward_model") is not None:
                if MAIN in models:
                    raise ValueError(f"reward_model is the short form of reward_models.{MAIN}, which is set as well")
                models = {MAIN: settings["reward_model"], **models}
                places["reward_models", MAIN] = ("reward_model",)
            if MAIN in models:
                models = {**models, MAIN: layered(RewardModelConfig, learned, models[MAIN])}
            settings = settings | {"reward_model": None, "reward_models": models}
        recipe = {name: value for name, value in recipe.items() if name in cls.model_fields}
        return layered(cls, recipe, settings), places

    @model_validator(mode="before")
    @classmethod
    def _nothing_stands_for_others(cls, settings: Any) -> Any:
        if isinstance(settings, dict) and (gone := STANDS_FOR.keys() & settings.keys()):
            raise ValueError(f"{min(gone)}: {STANDS_FOR[min(gone)]}")
        return settings

    @field_validator("kind", mode="before")
    @classmethod
    def _hybrid_is_a_reward(cls, kind: Any) -> Any:
        if kind == "hybrid":
            raise ValueError("hybrid is a reward; write kind: cooper_model and rewards: [{kind: hybrid}]")
        return kind

    @model_validator(mode="after")
    def _settings_of_the_reward_agree(self) -> Self:
        _check_kind(self)
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
        used = (*read_by((*self.rewards, *self.shaping)), *_read_by_pairs(self))
        names = dict.fromkeys([*filter(None, [self.learning_model]), *used])
        return {name: self.reward_models[name] for name in names}

    @property
    def needs_references(self) -> bool:
        """Whether problems need a reference answer that the rule accepts."""
        parts = [(part, True) for part in self.rewards] + [(part, False) for part in self.shaping]
        return bool(self.used_models) or any(getattr(part, "needs_reference", default) for part, default in parts)

    @property
    def planned_steps(self) -> int | None:
        """Number of steps of the whole run, if known."""
        return None


def _check_kind(config: CooperRewardConfig) -> None:
    """Raises ValueError if `kind` lacks rewards or a reward model, or contradicts which model learns."""
    kind, learns, models = config.kind, config.learning_model, config.reward_models
    if not config.rewards:
        raise ValueError(
            f"kind: {kind} pays only the rewards that you list, and rewards is empty; add "
            'rewards: [{kind: function, function: "package.module:function"}]'
        )
    read = read_by(config.rewards)
    if read and kind in ("rule", "function"):
        raise ValueError(
            f"kind: {kind} has no reward model, but rewards reads {read[0]}; write kind: static, or "
            "kind: cooper_model to train it"
        )
    if MAIN not in models and (MAIN in read or (trains(kind) and not models)):
        raise ValueError(
            f"kind: {kind} needs a reward model: set reward_model.model to a VerifyRM folder, or kind: rule or "
            "kind: function for rewards without a model"
        )
    if trains(kind) and learns is None:
        raise ValueError(
            f"kind: {kind} trains a reward model, but none learns; set learns: true for one of {', '.join(models)}, or "
            "kind: static"
        )
    if learns is not None and not trains(kind):
        raise ValueError(
            f"reward_models.{learns}.learns: true, but kind: {kind} trains no reward model; write kind: cooper or "
            "kind: cooper_model, with your own rewards if it shall not pay"
        )


def _check_tree(config: CooperRewardConfig) -> None:
    learning = [name for name, model in config.reward_models.items() if model.learns]
    if len(learning) > 1:
        raise ValueError(
            f"reward_models: {' and '.join(learning)} both learn; at most one can, set learns: false for the others"
        )
    for name in {"silent", "outside"} & config.rules.keys():
        if getattr(config.rules[name], "kind", None) != name:
            raise ValueError(f"rules.{name}: a kind of this name has a meaning of its own; choose another name")
    for name in config.reward_models:
        if name.rpartition("_")[2] == "after":  # of a model `x`, the record has `reward_model_x_after`
            raise ValueError(f"reward_models.{name}: the record needs the ending `after` itself; choose another name")
    read = {"rewards": read_by(config.rewards), "shaping": read_by(config.shaping)}
    read["cooptimization.pairs"] = _read_by_pairs(config)
    for field, names in read.items():
        if unknown := [name for name in names if name not in config.reward_models]:
            known = ", ".join(config.reward_models) or "none is configured"
            raise ValueError(f"{field}: no reward model is named {unknown[0]!r} (reward_models: {known})")
    for index, part in enumerate(config.shaping):
        part.check_place(config.rewards, config.shaping[:index])


def _read_by_pairs(config: CooperRewardConfig) -> tuple[str, ...]:
    """Names of the further reward models that sources and filters of pairs need; without stage 2, none."""
    return read_by(config.cooptimization.pairs) if config.learning_model is not None else ()


def outline(config: CooperRewardConfig) -> dict[str, Any]:
    """The kinds of rewards and shapings, the models they use, and the model that learns, as JSON values.

    User-written functions keep no state, so a resumed run may add or remove them.
    """
    return {
        "rewards": _kinds(config.rewards),
        "shaping": [SHAPINGS.kind_of(part) for part in config.shaping],
        "learns": config.learning_model,
    }


def check_outline(config: CooperRewardConfig, before: dict[str, Any]) -> None:
    """Raises InputError if the rewards of a checkpoint (its outline is `before`) cannot be restored with `config`."""
    now = outline(config)
    for name in before:
        if before[name] != now[name]:
            raise InputError(
                f"{name}: the checkpoint to resume from has {_words(before[name])}, this run has {_words(now[name])}; "
                "resume with the same rewards, shaping and learning model, or start a new run under another name"
            )


def _kinds(parts: Sequence[Any]) -> list[str]:
    found = []
    for part in parts:
        kind = REWARDS.kind_of(part)
        if kind == "function":
            continue
        inner = _kinds(getattr(part, "rewards", ()))
        reads = [] if inner else list(part.reads())
        found.append(kind + (f"({', '.join(inner or reads)})" if inner or reads else ""))
    return found


def _words(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value or "none")


@dataclass(frozen=True)
class RewardInputs:
    """The rule verifier, the assistant (None if there is none) and the rows that stage 2 replays (may be empty)."""

    verifier: Verifier
    assistant: Assistant | None
    replayed: list[LabelledCompletion]


def read_reward_inputs(config: CooperRewardConfig) -> RewardInputs:
    """Read and check everything but the models' weights. Raises InputError for any mistake that a user can fix."""
    for part in (*config.rewards, *config.shaping):
        part.build()  # finds the user's functions
    verifier = Verifier(config.rule, config.rules)
    learns = config.learning_model is not None
    assistant = build_assistant(config.cooptimization, verifier) if learns else None
    for part in config.cooptimization.pairs if learns else ():
        part.build(PairInputs(config.cooptimization, verifier, assistant)).close()
    replay = config.cooptimization.replay.labelled if learns else None
    replayed = read_labelled(replay) if replay else []
    for model in config.used_models.values():
        check_reward_model_folder(model.model, model.kind)
    return RewardInputs(verifier, assistant, replayed)
