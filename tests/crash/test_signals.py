"""What SIGINT and SIGTERM do to `cooper train`."""

import os
import signal
import time

import pytest
import yaml

from cooper_rl.observe.run_record import read_metrics
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
    settings |= {"kind": "rule", "extra_rewards": [{"function": "crash.slow_reward:slow"}]}
    process = _start(settings, tmp_path)
    _wait(process, lambda: read_metrics(tmp_path / "run"))
    _send(process, number)
    _wait(process, lambda: "interrupt again" in (tmp_path / "run.log").read_text())
    _send(process, number)
    process.join()
    assert process.exitcode == exit_code
    assert [row["step"] for row in read_metrics(tmp_path / "run")] == [0]
