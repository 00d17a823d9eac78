"""Checkpoints appear whole or not at all, and random states come back exactly."""

import random

import numpy as np
import pytest
import torch

from cooper_rl.errors import InputError
from cooper_rl.runs.checkpoint import CheckpointStore, random_state, restore_random_state


def test_only_the_newest_are_kept_and_the_latest_comes_back(tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    for step in (10, 20, 30):
        store.save(step, lambda folder, step=step: {"cursor": step})
    assert [path.name for path in store.list()] == ["000020", "000030"]
    folder, state = store.latest()
    assert (folder.name, state["cursor"], state["step"]) == ("000030", 30, 30)


def test_a_write_that_fails_leaves_the_last_checkpoint(tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    store.save(1, lambda folder: {})

    def full_disk(folder):
        (folder / "half").write_text("x")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        store.save(2, full_disk)
    assert store.latest()[0].name == "000001"


def test_nothing_to_resume_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no checkpoint"):
        CheckpointStore(tmp_path, keep=1).latest()


def test_random_states_round_trip():
    state = random_state()

    def draws():
        return random.random(), np.random.rand(), torch.rand(3).tolist()

    first = draws()
    restore_random_state(state)
    assert draws() == first
