"""What a checkpoint holds: everything that decides how the run goes on."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cooper_rl.cooptimization.health import ProbeSet
from cooper_rl.errors import InputError
from cooper_rl.exactness import changes, conditions
from cooper_rl.persist.random_state import random_state, restore_random_state
from cooper_rl.run_config import RunConfig

if TYPE_CHECKING:
    from cooper_rl.build import Parts

logger = logging.getLogger(__name__)


def save_state(config: RunConfig, parts: "Parts", probes: ProbeSet, folder: Path) -> dict[str, Any]:
    """Write the learners with their optimizers into the folder; returns the rest as JSON values."""
    parts.policy.save(folder / "policy")
    state: dict[str, Any] = {
        "conditions": conditions(config),
        "random": random_state(),
        "stream": parts.stream.state(),
        "probes": probes.state(),
    }
    if parts.judge is not None:
        parts.judge.learner.save(folder / "reward_model")
        state["cooptimizer"] = parts.judge.cooptimizer.state()
    if parts.hybrid is not None:
        state["hybrid"] = parts.hybrid.sigma_mean
    return state


def check_kind(config: RunConfig, state: dict[str, Any]) -> None:
    """Raises InputError for the checkpoint of another kind of run: it holds another set of models and states."""
    before = state["conditions"]["kind"]
    if before != config.kind:
        raise InputError(
            f"kind: the checkpoint to resume from is of a run of kind {before}, this run is of kind {config.kind}; "
            f"resume with kind: {before}, or start a new run under another name"
        )


def restore_state(config: RunConfig, parts: "Parts", probes: ProbeSet, folder: Path, state: dict[str, Any]) -> None:
    """Put back what `save_state` wrote and returned; a setting that has changed since is logged.

    Raises InputError as `check_kind` does, and where the models, problems or replay buffer are not the checkpoint's.
    """
    check_kind(config, state)
    for change in changes(state["conditions"], conditions(config)):
        logger.warning("%s: not an exact continuation, changed %s", folder, change)
    parts.policy.load(folder / "policy")
    if parts.judge is not None:
        parts.judge.learner.load(folder / "reward_model")
        parts.judge.cooptimizer.restore(state["cooptimizer"])
    if parts.hybrid is not None:
        parts.hybrid.sigma_mean = state["hybrid"]
    parts.stream.restore(state["stream"])
    probes.restore(state["probes"])
    restore_random_state(state["random"])
