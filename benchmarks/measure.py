"""CPU seconds, wall time and memory of a block, and how a candidate reports them."""

import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Meter:
    """Seconds of a block: `cpu` of this process and its children, `wall` on the clock."""

    cpu: float = 0.0
    wall: float = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add a block's seconds."""
        cpu, wall = _cpu_seconds(), time.perf_counter()
        yield
        self.cpu += _cpu_seconds() - cpu
        self.wall += time.perf_counter() - wall


def report(meter: Meter, units: float, **more: float | str) -> None:
    """Print a candidate's one line of JSON: seconds in all, and the units of work (tokens, steps, rows) they bought."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    found = {"cpu": meter.cpu, "wall": meter.wall, "units": units, "peak_mib": peak, **more}
    print("RESULT " + json.dumps(found), flush=True)


def _cpu_seconds() -> float:
    """Of this process, of its ended children, and of those that live (a verifier's processes)."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = 0.0
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            living += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return sum(u.ru_utime + u.ru_stime for u in usage) + living
