"""A run on the cluster engine: the same numbers, processes that die, and what is refused before a model is loaded."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import ray
import yaml

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_base.errors import EngineLost, MissingExtraError
from cooper_base.files.folder_lock import FolderLock
from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.scale.ray import ClusterEngine
from crash.cluster_kills import writing_to
from rank_processes import together, two_ranks

SMALL = {"kind": "cluster", "cpus_per_rank": 0.1}


def timeless(directory: Path) -> list[dict[str, float]]:
    leave_out = (*MEASURED, "engine/recoveries")
    return [{k: v for k, v in row.items() if not k.startswith(leave_out)} for row in read_metrics(directory)]


def pids(engine: ClusterEngine) -> list[int]:
    groups = {id(group): group for group in (engine.policy_group, engine.reward_model_group)}
    calls = [a.__ray_call__.remote(lambda _: os.getpid()) for group in groups.values() for a in group.actors]
    return ray.get(calls)


@pytest.mark.slow
@together
def test_a_killed_process_costs_no_step_and_changes_no_number(settings, tmp_path):
    """Both updates run at once, in processes of their own; one of them dies in the middle of the run."""
    settings = {**settings, "steps": 3, "checkpoint": {"every": 1}, "evaluation": {"every": 0}}
    with CooperTrainer.from_config(build_config({**settings, "name": "local"})) as local:
        local.fit(lambda *_: None)
    two_ranks()  # Ray itself
    config = build_config({**settings, "engine": {**SMALL, "policy_ranks": 1, "reward_model_ranks": 1}})
    engine = config.engine
    assert isinstance(engine, ClusterEngine)
    with CooperTrainer.from_config(config) as trainer:
        first = pids(engine)

        def kill(step: int, _: object) -> None:
            if step == 2 and pids(engine) == first:
                os.kill(first[1], signal.SIGKILL)

        trainer.fit(kill)
        assert not set(first) & set(pids(engine))
    rows = read_metrics(trainer.directory)
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert [row["engine/recoveries"] for row in rows] == [0, 1, 1]  # step 2 was done again, its checkpoint not written
    for found, expected in zip(timeless(trainer.directory), timeless(local.directory), strict=True):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert sorted(path.name for path in (trainer.directory / "logs").iterdir()) == [
        "policy-0.log",
        "reward_model-0.log",
    ]


@pytest.mark.slow
@together
def test_a_process_that_hangs_counts_as_dead(tiny_models, tmp_path, monkeypatch):
    two_ranks()  # Ray itself
    monkeypatch.setattr("cooper_rl.engines.scale.ray.ranks.CALL_TIMEOUT_S", 5)
    engine = ClusterEngine(cpus_per_rank=0.1)
    engine.open(tmp_path)
    (pid,) = set(pids(engine))
    learner = engine.reward_model(LearnerConfig(model=str(tiny_models / "reward_model")), 1)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(EngineLost, match="a process of policy has not answered for 5 s"):
        learner.score([[1, 2, 3]])
    engine.close()
    ends(tmp_path, [pid])


@together
def test_more_processes_than_devices_are_refused(tmp_path):
    two_ranks()  # Ray itself
    with pytest.raises(InputError, match=r"4 processes with 1 CPUs each need 4, and the cluster has \d"):
        ClusterEngine(policy_ranks=3, reward_model_ranks=1).open(tmp_path)
    with pytest.raises(InputError, match=r"need 1000, and the cluster has .* or cpus_per_rank"):
        ClusterEngine(cpus_per_rank=1000).open(tmp_path)


def test_a_cluster_without_ray_names_the_extra(settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="pip install ray"):
        CooperTrainer.from_config(build_config({**settings, "engine": SMALL}))
    assert not (tmp_path / "run").exists()


def test_a_second_driver_in_the_folder_is_refused(tmp_path):
    hold = "import sys, pathlib; from cooper_base.files.folder_lock import FolderLock; "
    hold += "lock = FolderLock(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=rf"training in this folder already \(process {other.pid} on"):
            FolderLock(tmp_path)
        other.kill()
    FolderLock(tmp_path).close()


def started(settings: dict, name: str, tmp_path: Path, *more: str) -> subprocess.Popen:
    """`cooper train` on 2 + 2 processes, in a process group of its own, as a terminal starts it."""
    file = tmp_path / f"{name}.yaml"
    engine = {**SMALL, "policy_ranks": 2, "reward_model_ranks": 2}
    file.write_text(yaml.safe_dump({**settings, "name": name, "engine": engine}))
    train = [sys.executable, "-c", "from cooper_base.cli.main import app; app()", "train", str(file), *more]
    return subprocess.Popen(train, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def reaches(step: int, directory: Path, process: subprocess.Popen) -> None:
    while process.poll() is None and len(timeless_or_none(directory)) < step:
        time.sleep(0.1)
    assert process.poll() is None


def timeless_or_none(directory: Path) -> list:
    return timeless(directory) if (directory / "metrics.jsonl").exists() else []


def descendants(directory: Path) -> list[int]:
    """Processes whose output goes to the run's logs, and Ray's own that a session without driver leaves behind."""
    return writing_to(directory / "logs")


def ends(directory: Path, children: list[int]) -> None:
    """Within a minute, all of a run's processes."""
    until = time.monotonic() + 60
    while (
        descendants(directory) or any(Path(f"/proc/{pid}").exists() for pid in children)
    ) and time.monotonic() < until:
        time.sleep(0.2)
    assert descendants(directory) == []
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []


def children_of(process: subprocess.Popen) -> list[int]:
    """Ray's own processes, which the driver starts."""
    return [child.pid for child in psutil.Process(process.pid).children()]


@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_its_run_goes_on_bit_for_bit(settings, tmp_path):
    settings = {**settings, "steps": 5, "checkpoint": {"every": 1}, "evaluation": {"every": 0}}
    with started(settings, "whole", tmp_path) as whole:
        assert whole.wait() == 0
    ends(tmp_path / "whole", [])
    with started(settings, "killed", tmp_path) as killed:
        reaches(2, tmp_path / "killed", killed)
        children = children_of(killed)
        assert len(descendants(tmp_path / "killed")) == 4
        killed.kill()
    ends(tmp_path / "killed", children)
    with started(settings, "killed", tmp_path, "--resume") as resumed:
        assert resumed.wait() == 0
    assert timeless(tmp_path / "killed") == timeless(tmp_path / "whole")
    for name in ("policy/model.safetensors", "reward_model/model.safetensors", "policy/trainer_state/state.json"):
        one, other = (tmp_path / run / "checkpoints" / "000005" / name for run in ("killed", "whole"))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_ctrl_c_ends_the_step_writes_a_checkpoint_and_leaves_no_process(settings, tmp_path):
    settings = {**settings, "steps": 500, "checkpoint": {"every": 0}, "evaluation": {"every": 0}}
    with started(settings, "run", tmp_path) as run:
        reaches(1, tmp_path / "run", run)
        children = children_of(run)
        os.killpg(run.pid, signal.SIGINT)  # as the terminal does: to every process of the group
        assert run.wait() == 130
    ends(tmp_path / "run", children)
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 1
