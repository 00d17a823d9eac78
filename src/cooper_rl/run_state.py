"""What a checkpoint holds: everything that decides how the run goes on."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cooper_rl.cooptimization.outline import check_outline, outline
from cooper_rl.errors import InputError
from cooper_rl.exactness import changes, conditions
from cooper_rl.persist.random_state import random_state, restore_random_state
from cooper_rl.run_config import RunConfig

if TYPE_CHECKING:
    from cooper_rl.build import Parts

logger = logging.getLogger(__name__)


def save_state(config: RunConfig, parts: "Parts", folder: Path) -> dict[str, Any]:
    """Write the learners with their optimizers into the folder; returns the rest as JSON values."""
    parts.policy.save(folder / "policy")
    parts.reward.save(folder)
    parts.rollouts.save(folder)
    return {
        "conditions": conditions(config),
        "outline": outline(config),
        "random": random_state(),
        "stream": parts.stream.state(),
    }


def check_kind(config: RunConfig, state: dict[str, Any]) -> None:
    """Raises InputError for the checkpoint of another kind of run, or of another tree of rewards.

    It holds another set of models and states.
    """
    before = state["conditions"]["kind"]
    if "outline" not in state:
        raise InputError("the checkpoint to resume from was written by an earlier version of Cooper; start a new run")
    if before != config.kind:
        raise InputError(
            f"kind: the checkpoint to resume from is of a run of kind {before}, this run is of kind {config.kind}; "
            f"resume with kind: {before}, or start a new run under another name"
        )
    check_outline(config, state["outline"])


def restore_state(config: RunConfig, parts: "Parts", folder: Path, state: dict[str, Any]) -> None:
    """Put back what `save_state` wrote and returned; a setting that has changed since is logged.

    Raises InputError as `check_kind` does, and where the models, problems or replay buffer are not the checkpoint's.
    """
    check_kind(config, state)
    for change in changes(state["conditions"], conditions(config)):
        logger.warning("%s: not an exact continuation, changed %s", folder, change)
    parts.policy.load(folder / "policy")
    parts.reward.load(folder)
    parts.stream.restore(state["stream"])
    parts.rollouts.restore(folder)
    restore_random_state(state["random"])
