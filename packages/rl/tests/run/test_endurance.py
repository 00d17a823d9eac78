"""A run of many steps holds no more memory, files and processes at its end than near its beginning."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = int(os.environ.get("COOPER_ENDURANCE_STEPS", "500"))
"""`make endurance` sets this to 10,000."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc to see what a process holds")
def test_memory_files_threads_and_processes_do_not_grow_with_steps():
    script = Path(__file__).parent / "endurance.py"
    done = subprocess.run([sys.executable, script, str(STEPS)], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)  # noqa: T201 - the curve, for `pytest -s`
    curve = [json.loads(line) for line in done.stdout.splitlines()]
    assert curve[-1]["step"] == STEPS
    assert all(row["pairs"] is not None for row in curve[1:])
    # Kernel caches, the replay buffer and the text caches fill up first.
    settled = [row for row in curve if STEPS / 5 <= row["step"] <= STEPS / 2]
    late = [row for row in curve if row["step"] > STEPS / 2]
    for held in ("files", "threads", "children"):
        assert max(row[held] for row in late) <= max(row[held] for row in settled) + 1, held
    assert max(row["rss_mib"] for row in late) < curve[0]["rss_mib"] + 300, "MiB more than before the first step"
    growth_mib = max(row["rss_mib"] for row in late) - max(row["rss_mib"] for row in settled)
    assert growth_mib < 40, f"{growth_mib:.0f} MiB more in the second half"
