"""What training knows beside the weights, on disk: AdamW's moments (safetensors, by parameter name) and counters."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from cooper_rl.errors import InputError

_FOLDER = "trainer_state"


@contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """Raise OSError if safetensors or tokenizers, which have their own exceptions, could not write a file."""
    try:
        yield
    except Exception as error:
        # A full disk is a SafetensorError in one library and a bare Exception in the other.
        if isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(f"{directory}: {error}") from error
        raise


def save_trainer_state(
    directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None, counters: dict[str, Any]
) -> None:
    """Write `directory/trainer_state/`; an optimizer that has not stepped yet has nothing to write."""
    folder = directory / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    moments = {
        f"{name}:{key}": value.contiguous()
        for name, parameter in model.named_parameters()
        for key, value in (optimizer.state.get(parameter, {}) if optimizer else {}).items()
    }
    save_file(moments, folder / "optimizer.safetensors")
    (folder / "state.json").write_text(json.dumps(counters, indent=1), encoding="utf-8")


def load_trainer_state(directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> dict[str, Any]:
    """Restore the moments of `optimizer` and return the counters.

    Raises InputError for a folder that `save_trainer_state` did not write, or that it wrote for another model.
    """
    folder = directory / _FOLDER
    if not (folder / "state.json").is_file() or not (folder / "optimizer.safetensors").is_file():
        raise InputError(f"{directory}: no {_FOLDER} in this folder; it is not a checkpoint of a learner")
    if optimizer is not None:
        _restore_moments(folder / "optimizer.safetensors", model, optimizer)
    return json.loads((folder / "state.json").read_text(encoding="utf-8"))


def _restore_moments(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    for full_name, value in load_file(path).items():
        name, _, key = full_name.rpartition(":")
        parameter = parameters.get(name)
        if parameter is None or (value.ndim and value.shape != parameter.shape):
            raise InputError(f"{path}: optimizer state for {name!r} {tuple(value.shape)} does not fit this model")
        optimizer.state[parameter][key] = value.to(parameter.device)
