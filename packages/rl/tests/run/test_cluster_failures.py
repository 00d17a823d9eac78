"""What a cluster run survives beside a killed process: one that hangs, a killed driver, a full object store."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import pytest
import yaml

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from crash.cluster_kills import CALL_TIMEOUT_S, ClusterRun, disturbed

RUN = """
import sys
import numpy, yaml
from cooper_rl import CooperTrainer, build_config

with CooperTrainer.from_config(build_config(yaml.safe_load(open(sys.argv[1])))) as trainer:
    called = []

    def call(step, _):
        if step == 2 and not called:
            called.append(step)
            trainer.parts.engine.policy_group.call("drop", "nothing", numpy.zeros(150 * 2**20, numpy.uint8))

    trainer.fit(call)
"""
STORE = {"RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(80 * 2**20)}
DISK_THRESHOLD = "RAY_local_fs_capacity_threshold"
"""The share of the disk above which Ray counts it as full. With its default, 0.95, other files would decide."""


def trained(settings: dict, tmp_path: Path, *, disk_is_full: bool) -> list[dict[str, float]]:
    """The metrics of a run whose Ray has a store of 80 MiB, and that makes a call with 150 MiB of arguments."""
    name = "full" if disk_is_full else "on_disk"
    engine = {"kind": "cluster", "cpus_per_rank": 0.1}
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump({**settings, "evaluation": {"every": 0}, "name": name, "engine": engine}))
    command = [sys.executable, "-c", RUN, str(file)]
    environment = os.environ | STORE | {DISK_THRESHOLD: "0.01" if disk_is_full else "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("object store is full" in done.stderr + done.stdout) == disk_is_full
    left_out = (*MEASURED, "engine/recoveries")
    rows = read_metrics(tmp_path / name)
    assert rows[-1]["engine/recoveries"] == disk_is_full
    return [{name: value for name, value in row.items() if not name.startswith(left_out)} for row in rows]


@pytest.mark.slow
def test_a_full_object_store_is_counted_and_costs_no_step(settings, tmp_path):
    """Arguments larger than the store go to the disk. Where the disk counts as full as well, Ray is started anew."""
    on_disk = trained(settings, tmp_path, disk_is_full=False)
    assert [row["step"] for row in on_disk] == [1, 2, 3, 4]
    assert trained(settings, tmp_path, disk_is_full=True) == on_disk


ALONE = """
import sys, time
from pathlib import Path
from cooper_rl.engines.scale.ray import ClusterEngine

engine = ClusterEngine(cpus_per_rank=0.1)
engine.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
engine.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "closed"])
def test_no_process_outlives_a_driver(tmp_path, how):
    """Ray's agents waited a minute for a driver that was killed."""
    command, pipe = [sys.executable, "-c", ALONE, str(tmp_path)], subprocess.PIPE
    driver = subprocess.Popen(command, start_new_session=True, stdin=pipe, stdout=pipe)
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"open\n"
    family = psutil.Process(driver.pid).children(recursive=True)
    assert {"raylet", "sh"} <= {process.name() for process in family}
    driver.kill() if how == "killed" else driver.communicate(b"\n")
    driver.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert [process.cmdline() for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that have this in their environment."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


@pytest.mark.slow
@pytest.mark.parametrize(("program", "children"), [("gcs_server", 0), ("raylet", 0), ("raylet", 2)])
def test_no_process_outlives_a_driver_that_is_killed_while_it_starts(tmp_path, program, children):
    """With two children, its agents, the raylet is there, and the driver still waits for it."""
    command = [sys.executable, "-c", ALONE, str(tmp_path)]
    driver = subprocess.Popen(
        command,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "MARK": str(tmp_path)},
    )
    until = time.monotonic() + 120
    while not any(
        process.name() == program and len(children_of(process.pid)) >= children for process in children_of(driver.pid)
    ):
        assert driver.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    driver.kill()
    assert driver.communicate()[0] == b""  # it had not started
    until = time.monotonic() + 6  # the agents alone took 15 seconds, and up to a minute
    while (left := marked(str(tmp_path))) and time.monotonic() < until:
        time.sleep(0.2)
    assert [process.cmdline() for process in left] == []


def children_of(pid: int) -> list[psutil.Process]:
    try:
        return [one for one in psutil.Process(pid).children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.slow
@pytest.mark.long
def test_a_run_whose_rank_hangs_and_whose_driver_is_killed_comes_out_equal(tmp_path):
    alone = ClusterRun(tmp_path / "alone")
    alone.finish()
    run, kills = disturbed(tmp_path / "run", ["hanging policy", "driver"], Random(0), step_s=1)
    assert [kill.role for kill in kills] == ["hanging policy", "driver"]
    assert kills[0].seconds > CALL_TIMEOUT_S
    assert run.differences(alone) == []
