"""The wheels and sdists of the five packages, built once for all tests of this folder that one worker runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from repository import PACKAGES


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """A folder with a wheel and an sdist of each package. Wheels come of sdists, as `python -m build` does it."""
    folder = tmp_path_factory.mktemp("dist")
    for package in PACKAGES:
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(package)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder
