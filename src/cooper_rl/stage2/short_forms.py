"""Expands the short forms `kind`, `reward_model`, `hybrid` and `extra_rewards` into a tree of rewards."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cooper_rl.rewards.base import REWARDS
from cooper_rl.rewards.kinds.function import FunctionRewardConfig
from cooper_rl.rewards.kinds.hybrid import HybridConfig
from cooper_rl.rewards.kinds.reward_model import RewardModelRewardConfig
from cooper_rl.rewards.kinds.rule import RuleRewardConfig
from cooper_rl.rewards.kinds.sum import read_by

if TYPE_CHECKING:
    from cooper_rl.stage2.reward_config import CooperRewardConfig, RewardModelConfig

MAIN = "main"
"""The name of the short form's reward model."""


def expanded(config: "CooperRewardConfig") -> dict[str, Any]:
    """The fields that change when the short forms are expanded. Raises ValueError if they contradict the tree.

    A configuration that is already expanded stays as it is.
    """
    models = _models(config)
    kind = config.kind if config.kind is not None or config.rewards else "cooper"
    rewards = config.rewards
    if rewards and config.extra_rewards:
        raise ValueError("extra_rewards are the short form of rewards of kind function; write them under rewards")
    if kind is not None:
        own = _own_rewards(config, kind, models)
        if rewards:
            _check_agreement(kind, own, rewards)
        rewards = rewards or (*own, *config.extra_rewards)
        models = _with_learning(kind, read_by(own), models)
    elif config.hybrid is not None:
        raise ValueError("hybrid: is the short form of a reward of kind hybrid; write its settings under rewards")
    if kind == "function" and not rewards:
        raise ValueError(
            "kind: function takes its rewards from extra_rewards only; add "
            'extra_rewards: [{function: "package.module:function"}]'
        )
    return {
        "kind": kind,
        "rewards": rewards,
        "reward_models": models,
        "reward_model": None,
        "hybrid": None,
        "extra_rewards": (),
    }


def _models(config: "CooperRewardConfig") -> "dict[str, RewardModelConfig]":
    if config.reward_model is None:
        return dict(config.reward_models)
    if MAIN in config.reward_models:
        raise ValueError(f"reward_model is the short form of reward_models.{MAIN}, which is set as well; keep one")
    return {MAIN: config.reward_model, **config.reward_models}


def _own_rewards(config: "CooperRewardConfig", kind: str, models: "dict[str, RewardModelConfig]") -> tuple[Any, ...]:
    """The rewards that the kind stands for, without user-written functions."""
    if kind == "function":
        return ()
    if kind == "rule":
        return (RuleRewardConfig(),)
    if MAIN not in models:
        raise ValueError(
            f"kind: {kind} needs a reward model: set reward_model.model to a VerifyRM folder, or kind: rule"
        )
    return (config.hybrid or HybridConfig(),) if kind == "hybrid" else (RewardModelRewardConfig(),)


def _check_agreement(kind: str, own: Sequence[Any], rewards: Sequence[Any]) -> None:
    given = [part for part in rewards if not isinstance(part, FunctionRewardConfig)]
    if _outline(given) != _outline(own):
        raise ValueError(
            f"kind: {kind} means {_words(own)}, but rewards lists {_words(rewards)}; remove kind or rewards"
        )


def _outline(parts: Sequence[Any]) -> list[tuple[str, tuple[str, ...]]]:
    return [(REWARDS.kind_of(part), read_by([part])) for part in parts]


def _words(parts: Sequence[Any]) -> str:
    return " + ".join(REWARDS.kind_of(part) for part in parts) or "functions alone"


def _with_learning(
    kind: str, read: Sequence[str], models: "dict[str, RewardModelConfig]"
) -> "dict[str, RewardModelConfig]":
    """The models with `learns` as the kind implies: only the model of the kind's own reward can learn.

    Raises ValueError if a model says otherwise.
    """
    learns = {name: kind in ("cooper", "hybrid") and name in read for name in models}
    for name, model in models.items():
        if "learns" in model.model_fields_set and model.learns != learns[name]:
            says = "learns" if learns[name] else "does not learn"
            raise ValueError(
                f"reward_models.{name}.learns: {str(model.learns).lower()}, but with kind: {kind} it {says}; "
                "write rewards instead of kind"
            )
    return {name: model.model_copy(update={"learns": learns[name]}) for name, model in models.items()}
