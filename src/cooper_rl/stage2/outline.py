"""Whether a checkpoint of a reward fits a configuration."""

from collections.abc import Sequence
from typing import Any

from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS, SHAPINGS
from cooper_rl.stage2.reward_config import CooperRewardConfig


def outline(config: CooperRewardConfig) -> dict[str, Any]:
    """The kinds of rewards and shapings, the models they use, and the model that learns, as JSON values.

    User-written functions keep no state, so a resumed run may add or remove them.
    """
    return {
        "rewards": _rewards(config.rewards),
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


def _rewards(parts: Sequence[Any]) -> list[str]:
    found = []
    for part in parts:
        kind = REWARDS.kind_of(part)
        if kind == "function":
            continue
        inner = _rewards(getattr(part, "rewards", ()))
        reads = list(part.reads()) if hasattr(part, "reads") and not inner else []
        found.append(kind + (f"({', '.join(inner or reads)})" if inner or reads else ""))
    return found


def _words(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value or "none")
