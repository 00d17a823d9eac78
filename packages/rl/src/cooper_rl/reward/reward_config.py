"""Settings of `CooperReward`, part of every run's settings, and what it reads besides its models' weights.

The recipe of `kind` is put under the settings as they were written, before any record is made of them.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from cooper_base.config.base import Config, Places, given_settings, layered, mapping_of, records_within
from cooper_base.data.labelled import LabelledCompletion, read_labelled
from cooper_base.errors import InputError
from cooper_rl.engines import EngineConfig
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.model_folder import (
    check_model_folder,
    check_reward_model_folder,
    lacks_chat_template,
    no_chat_template,
)
from cooper_rl.reward.base import REWARDS, SHAPINGS
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.kinds.grader import GraderRewardConfig
from cooper_rl.reward.pairs.assistant import Assistant
from cooper_rl.reward.pairs.base import PAIRS, PairInputs, PairSourceConfig
from cooper_rl.reward.recipes import RECIPES, Kind, set_by_recipes, trains
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import RULES, RuleConfig
from cooper_verify.rules.verifier import Verifier

logger = logging.getLogger(__name__)


class RewardModelConfig(ScorerConfig):
    """A reward model, frozen or learning."""

    learns: bool = False
    """Whether cooptimization trains it. The recipe of `kind` decides."""
    learning_rate: float = Field(default=1e-5, ge=0)
    """Peak learning rate of cooptimization."""


class CooperRewardConfig(Config):
    """How answers are rewarded, whether the reward model learns, and how it learns."""

    kind: Kind = "cooper"
    """The recipe: what pays, whether the reward model learns, and the defaults of cooptimization and algorithm that go
    with it. `cooper` pays rule and co-trained reward model by their agreement, `cooper_model` the co-trained model
    alone, `cooper_light` the same with less cooptimization, and `paper` is Cooper as published. `gad` distils a teacher
    whose answers are the problems' solutions: the co-trained model tells them from the policy's, and its score pays.
    Without a model that learns, `rule` pays the rule, `static` a reward model, and `function` only the `rewards` that
    you list. With `function` and `gad` problems need no reference answer. `cooper config --kind KIND` prints the
    recipe. Your own settings win over it."""
    seed: int = Field(default=0, ge=0)
    """Seeds data order, sampling and pair selection."""
    rewards: tuple[Annotated[Any, REWARDS], ...] = ()
    """The policy's reward is the sum of these rewards, each times its `weight`; by default what `kind` pays. Kinds:
    `rule`, `reward_model`, `environment`, `hybrid`, `rule_then_model`, `earned`, `function`, `package.module:Class`,
    or a grader: `judge.yaml`, a reward model's folder, `file.py:function`, …"""
    shaping: tuple[Annotated[Any, SHAPINGS], ...] = ()
    """Transforms applied to the finished rewards, in this order. Kinds: `cap`, `par`, `gate`, `clip`, `overlong`,
    `length_penalty`, or `package.module:Class`."""
    reward_model: RewardModelConfig | None = None
    """The run's reward model; needed by all kinds but `rule` and `function`. It is trained if it `learns`, even if no
    reward reads it. If it neither learns nor is read, it is not loaded."""
    cooptimization: CooptimizationConfig = CooptimizationConfig()
    """Cooptimization: pairs and the reward model's update."""
    rule: Annotated[RuleConfig, RULES] = MathsRule()
    """The rule that gives verdicts on completions: `maths`, `exact`, `choice`, `numeric`, `package.module:function`
    for your own rule, or a grader that says correct or wrong: `judge.yaml`, a reward model's folder, `file.py:Class`.
    Problems that name a rule use that one instead."""
    rules: dict[str, Annotated[RuleConfig, RULES]] = Field(default_factory=dict)
    """Further rules by name, for problems that name their rule. A problem can also name a kind directly; it then gets
    that kind's defaults."""
    engine: EngineConfig = LocalEngine()
    """Where models are trained and sampled."""

    @classmethod
    def set_by_kinds(cls, key: str, kind: str | None) -> dict[str, Any]:
        return set_by_recipes(key, kind)

    @classmethod
    def expand(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Places]:
        """The recipe of `kind` under the settings. Values of a wrong type stay, for the record to refuse."""
        kind = settings.get("kind", "cooper")
        recipe = dict(RECIPES.get(kind, {})) if isinstance(kind, str) else {}
        if settings.get("reward_model") is None:
            recipe.pop("reward_model", None)
        recipe = without_assistant(recipe, settings.get("cooptimization"))
        recipe = {name: value for name, value in recipe.items() if name in cls.model_fields}
        return layered(cls, recipe, settings), {}

    @model_validator(mode="after")
    def _settings_of_the_reward_agree(self) -> Self:
        _check_kind(self)
        if reads_environment(self.parts) and self.environment is None:
            raise ValueError(
                "rewards: kind environment pays what get_reward() of an environment returns, and there is none; set "
                "rollout.environment (in another trainer, list the environment's reward among its own reward functions)"
            )
        for name in {"silent", "outside"} & self.rules.keys():
            if getattr(self.rules[name], "kind", None) != name:
                raise ValueError(f"rules.{name}: a kind of this name has a meaning of its own; choose another name")
        for index, part in enumerate(self.shaping):
            part.check_place(self.rewards, self.shaping[:index])
        if (model := self.loaded_model) is not None and not model.reads_reference:
            for part in self.pair_parts:
                if part.swaps_references:
                    raise ValueError(
                        f"cooptimization.pairs: {PAIRS.kind_of(part)} scores completions under other references, but "
                        "reward_model.input: chat has no reference in it; set reward_model.input: chat_with_reference, "
                        "or leave it out"
                    )
        return self

    @property
    def learns(self) -> bool:
        """Whether cooptimization trains the reward model."""
        return self.reward_model is not None and self.reward_model.learns

    @property
    def pair_parts(self) -> tuple[PairSourceConfig, ...]:
        """The sources and filters of pairs, if the reward model learns."""
        return self.cooptimization.pairs if self.learns else ()

    @property
    def parts(self) -> tuple[Config, ...]:
        """What may read the reward model and bring models of its own: rewards, shapings, and the sources of pairs."""
        return (*self.rewards, *self.shaping, *self.pair_parts)

    @property
    def loaded_model(self) -> RewardModelConfig | None:
        """The reward model, if it learns or a part reads it."""
        return self.reward_model if self.learns or reads_model(self.parts) else None

    @property
    def scorers(self) -> list[ScorerConfig]:
        """Every reward model that the run loads: its own, and those of its parts."""
        of_parts = [record for record in records_within(self.parts) if isinstance(record, ScorerConfig)]
        return [*filter(None, [self.loaded_model]), *of_parts]

    @property
    def needs_references(self) -> bool:
        """Whether problems need a reference answer that the rule accepts."""
        if self.loaded_model is not None and self.loaded_model.reads_reference:
            return True
        return any(part.needs_reference for part in (*self.rewards, *self.shaping, *self.pair_parts))

    @property
    def planned_steps(self) -> int | None:
        """Number of steps of the whole run, if known."""
        return None

    @property
    def environment(self) -> str | None:
        """The environment that completions are drawn in, which only a run of Cooper's own loop has."""
        return None


