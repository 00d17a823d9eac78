"""Settings of `CooperReward`, part of every run's settings, and what it reads besides its models' weights.

Presets and short forms are expanded in the settings as they were written, before any record is made of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from cooper_rl.config.base import Config, Kinds, Places, mapping_of, merge
from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.engines import EngineConfig
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.model_folder import check_reward_model_folder
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS, SHAPINGS
from cooper_rl.rewards.kinds.function import FunctionRewardConfig
from cooper_rl.rewards.kinds.plain import read_by
from cooper_rl.rules.kinds.maths import MathsRule
from cooper_rl.rules.rule import RULES, RuleConfig
from cooper_rl.rules.verifier import Verifier
from cooper_rl.stage2.assistant import Assistant, build_assistant
from cooper_rl.stage2.config import CooptimizationConfig

HYBRIDS = Kinds("hybrid", __name__, needs=["build"], default="hybrid")
"""The settings of `hybrid`, which are those of the reward of this kind."""

RunKind = Literal["rule", "static", "cooper", "hybrid", "function"]

PAPER: dict[str, Any] = {
    "negatives": ["assistant"],
    "positives": ["rollout"],
    "pairs_per_problem": 1,
    "loss": {"kind": "pairwise", "anchor": 0.0},
    "before_policy": None,
    "replay": {"capacity": 0, "pairs_per_step": 0},
    "epochs": 1,
}
"""Cooper as published (arXiv 2508.05613, section 3): the assistant rewrites positives from the rollouts, and the loss
is pairwise only."""

LIGHT: dict[str, Any] = {"pairs_per_problem": 1, "before_policy": None, "epochs": 1, "skip_gradient_share": 0.0}
"""One pair a problem from each source and one update a step, after the policy's: for an assistant that is paid by the
reply, or a reward model much larger than the policy."""

PRESETS: dict[str, dict[str, Any]] = {
    "cooper": {},
    "cooper_light": {"cooptimization": LIGHT},
    "paper": {
        "cooptimization": PAPER,
        "algorithm": {
            "min_spread": 0.0,  # the paper divides every group by its standard deviation, however small
            "kl": {"kind": "k3", "clamp": 10.0},  # as in verl, on which the paper's code ran
        },
    },
}
"""What each preset changes about the defaults, which are the preset `cooper`: the policy's own wrong completions also
become negatives, scores stay anchored, and past pairs are replayed. Through its reference solution, even a problem
without a correct completion teaches the reward model. It learns faster than it is exploited: from several pairs a
problem, in two updates a step, and before the policy's update where the rule contradicts it.
docs/what-stops-hacking.md has what that gains and costs."""

MAIN = "main"
"""The name of the short form's reward model."""
OWN_REWARD: dict[str, str] = {"rule": "rule", "static": "reward_model", "cooper": "reward_model", "hybrid": "hybrid"}
"""The kind of reward that the short form `kind` stands for; `function` stands for none. In a run with the preset
`cooper`, the kind `cooper` stands for `earned`."""


class RewardModelConfig(ScorerConfig):
    """A reward model, frozen or learning."""

    learns: bool = False
    """Whether stage 2 trains it. At most one reward model of a run learns. For the short form `reward_model`, `kind`
    decides."""
    learning_rate: float = Field(default=1e-5, ge=0)
    """Peak learning rate of stage 2."""


class CooperRewardConfig(Config):
    """How answers are rewarded, which reward model learns, and how it learns.

    `kind`, `reward_model`, `hybrid` and `extra_rewards` are short forms. Their content is moved to `rewards` and
    `reward_models`; of the short forms, only `kind` keeps its value.
    """

    cooper_pays: ClassVar[str] = "reward_model"
    """The reward that `kind: cooper` stands for with the preset `cooper`."""

    preset: Literal["cooper", "cooper_light", "paper"] = "cooper"
    """Defaults of stage 2 and, in a run, of reward and algorithm: ours (`cooper`), ours with fewer pairs and updates
    (`cooper_light`), or the paper's published behaviour (`paper`). Explicit settings win."""
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
    hybrid: Annotated[Any, HYBRIDS] | None = None
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

    @classmethod
    def expand(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Places]:
        """Preset and short forms. Raises ValueError where a short form and what it stands for are both set."""
        preset = settings.get("preset", "cooper")
        defaults = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
        known = {name: value for name, value in defaults.items() if name in cls.model_fields}
        return _without_short_forms(merge(known, settings), cls.cooper_pays)

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
        used = (*read_by((*self.rewards, *self.shaping)), *_asked_in_stage2(self))
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


