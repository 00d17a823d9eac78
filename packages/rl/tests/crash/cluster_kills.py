"""Kills processes of a run on the cluster engine, and compares the run with one that was left alone."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import yaml

from cooper_lab.arithmetic.arms import arm_settings
from crash.comparison import differences

CALL_TIMEOUT_S = 20
COOPER = f"""
from cooper_base.cli.main import app
from cooper_rl.engines.scale.ray import ranks

ranks.CALL_TIMEOUT_S = {CALL_TIMEOUT_S}
app()
"""
"""The command `cooper`, which takes a process for dead after so many seconds."""
SETTINGS = {
    "steps": 18,
    "problems_per_step": 2,
    "problems": {"limit": 32},
    "rollout": {"n": 4, "max_tokens": 12},
    "evaluation": {"every": 0},
    "checkpoint": {"every": 2},
    "engine": {
        "kind": "cluster",
        "policy_ranks": 2,
        "reward_model_ranks": 1,
        "cpus_per_rank": 0.1,
    },
}
"""Changes to the demo's Cooper arm, whose models and data these are."""
ROLES = ("raylet", "reward_model", "policy", "driver", "hanging policy", "policy twice")
"""`policy twice` is killed a second time while it starts again."""


@dataclass(frozen=True)
class Kill:
    """One kill: whose, after which recorded step, and the seconds until the second step after it was recorded.

    The first may be one that no longer needed the process.
    """

    role: str
    after: int
    seconds: float


class ClusterRun:
    """`cooper train` on 2 + 1 processes, in a folder of its own."""

    def __init__(self, folder: Path):
        """Begin the run. The name of the run is always the same, because model cards give it."""
        shutil.rmtree(folder, ignore_errors=True)
        self.folder, self.directory = folder, folder / "cooper"
        folder.mkdir(parents=True)
        self._file = folder / "run.yaml"
        self._file.write_text(yaml.safe_dump(arm_settings("cooper", folder, 0, SETTINGS)), encoding="utf-8")
        self._driver = self._start()
        self._deaths_to_come = 0

    def disturb(self, role: str, after: int, wait_s: float) -> Kill | None:
        """Kill (or stop for ever) a process `wait_s` after a step was recorded; wait until the run has got further.

        None if the run was over before.
        """
        if not self._reaches(after):
            return None
        time.sleep(wait_s)
        victim = self._victim(role)
        at = self._step()
        if victim is None or at >= SETTINGS["steps"] - 2:
            return None
        before = self._ranks("policy")
        self._deaths_to_come += role in ("driver", "raylet")
        os.kill(victim, signal.SIGSTOP if role.startswith("hanging") else signal.SIGKILL)
        begin = time.monotonic()
        if role == "policy twice":
            os.kill(self._next_victim(before), signal.SIGKILL)
        self._reaches(at + 2)
        return Kill(role, at, time.monotonic() - begin)

    def finish(self) -> None:
        """Let the run end. Raises RuntimeError, with what the run printed, if it fails."""
        while not self._ended():
            time.sleep(0.1)

    def differences(self, undisturbed: "ClusterRun") -> list[str]:
        """All that differs in what is on disk, but for times, the number of recoveries and the processes' logs."""
        return differences(undisturbed.directory, self.directory, ("logs", "tensorboard"), ("engine/recoveries",))

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        train = [sys.executable, "-c", COOPER, "train", str(self._file), *more]
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(train, start_new_session=True, stdout=output, stderr=output)

    def _reaches(self, step: int) -> bool:
        """Wait until the step is recorded, going on with --resume where the driver is dead; False if the run ends."""
        while self._step() < step:
            if self._ended():
                return False
            time.sleep(0.05)
        return True

    def _ended(self) -> bool:
        """Whether the run is over. A driver that was killed is started again."""
        code = self._driver.poll()
        if code and not self._deaths_to_come:
            raise RuntimeError((self.folder / "output.txt").read_text(encoding="utf-8")[-4000:])
        if code:
            self._deaths_to_come -= 1
            self._driver = self._start("--resume")
        return code == 0

    def _step(self) -> int:
        """The last step that is recorded."""
        file = self.directory / "metrics.jsonl"
        lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
        return json.loads(lines[-1])["step"] if lines else 0

    def _victim(self, role: str) -> int | None:
        if role == "driver":
            return self._driver.pid
        if role == "raylet":
            return next((pid for pid in _children(self._driver.pid) if _program(pid) == "raylet"), None)
        found = self._ranks("policy" if "policy" in role else role)
        return found[-1] if found else None

    def _next_victim(self, before: Sequence[int]) -> int:
        """The first new process of the policy."""
        while not (found := [pid for pid in self._ranks("policy") if pid not in before]):
            time.sleep(0.05)
        return found[0]

    def _ranks(self, name: str) -> list[int]:
        """The processes of a group, oldest first."""
        return sorted(writing_to((self.directory / "logs" / f"{name}-").absolute()), key=_started)


def writing_to(beginning: Path) -> list[int]:
    """The processes whose output goes to a file with this beginning of a path."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            output = os.readlink(entry / "fd" / "1") if entry.name.isdigit() else ""
        except OSError:  # it has ended, or is another user's
            continue
        if output.startswith(str(beginning)):
            found.append(int(entry.name))
    return found


def _children(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children()]


def _started(pid: int) -> int:
    """In ticks since the machine was started; 0 for a process that has ended."""
    file = Path(f"/proc/{pid}/stat")
    return int(file.read_text(encoding="utf-8").rpartition(")")[2].split()[19]) if file.exists() else 0


def _program(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


def disturbed(folder: Path, roles: Sequence[str], random: Random, step_s: float) -> tuple[ClusterRun, list[Kill]]:
    """A run that loses a process of each role in turn, at random moments of steps that take about `step_s`.

    It may end before all had their turn.
    """
    run, kills = ClusterRun(folder), []
    after = 0
    for role in roles:
        after += random.randint(0, 1)
        kill = run.disturb(role, max(1, after), random.uniform(0, step_s))
        if kill is None:
            break
        kills.append(kill)
        after = kill.after + 1
    run.finish()
    return run, kills
