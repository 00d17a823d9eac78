"""The files in `examples/cluster/` do what they say, as far as a machine without Slurm and Kubernetes can tell."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cooper_rl.engines.scale.ray import ClusterEngine
from cooper_rl.run_config import load_config
from repository import ROOT

FILES = ROOT / "examples" / "cluster"
STUBS = {
    "scontrol": 'if [ "$1" = show ]; then printf "n1\\nn2\\nn3\\n"; fi; echo "scontrol $*" >> "$CALLS"',
    "srun": 'case "$*" in *hostname*) echo 10.0.0.1 10.0.0.2;; *) echo "srun $*" >> "$CALLS";; esac',
    "sleep": ":",
    "cooper": 'echo "cooper $*" >> "$CALLS"; trap "exit 130" TERM; '
    'if [ -n "${WAITS:-}" ]; then kill -TERM $PPID; while :; do read -t 0.1 < <(:) || :; done; fi; exit "${ENDS:-0}"',
}


@pytest.fixture
def submit(tmp_path):
    """Runs the batch script with stubs of what a cluster has; returns its exit code and the commands it gave."""
    for name, body in STUBS.items():
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f"#!/bin/bash\n{body}\n")
        stub.chmod(0o755)

    def run(**environment: str) -> tuple[int, list[str]]:
        calls = tmp_path / "calls"
        calls.write_text("")
        given = {"CALLS": str(calls), "HOME": str(tmp_path), "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]"}
        path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"  # as where `cooper` is found
        script = ["bash", str(FILES / "slurm.sh"), "run.yaml", "steps=5"]
        done = subprocess.run(script, env={**os.environ, **given, "PATH": path, **environment}, timeout=60)
        return done.returncode, sorted(calls.read_text().splitlines())

    return run


def test_slurm_starts_ray_on_every_node_and_the_run_on_the_first(submit, tmp_path):
    code, calls = submit()
    assert code == 0
    assert "cooper train run.yaml engine.address=10.0.0.1:6379 steps=5" in calls
    head, others = [call for call in calls if "ray start" in call]
    assert "--nodelist=n1 --overlap ray start --head --node-ip-address=10.0.0.1 --port=6379" in head
    assert "--nodes=2 --ntasks=2 --exclude=n1 --overlap ray start --address=10.0.0.1:6379" in others
    assert not [call for call in calls if "requeue" in call]
    assert list(tmp_path.glob(".cooper-ray-*")) == []  # the token is gone


def test_a_job_at_its_end_is_queued_again_and_resumes(submit):
    code, calls = submit(WAITS="1", SLURM_RESTART_COUNT="1")
    assert code == 130
    assert "scontrol requeue 7" in calls
    assert any(call.endswith("steps=5 --resume") for call in calls)


def test_a_job_that_fails_is_not_queued_again(submit):
    code, calls = submit(ENDS="2")
    assert code == 2
    assert not [call for call in calls if "requeue" in call]


def test_the_configuration_fits_the_nodes_of_both():
    engine = load_config(FILES / "run.yaml", ["engine.address=auto"]).engine
    assert isinstance(engine, ClusterEngine)
    assert engine.policy_ranks + engine.reward_model_ranks == 8
    assert "--gpus-per-node=8" in (FILES / "slurm.sh").read_text()


def test_kuberay_runs_the_command_where_ray_is():
    job = yaml.safe_load((FILES / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for pod in (group["template"]["spec"] for group in pods):
        names = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == names
            assert container["resources"]["limits"] == container["resources"]["requests"]
    shell, flag, script = shlex.split(job["spec"]["entrypoint"])
    assert (shell, flag) == ("bash", "-c")
    assert subprocess.run(["bash", "-n", "-c", script]).returncode == 0
    assert re.search(r"cooper train run.yaml engine.address=auto \$resume$", script)
    assert load_config(FILES / "run.yaml").name in script
