"""The Dockerfiles, as far as a machine without Docker can tell: what they copy is there, and a wheel comes of it."""

import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repository import ROOT

FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


def _copied(file: Path) -> list[str]:
    """The files and folders of the clone that the image is made from."""
    lines = re.findall(r"^COPY (?!--from)(.*)$", file.read_text(), flags=re.MULTILINE)
    return [word for line in lines for word in line.split()[:-1]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_copied_exists_and_nothing_else_reaches_the_build(file: Path):
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert "*" in (ROOT / ".dockerignore").read_text().splitlines()
    assert set(_copied(file)) == kept
    assert all((ROOT / name).exists() for name in kept)


@pytest.mark.slow
def test_a_wheel_comes_of_the_files_that_are_copied(tmp_path):
    for name in _copied(FILES[0]):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=lambda _, names: fnmatch.filter(names, "__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "dist").glob("cooper_rl-*.whl"))) == 1
