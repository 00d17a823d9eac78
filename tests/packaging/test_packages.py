"""The wheel and the sdist are whole: what is installed from them works, and the sdist's own tests run."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from repository import ROOT

DATA = {".j2", ".yaml", ".json", ".jsonl", ".safetensors", ".typed"}


def _run(*command: object, cwd: Path, stream: str = "stdout") -> str:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return getattr(done, stream)


def _tracked() -> list[str]:
    return _run("git", "ls-files", cwd=ROOT).splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the sdist. The wheel is built from the sdist, as `python -m build` does."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The folder of programs of an environment with the wheel, and with the libraries of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    home = next((folder / "lib").glob("python*")) / "site-packages"
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    (home / "libraries.pth").write_text(f"{libraries}\n")  # its .pth files, such as this checkout's, are not read
    _run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index",
         built[0], cwd=folder)  # fmt: skip
    return folder / "bin"


@pytest.mark.slow
def test_the_wheel_has_the_package_its_data_and_the_licence(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
        about = next(wheel.read(name).decode() for name in names if name.endswith("METADATA"))
    files = {file.removeprefix("src/") for file in _tracked() if file.startswith("src/")}
    assert files <= names
    assert {Path(file).suffix for file in files} >= DATA
    assert [name for name in names if not name.startswith(("cooper_rl/", "cooper_lab/", "cooper_rl-"))] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for line in ("License-Expression: Apache-2.0", "Requires-Python: >=3.11", "Provides-Extra: serve", "# Cooper"):
        assert line in about.splitlines(), line


@pytest.mark.slow
def test_what_the_wheel_installs_runs_outside_the_checkout(installed, tmp_path):
    import cooper_rl

    where = _run(installed / "python", "-c", "import cooper_rl; print(cooper_rl.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(installed.parent)
    cooper = installed / "cooper"
    assert _run(cooper, "--version", cwd=tmp_path) == f"cooper {cooper_rl.__version__}\n"
    assert "rollout.n" in _run(cooper, "config", cwd=tmp_path)
    (tmp_path / "answers.jsonl").write_text('{"question": "1+1", "reference_answer": "2", "completion": "It is 2."}\n')
    _run(cooper, "verify", "answers.jsonl", "--out", "verdicts.jsonl", cwd=tmp_path)
    assert "correct" in (tmp_path / "verdicts.jsonl").read_text()
    # The embedded models, the templates, the picture.
    table = _run(cooper, "demo", "--steps", "1", cwd=tmp_path, stream="stderr")
    assert "Cooper as published" in table  # whole in a terminal of 80 columns
    assert (tmp_path / "runs" / "demo" / "picture.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_sdist_has_the_whole_project_and_its_tests_run(built, tmp_path):
    with tarfile.open(built[1]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    missing = [file for file in _tracked() if not (project / file).exists() and (ROOT / file).exists()]
    assert missing == []
    few = ["tests/test_imports.py", "tests/config", "tests/docs/test_paths.py", "tests/docs/test_designs.py"]
    environment = {"PYTHONPATH": str(project / "src"), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-n", "0", *few]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
