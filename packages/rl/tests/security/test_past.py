"""What a service has learned stays learned: other settings, crashes inside a restore, damaged journals."""

import errno
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest

from cooper_base.files.journal import Journal
from cooper_rl import CooperReward, InputError
from cooper_rl.reward.scored import PROBES, Updated
from cooper_rl.service import history as history_module
from cooper_rl.service.config import ServeConfig
from cooper_rl.service.history import History
from cooper_rl.service.training import Refusal, ScoreAsk, Training
from service.answered import groups


@pytest.fixture
def settings(reward_settings) -> dict[str, Any]:
    """Without an assistant, so that pairs are the policy's own."""
    return {**reward_settings, "cooptimization": {"pairs": [{"kind": "on_policy"}]}}


class Opened:
    """The state of a service on a folder, in this process; leaving it is a kill."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        config = ServeConfig.model_validate(settings)
        self.history = History(folder, keep=5)
        self.reward = CooperReward.from_config(config)
        try:
            self.training = Training(self.reward, self.history, None, config)
        except BaseException:
            self.__exit__()
            raise

    def step(self, number: int) -> Updated:
        self.training.score([ScoreAsk(groups(10 * number), number)])
        self.training.commit(lambda view: None, number)
        return self.training.steps[number]

    def logits(self) -> Any:
        return self.reward.score(groups(90), train=False).logits

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.history.close()
        self.reward.close()


def changed(settings: dict[str, Any], **model: Any) -> dict[str, Any]:
    return {**settings, "reward_model": {**settings["reward_model"], **model}}


# Other settings


def test_a_journal_is_not_replayed_under_other_settings(settings, tmp_path):
    changes: list[tuple[dict[str, Any], str]] = [
        (changed(settings, learning_rate=3e-2), "learning_rate: 0.01 -> 0.03"),
        (changed(settings, weight_decay=0.5), "weight_decay"),
        (
            {**settings, "cooptimization": {"epochs": 3, "pairs": [{"kind": "on_policy"}]}},
            "cooptimization.epochs: 2 -> 3",
        ),
        ({**settings, "seed": 7}, "seed: 0 -> 7"),
    ]
    with Opened(tmp_path, settings) as opened:
        opened.step(1)
        learned, history = opened.logits(), opened.training.digest
    for other, named in changes:
        with pytest.raises(InputError, match=rf"(?s){named}.*stop it with SIGTERM.*another serve\.folder"):
            Opened(tmp_path, other)
    with Opened(tmp_path, settings) as opened:  # the refusal has changed nothing
        assert (opened.logits(), opened.training.digest) == (learned, history)


@pytest.mark.slow
def test_after_a_checkpoint_other_settings_hold_from_the_next_step_on(settings, tmp_path, caplog):
    with Opened(tmp_path, settings) as opened:
        opened.step(1)
        opened.step(2)
        opened.training.checkpoint()
        learned = opened.logits()
    with Opened(tmp_path, changed(settings, learning_rate=0.0)) as opened:
        assert "learning_rate: 0.01 -> 0.0" in caplog.text
        assert opened.logits() == learned
        opened.step(3)
        assert opened.logits() == learned  # the new rate, from the next step on
        with pytest.raises(
            Refusal, match=r"step 1: .* were learned under other settings .*learning_rate.* restore step 0"
        ):
            opened.training.restore(1)
        assert opened.training.reward.last_step == 3
    with Opened(tmp_path, changed(settings, learning_rate=0.0)) as opened:  # step 3 is replayed as it was
        assert opened.training.reward.last_step == 3
        assert opened.logits() == learned
    with pytest.raises(InputError, match=r"learning_rate: 0.0 -> 0.01"):
        Opened(tmp_path, settings)


@pytest.mark.slow
def test_what_only_says_where_and_how_fast_is_listed_and_goes_on(settings, tmp_path):
    with Opened(tmp_path, settings) as opened:
        opened.step(1)
        learned = opened.logits()
    moved = {**changed(settings, tokens_per_microbatch=512), "serve": {"port": 1, "checkpoints": 9, "max_rows": 50}}
    with Opened(tmp_path, {**moved, "rule": {"workers": 2}}) as opened:
        assert opened.training.reward.last_step == 1
        assert opened.logits()[0] == pytest.approx(learned[0], abs=1e-4)


# A crash inside a restore


@pytest.mark.slow
def test_a_restore_that_is_cut_short_anywhere_leaves_the_state_before_or_after(settings, tmp_path, monkeypatch):
    """Every call that changes the disk is, in turn, the last that the process makes."""
    with Opened(tmp_path / "0", settings) as opened:
        for number in range(1, 5):
            opened.step(number)
            if number in (2, 3):
                opened.training.checkpoint()
        states = {4: opened.logits()}
        opened.training.restore(1)
        states[1] = opened.logits()
    ends = []
    for calls in range(1, 40):
        folder = tmp_path / str(calls)
        with Opened(folder, settings) as opened:
            for number in range(1, 5):
                opened.step(number)
                if number in (2, 3):
                    opened.training.checkpoint()
            with monkeypatch.context() as patched:
                left = _dies_at(patched, calls)
                with suppress(_Killed):
                    opened.training.restore(1)
        with Opened(folder, settings) as opened:
            last = opened.training.reward.last_step
            assert opened.logits() == states[last]
            ends.append(last)
        if left[0] > 0:
            break
    assert sorted(set(ends)) == [1, 4]
    assert ends == sorted(ends, reverse=True), "before, up to a moment, and after from then on"


def test_a_cut_that_was_decided_is_made_after_a_restart(tmp_path, monkeypatch):
    """The same without models: a plan on disk is carried out, however often it was begun."""
    history = History(tmp_path, keep=5)
    history.checkpoint(0, lambda folder: {"digest": ""}, [])
    for step in (1, 2):
        history.append([{"kind": "scored", "step": step}, {"kind": "commit", "step": step}], True)
    history.checkpoint(2, lambda folder: {"digest": ""}, [{"kind": "scored", "step": 3}])
    history.append([{"kind": "commit", "step": 3}], True)
    before = history.records(0)
    history.plan_cut(0, lambda record: record["step"] == 1 and record["kind"] == "commit")
    assert (history.records(0), history.checkpoints()) == (before, [0, 2])
    for calls in range(1, 20):
        with monkeypatch.context() as patched, suppress(_Killed):
            left = _dies_at(patched, calls)
            history.finish_cut()
        if left[0] > 0:
            break
    assert left[0] > 0, "it is never done"
    assert (history.records(0), history.checkpoints()) == (before[:2], [0])
    history.append([{"kind": "scored", "step": 2}], True)
    assert len(history.records(0)) == 3
    history.close()


class _Killed(BaseException):
    pass


def _dies_at(patched: pytest.MonkeyPatch, calls: int) -> list[int]:
    """From the call of this number on, nothing that changes the disk happens any more. Returns the calls left."""
    left = [calls]

    def dying(function):
        def call(*arguments, **named):
            left[0] -= 1
            if left[0] <= 0:
                raise _Killed
            return function(*arguments, **named)

        return call

    for name in ("replace", "truncate", "unlink", "rmdir", "ftruncate", "write"):
        patched.setattr(os, name, dying(getattr(os, name)))
    return left


# Damage


def test_every_flipped_byte_of_a_journal_is_noticed(tmp_path):
    history = History(tmp_path, keep=3)
    history.append([{"kind": "scored", "step": 1, "groups": [[0.25, -1.5]]}, {"kind": "commit", "step": 1}], True)
    history.append([{"kind": "scored", "step": 2, "groups": []}], True)
    whole = history.records(0)
    path = tmp_path / "journals" / "000000.jsonl"
    data = path.read_bytes()
    for place in range(len(data)):
        for bit in (1, 32):
            path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            with pytest.raises(InputError, match=r"000000.jsonl:\d: damaged"):
                history.records(0)
    for end in range(len(data)):  # what a crash leaves is not damage: whole records up to there
        path.write_bytes(data[:end])
        found = history.records(0)
        assert found == whole[: len(found)]
    lines = data.splitlines(keepends=True)
    for wrong in (lines[:1] + lines[2:], [lines[1], lines[0], lines[2]], [lines[0], lines[0]]):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(InputError, match="damaged"):
            history.records(0)
    history.close()


def test_a_journal_that_is_gone_is_noticed(settings, tmp_path):
    with Opened(tmp_path, settings) as opened:
        opened.step(1)
        opened.training.checkpoint()
        opened.step(2)
    newest = tmp_path / "journals" / "000001.jsonl"
    kept = newest.read_bytes()
    newest.unlink()
    with pytest.raises(InputError, match=r"000001\.jsonl: missing, with the steps that were recorded in it"):
        Opened(tmp_path, settings)
    newest.write_bytes(kept)
    damaged = tmp_path / "checkpoints" / "000001" / "reward.json"
    damaged.write_bytes(b"")
    newest.unlink()  # also where the checkpoint that it continues is lost
    with pytest.raises(InputError, match=r"000001\.jsonl: missing"):
        Opened(tmp_path, settings)
    newest.write_bytes(kept)
    with Opened(tmp_path, settings) as opened:
        assert opened.training.reward.last_step == 2


def test_a_replay_compares_the_digest_of_its_commit(settings, tmp_path, monkeypatch):
    """A record that is whole, but is not what the commit was made of."""
    with Opened(tmp_path, settings) as opened:
        opened.step(1)
        records = [*opened.history.records(0)]
    for record in records:
        for group in record.get("groups", ()):
            group["rewards"] = [value + 0.5 for value in group["rewards"]]
    path = tmp_path / "journals" / "000000.jsonl"
    path.write_text(history_module._lines(records, path.stem)[0], encoding="utf-8")
    with pytest.raises(InputError, match="step 1 was committed with other answers than the journal has before it"):
        Opened(tmp_path, settings)


def test_finished_work_that_was_damaged_is_named(tmp_path):
    """The journal of `collect`, `label` and `bench`: a changed value is as much damage as a broken line."""
    path = tmp_path / "journal.jsonl"
    with Journal(path, {"seed": 0}) as journal:
        journal.put("a", 0.25)
        journal.put("b", "yes")
    data = path.read_bytes()
    for place in Random(0).sample(range(len(data) - 1), 60):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(InputError, match=r"journal\.jsonl"):
            Journal(path, {"seed": 0})
    path.write_text('{"made with": {"seed": 0}}\n{"key": "a", "value": 1}\n')  # without checksums
    with pytest.raises(InputError, match=r"journal\.jsonl:1: damaged"):
        Journal(path, {"seed": 0})


# An acknowledged commit


@pytest.mark.parametrize("failures", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_an_update_that_lacks_descriptors_is_tried_again_until_it_is_trained(settings, tmp_path, monkeypatch, failures):
    with Opened(tmp_path / "a", settings) as opened:
        expected = opened.step(1)
    monkeypatch.setattr("cooper_rl.service.training.RETRY_S", (0.01, 0.01))
    with Opened(tmp_path / "b", settings) as opened:
        _fail(opened.reward, monkeypatch, failures, OSError(errno.EMFILE, "Too many open files"))
        done = opened.step(1)
        assert (done.state, done.pairs) == ("done", expected.pairs)
        assert [one["kind"] for one in opened.history.records(0) if one["kind"] == "undo"] == []


@pytest.mark.slow
@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("no")])
def test_a_commit_that_cannot_be_trained_says_failed_also_after_a_restart(settings, tmp_path, monkeypatch, error):
    monkeypatch.setattr("cooper_rl.service.training.RETRY_S", (0.01, 0.01))
    with Opened(tmp_path, settings) as opened, monkeypatch.context() as patched:
        _fail(opened.reward, patched, 99, error)
        assert opened.step(1).state == "failed"
    with Opened(tmp_path, settings) as opened:
        view = opened.training.steps[1]
        assert (view.state, view.error) == ("failed", f"{type(error).__name__}: {error}")
        assert opened.training.ledger.open_step is not None
        assert opened.step(1).state == "done"
    with Opened(tmp_path, settings) as opened:
        assert opened.training.reward.last_step == 1


def test_a_commit_whose_state_could_not_be_recovered_is_trained_later(settings, tmp_path, monkeypatch):
    """Update and recovery lack descriptors, for longer than the attempts take."""
    monkeypatch.setattr("cooper_rl.service.training.RETRY_S", ())
    lacking = OSError(errno.EMFILE, "Too many open files")
    with Opened(tmp_path, settings) as opened:
        opened.training.score([ScoreAsk(groups(10), 1)])
        with monkeypatch.context() as patched:
            _fail(opened.reward, patched, 99, lacking)
            patched.setattr(opened.reward, "load", lambda folder: (_ for _ in ()).throw(lacking))
            with pytest.raises(OSError, match="Too many open files"):
                opened.training.commit(lambda view: None, 1)
            assert opened.training.fault == "OSError: [Errno 24] Too many open files"
            assert opened.training.steps[1].state == "updating"
        opened.training.recover()
        assert (opened.training.fault, opened.training.reward.last_step) == (None, 1)
        assert opened.training.steps[1].state == "done"


def _fail(reward: CooperReward, patched: pytest.MonkeyPatch, times: int, error: Exception) -> None:
    """The reward's next updates fail in the middle, as where a file cannot be opened."""
    right, left = reward.update, [times]

    def update(scored: Any, **given: Any) -> Updated:
        if left[0] > 0:
            left[0] -= 1
            raise error
        return right(scored, **given)

    patched.setattr(reward, "update", update)


