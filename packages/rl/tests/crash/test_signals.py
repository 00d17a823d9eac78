"""What SIGINT and SIGTERM do to `cooper train`."""

import os
import signal
import subprocess
import sys
import time
from random import Random

import pytest
import yaml

from cooper_audit.run.run_record import read_metrics
from crash.process import start

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def _start(settings, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump(settings))
    return start(config, tmp_path / "run", tmp_path / "run.log")


def _send(process, number):
    assert process.pid is not None
    os.kill(process.pid, number)


def _wait(process, condition):
    while process.is_alive() and not condition():
        time.sleep(0.002)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_finishes_the_step_and_writes_a_checkpoint(settings, tmp_path, number):
    settings |= {"steps": 1000, "checkpoint": {"every": 0}, "evaluation": {"every": 0}}
    process = _start(settings, tmp_path)
    _wait(process, lambda: len(read_metrics(tmp_path / "run")) >= 2)
    _send(process, number)
    process.join()
    assert process.exitcode == 130
    last = read_metrics(tmp_path / "run")[-1]["step"]
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == [f"{last:06d}"]
    assert f"stopped after step {last}; continue with --resume" in (tmp_path / "run.log").read_text()


def test_a_long_step_does_not_keep_it(settings, tmp_path):
    settings |= {"kind": "rule", "evaluation": {"every": 0}, "rollout": {"n": 5000, "max_tokens": 12}}
    process = _start(settings, tmp_path)
    _wait(process, lambda: "The policy reads" in (tmp_path / "run.log").read_text())
    time.sleep(0.5)  # a step takes many seconds
    begun = time.monotonic()
    _send(process, signal.SIGTERM)
    process.join()
    assert process.exitcode == 130
    assert time.monotonic() - begun < 30
    assert read_metrics(tmp_path / "run") == []
    assert "stopped after step 0; continue with --resume" in (tmp_path / "run.log").read_text()


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_the_second_ends_the_run_at_once(settings, tmp_path, number, exit_code):
    settings |= {"kind": "function", "rewards": [{"kind": "function", "function": "crash.slow_reward:slow"}]}
    process = _start(settings, tmp_path)
    _wait(process, lambda: read_metrics(tmp_path / "run"))
    _send(process, number)
    _wait(process, lambda: "interrupt again" in (tmp_path / "run.log").read_text())
    _send(process, number)
    process.join()
    assert process.exitcode == exit_code
    assert [row["step"] for row in read_metrics(tmp_path / "run")] == [0]


def test_sigterm_ends_a_run_within_ten_seconds(settings, tmp_path):
    slow = {"kind": "function", "rewards": [{"kind": "function", "function": "crash.slow_reward:stuck"}]}
    process = _start(settings | slow, tmp_path)
    _wait(process, lambda: read_metrics(tmp_path / "run"))
    time.sleep(2)  # the first answer is being graded
    begun = time.monotonic()
    _send(process, signal.SIGTERM)
    process.join()
    assert time.monotonic() - begun < 10
    assert process.exitcode == 143
    assert "ended 8 s after SIGTERM, in the middle of a step" in (tmp_path / "run.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True], ids=["while it starts", "within a run that always saves"])
@pytest.mark.parametrize("numbers", [SIGNALS, SIGNALS[:1]], ids=["both", "interrupts"])
def test_a_storm_of_them_ends_the_command_without_frames_and_the_run_goes_on(settings, tmp_path, begun, numbers):
    settings |= {"kind": "rule", "steps": 300, "checkpoint": {"every": 1}, "evaluation": {"every": 0}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-c", "from cooper_base.cli import start; start()", "train", str(tmp_path / "run.yaml")]
    random = Random(0)
    for trial in range(2):
        resume = ["--resume"] if (tmp_path / "run" / "metrics.jsonl").exists() else []
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen([*command, *resume], stdout=log, stderr=log, start_new_session=True)
        steps = len(read_metrics(tmp_path / "run"))
        while begun and process.poll() is None and len(read_metrics(tmp_path / "run")) <= steps:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 1 if begun else 4))
        while process.poll() is None:
            process.send_signal(random.choice(numbers))
            time.sleep(random.choice([0, 0.001, 0.01]))
        said = (tmp_path / "log").read_text()
        assert "Traceback" not in said, f"trial {trial}: {said}"
    settings |= {"steps": max(1, len(read_metrics(tmp_path / "run"))) + 1}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(settings))
    resume = ["--resume"] if (tmp_path / "run").exists() else []
    subprocess.run([*command, *resume], check=True, capture_output=True)
    assert [row["step"] for row in read_metrics(tmp_path / "run")] == list(range(1, settings["steps"] + 1))
