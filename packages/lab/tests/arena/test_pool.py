"""Workers end with the process that started them, one call at a time has a folder, and errors are for users."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from cooper_base.config.user_functions import load_object
from cooper_base.errors import InputError
from cooper_lab.arithmetic.pool import run_in_processes
from waiting import wait_for

COOPER = [sys.executable, "-c", "from cooper_base.cli.main import app; app()"]


def spin(pids: Path) -> None:
    """A job that never ends, in pure Python; it leaves its process's id."""
    (pids / str(os.getpid())).touch()
    while True:
        pass


def end_abruptly(job: int) -> None:
    os._exit(job)


def descendants(pid: int) -> list[int]:
    """The processes that the process has started, and theirs."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def alive(pids: Sequence[int]) -> list[int]:
    """Those that are there and have not ended: an orphan that nobody waits for stays behind as a zombie."""
    states = {pid: Path(f"/proc/{pid}/stat") for pid in pids}
    found = {pid: file.read_text().rpartition(")")[2].split()[0] for pid, file in states.items() if file.exists()}
    return [pid for pid, state in found.items() if state != "Z"]


@pytest.fixture
def start():
    """Starts a command in a process that is killed with all it has started, should the test fail."""
    started: list[subprocess.Popen] = []

    def run(command: Sequence[str], folder: Path) -> subprocess.Popen:
        path = os.pathsep.join(place for place in sys.path if place)
        environment = {**os.environ, "PYTHONPATH": path}
        quiet = subprocess.DEVNULL
        started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def check_that_all_end(process: subprocess.Popen, number: signal.Signals) -> None:
    left = descendants(process.pid)
    assert len(left) >= 2
    process.send_signal(number)
    process.wait(200)
    try:
        assert wait_for(lambda: not alive(left), 15), f"{alive(left)} of {left} train on"
    finally:
        for pid in alive(left):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP], ids=lambda number: number.name)
def test_workers_end_with_their_parent_whatever_ends_it(start, tmp_path, number):
    script = (  # under `nohup` a hang-up is ignored, as it should be
        "import signal\n"
        "from pathlib import Path\n"
        "from arena.test_pool import spin\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from cooper_lab.arithmetic.pool import run_in_processes\n"
        "if __name__ == '__main__': run_in_processes(spin, [Path()] * 2, 2, lambda: None)"
    )
    (tmp_path / "parent.py").write_text(script)
    folder = tmp_path / "pids"
    folder.mkdir()
    process = start([sys.executable, str(tmp_path / "parent.py")], folder)
    assert wait_for(lambda: len(list(folder.iterdir())) == 2, 100)
    check_that_all_end(process, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_demo_has_its_folder_alone_and_leaves_nobody_in_it(start, tmp_path, number):
    process = start([*COOPER, "demo", "--output-dir", "runs/demo"], tmp_path)
    assert wait_for((tmp_path / "runs/demo/rule/metrics.jsonl").exists, 200)
    for command in (["demo"], ["arena", "--design", "rule", "--hole", "none"]):
        words = [*COOPER, *command, "--output-dir", "runs/demo"]
        second = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert second.returncode == 2
        assert f"another call is running its cells or arms in this folder (process {process.pid} on" in second.stderr
        assert (tmp_path / "runs/demo/rule/metrics.jsonl").exists(), "the second call has deleted the first one's runs"
    check_that_all_end(process, number)


def test_a_module_of_the_working_folder_is_found_by_workers(tmp_path, monkeypatch):
    (tmp_path / "jobs_here.py").write_text("def double(value):\n    return 2 * value\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])  # as with the `cooper` command
    assert run_in_processes(load_object("jobs_here:double"), [1, 2], 1, lambda: None) == [2, 4]
    sys.modules.pop("jobs_here")


def test_a_job_of_a_module_that_workers_cannot_find_is_an_error_of_one_line(tmp_path, monkeypatch):
    (tmp_path / "hidden_jobs.py").write_text("def job(value):\n    return value\n")
    with monkeypatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        from hidden_jobs import job  # pyright: ignore[reportMissingImports]
    with pytest.raises(InputError, match=r"No module named 'hidden_jobs', in a worker process; put it into"):
        run_in_processes(job, [1, 2], 1, lambda: None)
    sys.modules.pop("hidden_jobs")


def test_a_worker_that_is_killed_is_said_to_be():
    with pytest.raises(InputError, match="a worker was killed, perhaps because memory ran out"):
        run_in_processes(end_abruptly, [1], 1, lambda: None)