def without_assistant(recipe: dict[str, Any], given: Any = None) -> dict[str, Any]:
    """A recipe without the pairs of an assistant that the settings `given` for cooptimization do not describe, if
    others are left. Pairs that the settings list are not touched: an assistant among them is required."""
    stage_2 = recipe.get("cooptimization")
    if not stage_2 or (given_settings(given) or {}).get("assistant") is not None:
        return recipe
    pairs = stage_2.get("pairs", CooptimizationConfig.model_fields["pairs"].default)
    others = tuple(part for part in pairs if mapping_of(part).get("kind") != "assistant")
    return recipe | {"cooptimization": stage_2 | {"pairs": others}} if others else recipe


def _check_kind(config: CooperRewardConfig) -> None:
    """Raises ValueError if `kind` lacks rewards or a reward model, or contradicts that the model learns."""
    kind = config.kind
    if not config.rewards:
        raise ValueError(
            f"kind: {kind} pays only the rewards that you list, and rewards is empty; add "
            'rewards: [{kind: function, function: "package.module:function"}]'
        )
    if reads_model(config.rewards) and kind in ("rule", "function"):
        raise ValueError(
            f"kind: {kind} has no reward model, but rewards reads one; write kind: static, or kind: cooper_model to "
            "train it"
        )
    if config.reward_model is None and (trains(kind) or reads_model(config.parts)):
        raise ValueError(
            f"kind: {kind} needs a reward model: set reward_model.model to a VerifyRM folder, or kind: rule or "
            "kind: function for rewards without a model"
        )
    if trains(kind) and not config.learns:
        raise ValueError(
            f"kind: {kind} trains the reward model; remove reward_model.learns: false, or write kind: static"
        )
    if config.learns and not trains(kind):
        raise ValueError(
            f"reward_model.learns: true, but kind: {kind} trains no reward model; write kind: cooper or "
            "kind: cooper_model, with your own rewards if it shall not pay"
        )


