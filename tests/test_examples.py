"""Every file in examples/ runs by itself and prints that its part was used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_its_part_is_used(path, tmp_path):
    ended = subprocess.run(
        [sys.executable, path],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    words = path.stem.replace("_", " ")
    found = [line for line in ended.stdout.splitlines() if line.startswith((f"own {words}:", f"{words}:"))]
    assert found != [], ended.stdout + ended.stderr
    assert list(tmp_path.iterdir()) == [], "the example left files behind"
