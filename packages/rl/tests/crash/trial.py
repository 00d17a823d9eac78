"""Kills runs at random moments, resumes them, and compares them with one that was left alone."""

import logging
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

import yaml

from cooper_lab.arithmetic.arms import arm_settings
from crash.comparison import differences
from crash.phases import phase_of
from crash.process import kill, start

logger = logging.getLogger(__name__)

MOST_KILLS = 3
"""The most kills in one run."""
SETTINGS = {
    "rule": {"kind": "maths"},
    "steps": 5,
    "problems_per_step": 3,
    "problems": {"limit": 32},
    "test_problems": {"limit": 2},
    "rollout": {"n": 4, "max_tokens": 12},
    "cooptimization": {"replay": {"pairs_per_step": 2}},
    "evaluation": {"every": 2, "k": 1},
    "checkpoint": {"every": 2, "keep": 2, "keep_best": "test/rule_avg"},
}
"""Changes to the demo's Cooper arm that make a step take about a tenth of a second."""


@dataclass
class Result:
    """The number of `kills` and of those whose runs came out `equal`; the parts in which they fell; the differences."""

    kills: int = 0
    equal: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class CrashTest:
    """Works in `folder`, where it makes the uninterrupted run first."""

    def __init__(self, folder: Path, seed: int, kept: Path | None = None):
        """Runs that differ are copied to the folder `kept`, beside the one that was left alone."""
        self.folder, self._kept = folder, kept
        self._rng = Random(seed)
        self._reference = self._configure("reference")
        process = self._begin("reference")
        begin = time.monotonic()
        self._finish(process, "reference")
        self._seconds = time.monotonic() - begin
        self._changes = int(self._log("reference").with_suffix(".changes").read_text())

    def run(self, kills: int) -> Result:
        """Kill runs until there have been `kills` kills; each run is finished and compared."""
        result = Result()
        while result.kills < kills:
            phases = self._kill_and_resume("run", min(self._rng.randint(1, MOST_KILLS), kills - result.kills))
            found = differences(self._reference, self._directory("run"))
            logger.info("killed in %s: %s", ", ".join(phases) or "no part", "; ".join(found) or "equal")
            if found and self._kept is not None:
                for name in ("reference", "run"):
                    shutil.copytree(self.folder / name, self._kept / f"after-{result.kills:04d}-kills" / name)
            result.kills += len(phases)
            result.equal += 0 if found else len(phases)
            result.phases.update(phases)
            result.failures += [f"killed in {', '.join(phases)}: {difference}" for difference in found]
        return result

    def _kill_and_resume(self, name: str, kills: int) -> list[str]:
        """Run to the end with at most so many kills on the way. Returns the parts in which they fell."""
        self._configure(name)
        phases: list[str] = []
        while len(phases) < kills:
            process = self._killed(name)
            if process.exitcode == 0:  # the run was through before the time to kill it
                return phases
            if process.exitcode != -9:
                raise RuntimeError(self._log(name).read_text())
            phases.append(phase_of(self._log(name).with_suffix(".stack").read_text()))
        self._finish(self._begin(name), name)
        return phases

    def _killed(self, name: str) -> BaseProcess:
        """A process that has ended. Usually one of several ways has killed it; sometimes it finished before that."""
        ways = [self._kill_at_a_time, self._kill_in_a_checkpoint, self._kill_at_a_change]
        (way,) = self._rng.choices(ways, weights=[3, 1, 1])
        return way(name)

    def _kill_at_a_time(self, name: str) -> BaseProcess:
        process = self._begin(name)
        process.join(self._rng.uniform(0, self._seconds))
        kill(process, self._log(name))
        return process

    def _kill_in_a_checkpoint(self, name: str) -> BaseProcess:
        process = self._begin(name)
        skip = self._rng.randrange(4)
        seen = None
        while process.is_alive():
            now = next((self._directory(name) / "checkpoints").glob(".*.partial"), None)
            if now is not None and now != seen:
                seen, skip = now, skip - 1
                if skip < 0:
                    time.sleep(self._rng.uniform(0, 0.03))
                    kill(process, self._log(name))
            time.sleep(0.0005)
        process.join()
        return process

    def _kill_at_a_change(self, name: str) -> BaseProcess:
        process = self._begin(name, die_at=self._rng.randint(1, self._changes))
        process.join()
        return process

    def _configure(self, name: str) -> Path:
        """Write the configuration of a new run; returns its folder."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        settings = arm_settings("cooper", self.folder / name, 0, SETTINGS)
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        return self._directory(name)

    def _directory(self, name: str) -> Path:
        """A run's folder. All runs have the same name but different folders, because model cards name the run."""
        return self.folder / name / "cooper"

    def _begin(self, name: str, die_at: int = 0) -> BaseProcess:
        return start(self.folder / f"{name}.yaml", self._directory(name), self._log(name), die_at)

    def _finish(self, process: BaseProcess, name: str) -> None:
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(self._log(name).read_text())

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"
