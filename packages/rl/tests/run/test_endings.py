"""How runs end and begin: asked by a callback, resumed with too few steps, in the folder of a run that is alive."""

import os
import re
import socket
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from cooper_audit.run.run_record import read_events, read_record, status_of
from cooper_base.cli.main import commands
from cooper_rl import Callback, CooperTrainer, InputError, build_config
from runs.recorded_run import data_of
from slow_members import first_fast


class Ends(Callback):
    """Asks for the end in the hook `self.hook`, when step `at` is under way or done."""

    def __init__(self, hook: str, at: int) -> None:
        self.hook, self.at = hook, at

    def _in(self, hook, trainer, step):
        if (hook, step) == (self.hook, self.at):
            trainer.request_stop()

    def before_step(self, trainer, step):
        self._in("before_step", trainer, step)

    def after_step(self, trainer, step, metrics):
        self._in("after_step", trainer, step)

    def on_evaluation(self, trainer, step, metrics):
        self._in("on_evaluation", trainer, step)

    def on_save(self, trainer, step, folder):
        self._in("on_save", trainer, step)


def _fit(settings, resume=False, callbacks=(), **changes):
    config = build_config({**settings, "kind": "rule", **changes})
    with CooperTrainer.from_config(config, resume, callbacks=callbacks) as trainer:
        trainer.fit(on_step=lambda step, metrics: None)
    return trainer


NAME = f"{Ends.__module__}:Ends"
FUNCTION = {"rewards": [{"kind": "function", "function": "m:length"}]}


@pytest.mark.parametrize(
    ("hook", "at", "done"),
    [
        ("before_step", 3, 2),
        *(pytest.param(hook, 2, 2, marks=pytest.mark.slow) for hook in ("after_step", "on_evaluation", "on_save")),
    ],
)
def test_a_run_that_a_callback_ends_has_a_state_of_its_own_and_can_go_on(settings, hook, at, done):
    ended = _fit(settings, callbacks=[Ends(hook, at)])
    assert (ended.completed_steps, ended.interrupted, ended.ended_by) == (done, False, NAME)
    status = status_of(read_record(ended.directory))
    assert (status.state, status.died) == ("ended", False)
    assert status.detail == f"the callback {NAME} ended the run; --resume goes on after step {done}"
    assert (ended.directory / "final" / "policy").is_dir()
    resumed = _fit(settings, resume=True)
    assert (resumed.completed_steps, resumed.ended_by) == (4, None)
    assert status_of(read_record(ended.directory)).state == "finished"
    assert all(event["action"] != "ended" for event in read_events(ended.directory))


@pytest.mark.parametrize("hook", first_fast(["before_step", "on_evaluation"]))
def test_a_callback_ends_a_run_before_its_first_step(settings, hook):
    ended = _fit(settings, callbacks=[Ends(hook, int(hook == "before_step"))])
    assert (ended.completed_steps, ended.ended_by) == (0, NAME)
    assert not (ended.directory / "final").exists()


def test_a_callback_that_asks_after_the_last_step_ends_nothing(settings):
    finished = _fit(settings, callbacks=[Ends("after_step", 4)])
    assert status_of(read_record(finished.directory)).state == "finished"


def test_a_stop_that_a_caller_asks_for_is_an_interrupt(settings):
    config = build_config({**settings, "kind": "rule"})
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit(on_step=lambda step, metrics: trainer.request_stop() if step == 2 else None)
        assert "interrupted" in data_of(trainer.directory / "report.html")["runs"][0]["facts"]["steps"]
    assert (trainer.interrupted, trainer.ended_by) == (True, None)
    assert status_of(read_record(trainer.directory)).state == "interrupted"


def test_an_interrupt_before_the_first_step_is_no_fault(settings):
    config = build_config({**settings, "kind": "rule"})
    with CooperTrainer.from_config(config) as trainer:
        trainer.request_stop()
        trainer.fit()
        [shown] = data_of(trainer.directory / "report.html")["runs"]
    assert (shown["verdict"]["state"], shown["facts"]["steps"]) == ("unknown", "0 of 4, interrupted")
    status = status_of(read_record(trainer.directory))
    assert (status.state, status.died, status.end) == ("interrupted", False, "")


def test_the_report_of_a_finished_run_calls_it_finished(settings):
    facts = data_of(_fit(settings).directory / "report.html")["runs"][0]["facts"]
    assert facts["steps"] == "4 of 4, finished"
    assert "to go" not in facts["time"]


