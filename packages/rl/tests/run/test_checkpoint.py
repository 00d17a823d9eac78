"""Checkpoints are whole or absent, damage is found, the best is kept, and random states are restored."""

import errno
import os
import random
import resource
import shutil

import numpy as np
import pytest
import torch

from cooper_base.errors import InputError
from cooper_rl.record.checkpoint import CheckpointConfig, CheckpointStore, find_damage
from cooper_rl.record.exact_resume import random_state, restore_random_state


def _store(folder, **settings):
    return CheckpointStore(folder / "checkpoints", CheckpointConfig(**settings), holds="cursor")


def _save(store, step, metrics=None, text="weights"):
    def write(folder):
        (folder / "policy").mkdir()
        (folder / "policy" / "model").write_text(f"{text} of step {step}")
        return {"cursor": step}

    return store.save(step, write, metrics)


def _names(store):
    return [path.name for path in store.list()]


def _latest(store):
    found = store.latest()
    assert found is not None
    folder, state = found
    assert state == {"cursor": int(folder.name), "step": int(folder.name)}
    return folder.name


def test_only_the_newest_are_kept_and_the_latest_comes_back(tmp_path):
    store = _store(tmp_path, keep=2)
    for step in (10, 20, 1_000_000):
        _save(store, step)
    assert _names(store) == ["000020", "1000000"]
    assert _latest(store) == "1000000"


def test_the_best_checkpoint_is_kept_with_the_newest(tmp_path):
    store = _store(tmp_path, keep=1, keep_best="test/rule_avg")
    for step, value in enumerate([0.2, 0.6, float("nan"), 0.5, 0.6]):
        _save(store, step, {"test/rule_avg": value})
    assert _names(store) == ["000001", "000004"]
    # The best value is on disk and not in the process, so a resumed run knows it.
    assert not _store(tmp_path, keep_best="test/rule_avg").is_best({"test/rule_avg": 0.6})
    assert _store(tmp_path, keep_best="test/rule_avg").is_best({"test/rule_avg": 0.7})
    _save(store, 5, {"test/rule_avg": 0.7})
    assert _names(store) == ["000005"]


@pytest.mark.parametrize("file", ["policy/model", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "deleted", "altered"])
def test_a_damaged_checkpoint_is_logged_and_the_one_before_it_is_used(tmp_path, caplog, file, damage):
    store = _store(tmp_path, keep=2)
    _save(store, 1)
    path = _save(store, 2) / file
    if damage == "deleted":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes(whole[:-3] if damage == "cut" else whole.replace(b"policy/model", b"policy/Model")[:-1] + b"?")
    assert _latest(store) == "000001"
    assert "000002 is damaged" in caplog.text
    assert file in caplog.text
    assert sorted(p.name for p in store.directory.iterdir()) == ["000001", "000002.damaged"]
    _save(store, 2)
    assert _latest(store) == "000002"


def test_every_changed_byte_is_found(tmp_path):
    folder = _save(_store(tmp_path), 1)
    for name in ("policy/model", "state.json", "manifest.json"):
        path = folder / name
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            # In the manifest itself, an altered space is no damage; but it must never be a crash.
            assert find_damage(folder) or name == "manifest.json"
        path.write_bytes(whole)
    assert find_damage(folder) is None


def test_a_run_with_damaged_checkpoints_only_says_which_and_why(tmp_path):
    store = _store(tmp_path)
    for step in (1, 2):
        (_save(store, step) / "policy" / "model").write_text("x")
    for _ in range(2):  # the same the second time: nothing was moved away
        with pytest.raises(InputError, match=r"000002: damaged, policy/model: its length(.|\n)*000001: damaged"):
            store.latest()


def test_a_run_without_checkpoints_has_no_latest(tmp_path):
    assert _store(tmp_path).latest() is None


@pytest.mark.parametrize("keep", [1, 2])
def test_damage_to_the_newest_is_found_before_older_ones_are_deleted(tmp_path, keep):
    store = _store(tmp_path, keep=5)
    _save(store, 1)
    (_save(store, 2) / "state.json").write_text("{")
    assert _latest(_store(tmp_path, keep=keep)) == "000001"


def test_the_checkpoints_of_abandoned_steps_are_deleted(tmp_path):
    store = _store(tmp_path, keep=3)
    for step in (1, 2, 3):
        _save(store, step)
    store.drop_after(1)
    assert _names(store) == ["000001"]
    assert _latest(store) == "000001"


def test_a_step_saved_again_replaces_its_checkpoint(tmp_path):
    store = _store(tmp_path)
    _save(store, 1)
    assert (_save(store, 1, text="new") / "policy" / "model").read_text() == "new of step 1"
    assert find_damage(store.list()[0]) is None
    assert len(list(store.directory.iterdir())) == 1


def test_a_crash_inside_a_replacement_leaves_the_old_one(tmp_path):
    store = _store(tmp_path)
    folder = _save(store, 1)
    os.replace(folder, store.directory / ".000001.replaced")  # the moment between the two renames
    shutil.copytree(store.directory / ".000001.replaced", store.directory / ".000001.partial")
    assert _latest(store) == "000001"
    assert len(list(store.directory.iterdir())) == 1


def test_a_full_disk_leaves_the_last_checkpoint_and_no_half_one(tmp_path):
    store = _store(tmp_path)
    _save(store, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            _save(store, 2, text="weights" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in store.directory.iterdir()] == ["000001"]
    assert _latest(store) == "000001"


def test_random_states_round_trip():
    state = random_state()

    def draws():
        return random.random(), np.random.rand(), torch.rand(3).tolist()

    first = draws()
    restore_random_state(state)
    assert draws() == first


@pytest.mark.parametrize(
    ("keep", "kept"), [(1, ["000003"]), (2, ["000003", "000004"]), (3, ["000002", "000003", "000004"])]
)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_on_a_full_disk_a_checkpoint_takes_the_place_of_the_one_that_it_replaces(tmp_path, keep, kept, number):
    store = _store(tmp_path, keep=keep)

    def write(folder):
        if step == 4 and len(store.list()) == keep:
            raise OSError(number, "no room")
        (folder / "weights").write_text(str(step))
        return {"cursor": 0}

    for step in (1, 2, 3):
        store.save(step, write)
    before = _names(store)
    step = 4
    if keep == 1 or number == errno.EFBIG:  # room for more checkpoints would not help one that is too large
        with pytest.raises(OSError, match="no room"):
            store.save(4, write)
        kept = before
    else:
        store.save(4, write)
    assert _names(store) == kept


def test_on_a_full_disk_a_damaged_checkpoint_does_not_cost_the_whole_one_before_it(tmp_path):
    store = _store(tmp_path, keep=2)

    def write(folder):
        if step == 3:
            raise OSError(errno.ENOSPC, "no room")
        (folder / "weights").write_text(str(step))
        return {"cursor": 0}

    for step in (1, 2):
        store.save(step, write)
    (store.list()[-1] / "weights").write_text("damaged")
    step = 3
    with pytest.raises(OSError, match="no room"):
        store.save(3, write)
    assert _names(store) == ["000001", "000002"]
