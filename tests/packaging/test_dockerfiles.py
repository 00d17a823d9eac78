"""The Dockerfiles, as far as a machine without Docker can tell: what they copy is there, and a wheel comes of it."""

import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_versions_are_pinned_and_the_command_is_not_run_by_root(file: Path):
    text = file.read_text()
    installs = [line for line in text.replace("\\\n", " ").splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert all("--constraint" in line for line in installs)
    builds = [line for line in text.splitlines() if "-m build" in line]
    assert all("PIP_CONSTRAINT=/src/constraints.txt" in line for line in builds), "hatchling is pinned as well"
    assert re.findall(r"^USER (.*)$", text, flags=re.MULTILINE) == ["1000"]
    assert 'ENTRYPOINT ["cooper"]' in text
    pinned = (ROOT / "constraints.txt").read_text()
    assert re.search(r"^torch==", pinned, flags=re.MULTILINE)
    assert re.search(r"^build==", pinned, flags=re.MULTILINE)
    assert re.search(r"^hatchling==", pinned, flags=re.MULTILINE)


def test_both_build_the_wheel_in_the_same_way():
    stages = {file.read_text().partition("AS build\n")[2].partition("\n\n")[0] for file in FILES}
    assert len(stages) == 1


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
