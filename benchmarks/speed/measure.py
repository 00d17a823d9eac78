"""Measures CPU seconds, wall time and memory of a block, and prints them as a candidate's result."""

import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Meter:
    """Seconds spent in blocks: `cpu` is for this process and its children, `wall` is clock time."""

    cpu: float = 0.0
    wall: float = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add a block's seconds."""
        cpu, wall = cpu_seconds(), time.perf_counter()
        yield
        self.cpu += cpu_seconds() - cpu
        self.wall += time.perf_counter() - wall


def report(meter: Meter, units: float, **more: float | str) -> None:
    """Print a candidate's one line of JSON: total seconds, and the units of work (tokens, steps, rows) done in them."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    found = {"cpu": meter.cpu, "wall": meter.wall, "units": units, "peak_mib": peak, **more}
    print("RESULT " + json.dumps(found), flush=True)


def cpu_seconds() -> float:
    """CPU seconds of this process, its ended children and its living ones with theirs (a verifier's processes)."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage) + _of_living_children("self")


def _of_living_children(process: str) -> float:
    seconds = 0.0
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread or a process that has ended since
            for pid in children.read_text().split():
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + _of_living_children(pid)
    return seconds
