"""The Dockerfiles, as far as a machine without Docker can tell: what they copy is there, and wheels come of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repository import PACKAGES, ROOT

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
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_wheels_come_of_the_files_that_are_copied(file, tmp_path):
    """The build stage's own loop, with the libraries of this environment."""
    left_out = shutil.ignore_patterns("__pycache__", "tests")
    for name in _copied(file):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, tmp_path)
    loop = re.search(r"^RUN (for package in .*?done)$", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert loop is not None
    build = f"{sys.executable} -m build --no-isolation"
    command = loop[1].replace("\\\n", " ").replace("python -m build", build).replace("/dist", str(tmp_path / "dist"))
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {wheel.name.partition("-")[0] for wheel in (tmp_path / "dist").glob("*.whl")}
    assert names == {f"cooper_{package.name}" for package in PACKAGES}