# The order of arrival


@pytest.mark.slow
def test_the_order_of_groups_decides_nothing(settings, tmp_path):
    """60 groups, more than the probe set takes; in any order and any calls."""
    given = [replace(one, id=f"{n}-{one.id}") for n in range(15) for one in groups(10 + 4 * n)]

    def play(folder: Path, order: list[int]) -> tuple[Any, Any]:
        with Opened(folder, settings) as opened:
            for first in range(0, len(order), 7):
                opened.training.score([ScoreAsk([given[i] for i in order[first : first + 7]], 1)])
            opened.training.commit(lambda view: None, 1)
            opened.training.checkpoint()
            state = json.loads((folder / "checkpoints" / "000001" / "reward.json").read_text())
            return state["probes"]["texts"], opened.training.steps[1].pairs

    straight = list(range(len(given)))
    shuffled = Random(0).sample(straight, len(straight))
    texts, pairs = play(tmp_path / "straight", straight)
    assert len(texts) == PROBES < len(given)
    again, others = play(tmp_path / "shuffled", shuffled)
    assert again == texts
    assert [one.positive for one in others] == [one.positive for one in pairs]


# In a process of its own


@pytest.mark.slow
def test_a_killed_server_with_another_learning_rate_does_not_start(make_server, reward_settings):
    server = make_server(checkpoint_every=0)
    client = server.client()
    client.score(groups(10), step=1)
    client.update(1)
    learned = client.score(groups(90), train=False).logits
    server.end(SIGKILL)
    path = server.folder / "serve.yaml"
    before = path.read_text()
    path.write_text(before.replace("learning_rate: 0.01", "learning_rate: 0.1"))
    with pytest.raises(RuntimeError, match=r"learning_rate: 0.01 -> 0.1"):
        server.start()
    path.write_text(before)
    server.start()
    assert client.score(groups(90), train=False).logits == learned
    assert server.end(SIGTERM) == 0
    path.write_text(before.replace("learning_rate: 0.01", "learning_rate: 0.1"))
    server.start()  # from the next step on
    assert client.score(groups(90), train=False).logits == learned
    assert "this is changed: reward_model.learning_rate: 0.01 -> 0.1" in server.output()
