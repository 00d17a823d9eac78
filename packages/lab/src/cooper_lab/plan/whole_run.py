"""What a whole run needs besides the memory of its devices: disk space, and the assistant's device."""

from cooper_lab.plan.setup import Setup
from cooper_lab.plan.shapes import shape_of
from cooper_rl import InputError, RunConfig

SAVED = 12
"""Bytes of a checkpoint for each trained parameter: the float32 weight and AdamW's two running means."""


def checkpoints_of(config: RunConfig) -> int:
    """Most checkpoints on the disk at once, one being written among them."""
    return config.checkpoint.keep + (config.checkpoint.keep_best is not None) + 1


def assistant_of(config: RunConfig) -> str | None:
    """The model of an assistant behind a server, which needs a device that the layout does not have."""
    return getattr(config.cooptimization.assistant, "model", None) if config.learns else None


def checkpoint_bytes(setup: Setup) -> int:
    """Bytes of one checkpoint."""
    trained = [model for model in (setup.policy, setup.reward_model) if model is not None and model.trains]
    return sum(SAVED * (model.shape.adapter_params if model.adapted else model.shape.params) for model in trained)


def assistant_bytes(model: str) -> float | None:
    """Bytes of the assistant's weights in bfloat16; None for a model of unknown shape."""
    try:
        return 2.0 * shape_of(model).params
    except (InputError, OSError):
        return None
