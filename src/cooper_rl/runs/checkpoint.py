"""Checkpoints: one folder per step, written aside and renamed, so that a folder with its name is complete."""

import base64
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cooper_rl.errors import InputError


class CheckpointStore:
    """The checkpoints of one run: `<directory>/000120/{policy/,reward_model/,state.json}`."""

    def __init__(self, directory: Path, keep: int):
        self.directory = directory
        self.keep = keep

    def save(self, step: int, write: Callable[[Path], dict[str, Any]]) -> Path:
        """Write the checkpoint of `step`.

        `write(folder)` puts the models into the folder and returns the rest of the state as JSON values.
        """
        target = self.directory / f"{step:06d}"
        aside = self.directory / f".{step:06d}.partial"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        state = write(aside) | {"step": step, "random": random_state()}
        (aside / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        os.replace(aside, target)
        for old in self.list()[: -self.keep]:
            shutil.rmtree(old)
        return target

    def list(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(path.parent for path in self.directory.glob("[0-9]*/state.json"))

    def drop_after(self, step: int) -> None:
        """Delete the checkpoints of later steps."""
        for path in self.list():
            if int(path.name) > step:
                shutil.rmtree(path)

    def latest(self) -> tuple[Path, dict[str, Any]]:
        """The newest checkpoint and its state; raises InputError where there is none."""
        checkpoints = self.list()
        if not checkpoints:
            raise InputError(f"{self.directory}: no checkpoint to resume from; start the run without --resume")
        return checkpoints[-1], json.loads((checkpoints[-1] / "state.json").read_text(encoding="utf-8"))


def random_state() -> dict[str, Any]:
    """The global random states of python, numpy and torch as JSON values."""
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": [base64.b64encode(np.asarray(keys).tobytes()).decode(), int(position), int(has_gauss), float(cached)],
        "torch": base64.b64encode(torch.get_rng_state().numpy().tobytes()).decode(),
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Put back what `random_state` returned."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(
        ("MT19937", np.frombuffer(base64.b64decode(keys), dtype=np.uint32), position, has_gauss, cached)
    )
    torch.set_rng_state(torch.frombuffer(bytearray(base64.b64decode(state["torch"])), dtype=torch.uint8))