def _without_short_forms(settings: dict[str, Any], cooper_pays: str) -> tuple[dict[str, Any], Places]:
    """The settings with the short forms' content under `rewards` and `reward_models`.

    Values of a wrong type stay where they are, for the record to refuse.
    """
    kind, hybrid = settings.get("kind"), settings.get("hybrid")
    rewards, extra = settings.get("rewards", ()), settings.get("extra_rewards", ())
    models = settings.get("reward_models", {})
    lists = isinstance(rewards, list | tuple) and isinstance(extra, list | tuple)
    if not lists or not isinstance(models, dict) or kind not in (None, *get_args(RunKind)):
        return settings, {}
    places: Places = {}
    if settings.get("reward_model") is not None:
        if MAIN in models:
            raise ValueError(f"reward_model is the short form of reward_models.{MAIN}, which is set as well; keep one")
        models = {MAIN: settings["reward_model"], **models}
        places["reward_models", MAIN] = ("reward_model",)
    if rewards and extra:
        raise ValueError("extra_rewards are the short form of rewards of kind function; write them under rewards")
    if kind is None and rewards:
        if hybrid is not None:
            raise ValueError("hybrid: is the short form of a reward of kind hybrid; write its settings under rewards")
    else:
        kind = kind or "cooper"
        if not rewards:
            default = (kind, settings.get("preset", "cooper")) == ("cooper", "cooper")
            rewards = _rewards_of(cooper_pays if default else OWN_REWARD.get(kind), hybrid, extra, places)
        models = _with_learning(kind, rewards, models)
    kept = {name: settings[name] for name in settings if name not in ("reward_model", "hybrid", "extra_rewards")}
    return {**kept, "kind": kind, "rewards": rewards, "reward_models": models}, places


def _rewards_of(own_reward: str | None, hybrid: Any, extra: Sequence[Any], places: Places) -> list[Any]:
    """The reward that a short form stands for, and the user-written functions. Notes in `places` where they were."""
    own: list[Any] = [{"kind": own_reward}] if own_reward else []
    if own_reward == "hybrid" and hybrid is not None:
        own = [{"kind": "hybrid", **hybrid} if isinstance(hybrid, dict) else hybrid]
        places["rewards", "0"] = ("hybrid",)
    for index in range(len(extra)):
        places["rewards", str(len(own) + index)] = ("extra_rewards", str(index))
    return [*own, *({"kind": "function", **part} if isinstance(part, dict) else part for part in extra)]


def _with_learning(kind: str, rewards: Sequence[Any], models: dict[str, Any]) -> dict[str, Any]:
    """The models with `learns` as the kind implies, where they do not say it themselves."""
    parts = [mapping_of(part) for part in rewards] if kind in ("cooper", "hybrid") else []
    learning = {
        str(part.get("model", MAIN)) for part in parts if part.get("kind") in ("reward_model", "earned", "hybrid")
    }
    found: dict[str, Any] = {}
    for name, model in models.items():
        if isinstance(model, dict):
            model = {"learns": name in learning, **model}
        elif isinstance(model, RewardModelConfig) and "learns" not in model.model_fields_set:
            model = model.model_copy(update={"learns": name in learning})
        found[name] = model
    return found


def _check_kind(config: CooperRewardConfig) -> None:
    """Raises ValueError if `kind` lacks a reward model or function, or contradicts `rewards` or which model learns."""
    if config.kind is None:
        return
    if config.kind == "function" and not config.rewards:
        raise ValueError(
            "kind: function takes its rewards from extra_rewards only; add "
            'extra_rewards: [{function: "package.module:function"}]'
        )
    given, read = [REWARDS.kind_of(part) for part in config.rewards], read_by(config.rewards)
    own = [OWN_REWARD[config.kind]] if config.kind in OWN_REWARD else []
    if (config.kind, config.preset) == ("cooper", "cooper"):
        own = ["earned", *own]
    if [kind for kind in given if kind != "function"] not in ([[kind] for kind in own] or [[]]):
        raise ValueError(
            f"kind: {config.kind} means {' or '.join(own) or 'functions alone'}, but rewards lists "
            f"{' + '.join(given)}; remove kind or rewards"
        )
    if MAIN in read and MAIN not in config.reward_models:
        raise ValueError(
            f"kind: {config.kind} needs a reward model: set reward_model.model to a VerifyRM folder, or kind: rule"
        )
    for name, model in config.reward_models.items():
        learns = config.kind in ("cooper", "hybrid") and name in read
        if model.learns != learns:
            raise ValueError(
                f"reward_models.{name}.learns: {str(model.learns).lower()}, but with kind: {config.kind} it "
                f"{'learns' if learns else 'does not learn'}; write rewards instead of kind"
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
    read["cooptimization (agree_with, peer)"] = _asked_in_stage2(config)
    for field, names in read.items():
        if unknown := [name for name in names if name not in config.reward_models]:
            known = ", ".join(config.reward_models) or "none is configured"
            raise ValueError(f"{field}: no reward model is named {unknown[0]!r} (reward_models: {known})")
    for index, part in enumerate(config.shaping):
        part.check_place(config.rewards, config.shaping[:index])


def _asked_in_stage2(config: CooperRewardConfig) -> tuple[str, ...]:
    """Names of the reward models that are asked about pairs; without stage 2, none are."""
    if config.learning_model is None:
        return ()
    peer = config.cooptimization.peer
    return (*config.cooptimization.on_policy.agree_with, *([peer.model] if peer is not None else []))


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
    replay = config.cooptimization.replay.labelled if learns else None
    replayed = read_labelled(replay) if replay else []
    for model in config.used_models.values():
        check_reward_model_folder(model.model, model.kind)
    return RewardInputs(verifier, assistant, replayed)
