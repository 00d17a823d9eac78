"""The clock of a step's parts tells their memory too, as far as the system does."""

import mmap
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cooper_base import clock as clock_module
from cooper_base.clock import Clock

MIB = 2**20
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system tells no resident memory")


@needs_proc
def test_a_part_that_keeps_memory_is_seen_and_one_that_frees_it_too():
    clock = Clock()
    with clock.measure("before"):
        pass
    with clock.measure("load"):
        held = mmap.mmap(-1, 200 * MIB)  # never kept by the allocator, as freed tensors may be
        for _ in range(200):
            held.write(b"x" * MIB)
    with clock.measure("drop"):
        held.close()
    found = clock.metrics()
    assert found["memory/load"] - found["memory/before"] == pytest.approx(200, abs=20)
    assert found["memory/drop"] - found["memory/before"] == pytest.approx(0, abs=20)
    assert found["memory/peak"] >= found["memory/load"] - 1
    assert set(found) >= {"time/before", "time/load", "time/drop", "time/step"}


def test_a_system_that_tells_nothing_leaves_the_metrics_out(monkeypatch, tmp_path):
    monkeypatch.setattr(clock_module, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(sys, "platform", "win32")
    clock = Clock()
    with clock.measure("sample"):
        pass
    assert set(clock.metrics()) == {"time/sample", "time/step"}


def test_the_clock_does_not_load_torch():
    program = """
import sys
from cooper_base.clock import Clock
clock = Clock()
with clock.measure("sample"):
    pass
assert not any(name.startswith("gpu_memory/") for name in clock.metrics())
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


class TwoGpus:
    """What the clock asks of `torch.cuda`, for a machine that has no GPU."""

    def __init__(self):
        self.peaks = [0, 0]

    def is_initialized(self):
        return True

    def device_count(self):
        return len(self.peaks)

    def max_memory_allocated(self, device):
        return self.peaks[device]

    def reset_peak_memory_stats(self, device):
        self.peaks[device] = 0


def test_every_part_has_its_own_peak_on_the_fuller_gpu(monkeypatch):
    cuda = TwoGpus()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    clock = Clock()
    with clock.measure("sample"):
        cuda.peaks = [3 * MIB, 7 * MIB]
    with clock.measure("update_policy"):
        cuda.peaks = [5 * MIB, 0]
    found = clock.parts()
    assert (found["gpu_memory/sample"], found["gpu_memory/update_policy"]) == (7, 5)
