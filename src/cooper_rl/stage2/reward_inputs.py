"""What a reward reads besides its models' weights, checked without torch, and which checkpoint fits a configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.engines.model_folder import check_reward_model_folder
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS, SHAPINGS
from cooper_rl.rewards.rule.routing import Verifier
from cooper_rl.stage2.assistant import Assistant, build_assistant
from cooper_rl.stage2.reward_config import CooperRewardConfig


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
        check_reward_model_folder(model.model)
    return RewardInputs(verifier, assistant, replayed)


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