def reads_model(parts: Sequence[Config]) -> bool:
    """Whether one of these parts, or a part inside one, reads the run's reward model."""
    return any(getattr(record, "reads_model", False) for record in records_within(parts))


def reads_environment(parts: Sequence[Config]) -> bool:
    """Whether one of these parts, or a part inside one, reads the rewards of an environment."""
    return any(getattr(record, "reads_environment", False) for record in records_within(parts))


def outline(config: CooperRewardConfig) -> dict[str, Any]:
    """The kinds of rewards and shapings, and whether the reward model learns, as JSON values.

    User-written functions and graders keep no state, so a resumed run may add or remove them.
    """
    return {
        "rewards": _kinds(config.rewards),
        "shaping": [SHAPINGS.kind_of(part) for part in config.shaping],
        "learns": "the reward model" if config.learns else "",
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
    kinds = [REWARDS.kind_of(part) for part in parts if not isinstance(part, GraderRewardConfig)]
    return [kind for kind in kinds if kind != "function"]


def _words(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value or "none")


@dataclass(frozen=True)
class RewardInputs:
    """The rule verifier, the assistant (None if there is none) and the rows that updates replay (may be empty)."""

    verifier: Verifier
    assistant: Assistant | None
    replayed: list[LabelledCompletion]

    def check_servers(self, config: CooperRewardConfig) -> None:
        """Raises InputError if the assistant, or a server that a part of the reward needs, does not answer."""
        if self.assistant is not None:
            self.assistant.check()
        for part in (*config.rewards, *config.shaping, *config.pair_parts):
            part.check()


def read_reward_inputs(config: CooperRewardConfig) -> RewardInputs:
    """Read and check everything but the models' weights. Raises InputError for any mistake that a user can fix."""
    for part in (*config.rewards, *config.shaping):
        part.build()  # finds the user's functions
    verifier = Verifier(config.rule, config.rules)
    assistant = config.cooptimization.build_assistant(verifier) if config.learns else None
    for part in config.pair_parts:
        part.build(PairInputs(config.cooptimization, verifier, assistant)).close()
    reads_reference = config.loaded_model is None or config.loaded_model.reads_reference
    replay = config.cooptimization.replay.labelled if config.learns else None
    replayed = read_labelled(replay, reads_reference) if replay else []
    for model in config.scorers:
        if model is config.loaded_model and not config.engine.reward_model_has_head:
            check_model_folder(model.model)
        else:
            check_reward_model_folder(model.model, model.kind)
        if model.input != "tagged" and lacks_chat_template(model.model):
            raise no_chat_template(model.model)
    if not reads_reference:
        logger.info(
            "reward_model.input: chat: the reward model reads no reference answer, so what swaps references is off: "
            "the pairs swapped_reference and near_reference, the ground keeps_score, "
            "reward_model/kept_when_near, and reward_model/kept_when_swapped_* with its sign in the alarm"
        )
    return RewardInputs(verifier, assistant, replayed)


def comparing_part(rewards: Sequence[Any], shaping: Sequence[Any]) -> str | None:
    """The first setting whose part compares the answers of a group, with its kind; None if there is none."""
    for setting, kinds, parts in (("rewards", REWARDS, rewards), ("shaping", SHAPINGS, shaping)):
        for place, part in enumerate(parts):
            if part.compares_answers:
                return f"{setting}.{place} ({kinds.kind_of(part)})"
    return None