def test_a_run_is_not_resumed_with_fewer_steps_than_it_has_done(settings):
    done = _fit(settings)
    with pytest.raises(InputError, match=r"has done 4 steps already, but steps is 3; set steps to 4 or more"):
        _fit(settings, resume=True, steps=3)
    assert read_record(done.directory).step == 4
    assert _fit(settings, resume=True, steps=4).completed_steps == 4
    assert _fit(settings, resume=True, steps=5).completed_steps == 5


HOLD = (
    "import sys, pathlib; from cooper_base.files.folder_lock import FolderLock as L; l = L(pathlib.Path(sys.argv[1]))"
)


@pytest.mark.parametrize("resume", first_fast([False, True]))
def test_the_name_of_a_run_that_is_alive_is_told_so(settings, resume):
    done = _fit(settings)
    waiting = [sys.executable, "-c", f"{HOLD}; print('held', flush=True); sys.stdin.read()", str(done.directory)]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InputError) as fault:
            _fit(settings, resume=resume)
        process.communicate()
    assert f"a process is training in this folder already (process {process.pid} on {socket.gethostname()})" in str(
        fault.value
    )
    assert "delete" not in str(fault.value)
    assert "wait for it, stop it" in str(fault.value)
    with pytest.raises(InputError, match=r"holds a run already.*or delete the folder"):
        _fit(settings)


def test_a_second_trainer_in_the_same_process_is_told_so_too(settings):
    config = build_config({**settings, "kind": "rule"})
    with (
        CooperTrainer.from_config(config),
        pytest.raises(InputError, match=f"already .process {os.getpid()} on"),
    ):
        CooperTrainer.from_config(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint": {"keep_best": "test/rule_avgg"}}, "checkpoint.keep_best: .*did you mean 'test/rule_avg'"),
        ({"checkpoint": {"keep_best": "accuracy"}}, "did you mean 'rule/accuracy'"),
        ({"checkpoint": {"keep_best": "tests/rule_avg"}}, "did you mean 'test/rule_avg'"),
        ({"checkpoint": {"keep_best": "test/svamp/rule_avg"}}, "no run with these settings"),
        ({"checkpoint": {"keep_best": "test/gold_avg"}, "gold": None}, "measured with gold labels"),
        ({"checkpoint": {"keep_best": "gold/accuracy"}, "gold": None}, "measured with gold labels; set problems.gold"),
        ({"checkpoint": {"keep_best": "reward_model/mean"}}, "measured on a reward model"),
        ({"checkpoint": {"keep_best": "environment/reward"}}, "measured in an environment"),
        ({"watch": [{"metric": "rollout/token"}]}, "watch.0.metric: .*did you mean 'rollout/tokens'"),
        ({"watch": [{"metric": "function/lenght"}]}, "did you mean 'function/length'"),
        ({"watch": [{"metric": "reward_model_two/mean"}]}, "did you mean 'reward_model/mean'"),
        ({"watch": [{"metric": "anything"}]}, "docs/metrics.md lists them all"),
    ],
)
def test_a_metric_that_no_step_will_record_is_refused(settings, changes, message):
    if changes.pop("gold", 0) is None:
        settings["problems"]["gold"] = settings["test_problems"]["gold"] = None
    with pytest.raises(InputError, match=message):
        build_config({**settings, "kind": "rule", **FUNCTION, **changes})


@pytest.mark.parametrize(
    ("metric", "changes"),
    [
        ("test/two/rule_avg", {}),
        ("function/length", {}),
        ("reward_model/mean", {"kind": "cooper"}),
        ("reward/mean_after", {"kind": "cooper"}),
        ("reward_model/pair_accuracy_before_on_policy", {"kind": "cooper"}),
        ("time/update_policy", {}),
        ("rule/exact_accuracy", {}),
        ("mine/mean", {"callbacks": ["run.everyday_callbacks:Stops"]}),
        ("mine/mean", {"reward_model": None, "rewards": [{"kind": "run.test_users_names:Greedy"}]}),
    ],
)
def test_metrics_that_may_be_recorded_pass(settings, metric, changes):
    settings |= {"more_test_problems": {"two": settings["test_problems"]}, "kind": "rule"}
    functions = {} if "rewards" in changes or "kind" in changes else FUNCTION
    config = build_config({**settings, "checkpoint": {"keep_best": metric}, **functions, **changes})
    assert config.checkpoint.keep_best == metric


@pytest.mark.slow
def test_the_command_refuses_too_few_steps_too(settings, tmp_path):
    _fit(settings)
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**settings, "kind": "rule", "reward_model": None, "steps": 2}))
    result = CliRunner().invoke(commands, ["train", str(path), "--resume"])
    assert isinstance(result.exception, InputError)
    assert re.search("has done 4 steps already, but steps is 2", str(result.exception))
