"""What a checkpoint of a run holds: both learners with their optimizers, the rollouts under way, and `state.json`."""

import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cooper_base.errors import InputError
from cooper_base.files.durable import delete, folder_aside, writing
from cooper_rl.engines.base import Metrics
from cooper_rl.engines.local.models import merge_folder
from cooper_rl.engines.model_folder import adapter_base
from cooper_rl.record.exact_resume import changes, conditions, random_state, restore_random_state
from cooper_rl.record.model_cards import write_model_cards
from cooper_rl.reward.reward_config import check_outline, outline
from cooper_rl.run.callbacks import Callbacks
from cooper_rl.run.recorder import RESUME
from cooper_rl.run_config import RunConfig
from cooper_rl.step import Parts

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Position:
    """Where a run is: everything that the trainer itself must restore, besides the state of the run's parts."""

    step: int = 0
    """Completed steps."""
    unmeasured: Metrics | None = None
    """The metrics of the last completed step while its evaluations are still to do."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings that `CooperTrainer.change` has changed since the run began, by dotted name."""

    def to_json(self) -> dict[str, Any]:
        return {"unmeasured": self.unmeasured, "changes": dict(self.changes)}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Position":
        """The position in a checkpoint's state."""
        return cls(state["step"], **state["position"])


def save_state(
    config: RunConfig, parts: Parts, position: Position, callbacks: Callbacks, folder: Path
) -> dict[str, Any]:
    """Write the learners and their optimizers into the folder, and return the rest of the state as JSON values."""
    parts.policy.save(folder / "policy")
    parts.reward.save(folder)
    parts.rollouts.save(folder)
    write_model_cards(config, position.step, parts.prompt_encoder.chat, folder)
    return {
        "position": position.to_json(),
        "callbacks": callbacks.states(),
        "conditions": conditions(config),
        "outline": outline(config),
        "random": random_state(),
        "stream": parts.stream.state(),
    }


def check_steps(config: RunConfig, state: dict[str, Any], directory: Path) -> None:
    """Raises InputError if the run in `directory`, whose newest checkpoint has this `state`, is past its last step."""
    if state["step"] > config.steps:
        raise InputError(
            f"{directory}: the run has done {state['step']} steps already, but steps is {config.steps}; set steps to "
            f"{state['step']} or more to go on, or start a shorter run under another name"
        )


def export_models(config: RunConfig, checkpoint: Path, folder: Path, chat: bool) -> None:
    """Write the models of a checkpoint as plain Hugging Face folders: adapters merged, the others as they are.

    `folder` is replaced as a whole. A model that is as it is becomes a second name of the checkpoint's file, where the
    disk can do that: it takes no room. `chat` goes into the model cards.
    """
    with writing(folder, RESUME):
        aside = folder_aside(folder)
        for name in ("policy", "reward_model"):
            source = checkpoint / name
            if not source.is_dir():
                continue
            if adapter_base(str(source)) is not None:
                merge_folder(str(source), aside / name)
            else:
                left_out = shutil.ignore_patterns("trainer_state", "README.md")
                shutil.copytree(source, aside / name, ignore=left_out, copy_function=_link)
        write_model_cards(config, int(checkpoint.name), chat, aside)
        delete(folder)  # of a run that had ended before it was resumed
        aside.rename(folder)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def check_kind(config: RunConfig, state: dict[str, Any]) -> None:
    """Raises InputError if the checkpoint is of another kind of run or of another tree of rewards.

    Such a checkpoint holds a different set of models and states.
    """
    before = state["conditions"]["kind"]
    if before != config.kind:
        raise InputError(
            f"kind: the checkpoint to resume from is of a run of kind {before}, but this run is of kind {config.kind}; "
            f"resume with kind: {before}, or start a new run under another name"
        )
    check_outline(config, state["outline"])


def restore_state(config: RunConfig, parts: Parts, callbacks: Callbacks, folder: Path, state: dict[str, Any]) -> None:
    """Restore what `save_state` wrote and returned, and log every setting that has changed since.

    Raises InputError if the models, problems or replay buffer are not those of the checkpoint.
    """
    for change in changes(state["conditions"], conditions(config)):
        logger.warning("%s: not an exact continuation, because this changed: %s", folder, change)
    callbacks.restore(state["callbacks"])
    parts.policy.load(folder / "policy")
    parts.reward.load(folder)
    parts.stream.restore(state["stream"])
    parts.rollouts.restore(folder)
    restore_random_state(state["random"])
