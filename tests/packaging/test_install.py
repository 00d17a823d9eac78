"""What `make` and `pip` install: the build of torch that fits the machine, and the versions that were tested."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest

from repository import PACKAGES, ROOT

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
VERSIONS = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
HAS_GPU = any(Path(device).exists() for device in ("/dev/nvidia0", "/dev/dxg", "/dev/kfd"))


def _steps(tmp_path: Path, *arguments: str) -> list[str]:
    """The commands that `make` would run in a fresh clone."""
    make = ["make", "-n", "-B", "--no-print-directory", f"VENV={tmp_path}/venv", *arguments]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.replace("\\\n", "").splitlines()


@pytest.mark.parametrize("target", ["demo", "test", "test-vllm", "test-trackers"])
def test_the_build_for_cpus_comes_before_everything_that_needs_torch(target, tmp_path):
    steps = [line for line in _steps(tmp_path, target) if "install" in line and "--upgrade pip" not in line]
    assert steps[0].endswith("install.py --torch-only --with-cuda ")


def test_make_hands_on_another_index_also_none(tmp_path):
    for given in ("", CPU_INDEX):
        assert any(
            line.endswith(f"--torch-index '{given}'") for line in _steps(tmp_path, "demo", f"TORCH_INDEX={given}")
        )


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """The Python of an environment with pip and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin/python"


def _index(folder: Path, *builds: str) -> str:
    """An index of packages in a folder, with wheels of torch that hold nothing."""
    page = folder / "torch" / "index.html"
    page.parent.mkdir(parents=True)
    for build in builds:
        name, info = f"torch-{build}-py3-none-any.whl", f"torch-{build}.dist-info"
        with zipfile.ZipFile(page.parent / name, "w") as wheel:
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {build}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    page.write_text("".join(f"<a href='{quote(wheel.name)}'>{wheel.name}</a>" for wheel in page.parent.glob("*.whl")))
    return folder.as_uri()


def _install(python: Path, usual: str, *arguments: str, programs: str = "") -> subprocess.CompletedProcess[str]:
    """`install.py` with pip set to the index `usual` and to nothing else."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    environment = kept | {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": usual}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    command = [str(python), str(ROOT / "install.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


TORCH = VERSIONS["torch"]


@pytest.mark.slow
@pytest.mark.skipif(HAS_GPU or sys.platform != "linux", reason="needs Linux without a GPU")
@pytest.mark.parametrize(
    ("usual", "other", "says"),
    [
        ([TORCH], [f"{TORCH}+cpu"], "PyTorch for CPUs, 1.3 GB in all"),
        ([TORCH, f"{TORCH}+cpu"], [], "PyTorch for CPUs, 1.3 GB in all"),  # a mirror that has both
        ([TORCH], ["1.0+cpu"], "no index offers"),
    ],
)
def test_the_build_is_named_before_anything_is_downloaded(bare, tmp_path, usual, other, says):
    indexes = _index(tmp_path / "usual", *usual), "--torch-index", _index(tmp_path / "other", *other)
    done = _install(bare, *indexes, "--torch-only")
    installed = [*bare.parents[1].glob("lib/python*/site-packages/torch-*.dist-info")]
    if "for CPUs, 1.3" in says:
        assert (done.returncode, says in done.stdout) == (0, True), done.stderr
        assert [folder.name for folder in installed] == [f"torch-{TORCH}+cpu.dist-info"]
        assert f"PyTorch {TORCH}+cpu is there and stays" in _install(bare, *indexes, "--check").stdout
        shutil.rmtree(installed[0])
    else:
        assert (done.returncode, installed) == (1, [])
        assert says in done.stderr
        assert "Nothing was downloaded" in done.stderr


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
def test_a_gpu_gets_the_usual_build_and_a_package_without_torch_none(bare, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    usual = _index(tmp_path / "usual", TORCH)
    assert "PyTorch with CUDA, 6.1 GB in all" in _install(bare, usual, "--check", programs=str(tmp_path)).stdout
    assert _install(bare, usual, "--check", "audit").stdout == "base, verify, audit: 182 MB, without PyTorch\n"
    assert "nothing: no package of Cooper" in _install(bare, usual, "--check", "nothing").stderr


@pytest.mark.parametrize("target", ["demo", "test", "test-vllm", "test-trackers"])
def test_one_call_of_pip_installs_the_five_packages(target, tmp_path):
    installs = [line for line in " ".join(_steps(tmp_path, target)).split(" pip install ") if "--editable" in line]
    for line in installs:
        named = re.findall(r"--editable \./packages/(\w+)", line)
        assert sorted(named) == sorted(package.name for package in PACKAGES)
    assert ("--group dev" in installs[-1]) == (target in ("test", "test-trackers"))


def test_one_package_is_tested_alone(tmp_path):
    steps = _steps(tmp_path, "test", "PKG=verify")
    assert "-m pytest -n auto --dist loadgroup " in steps[-1]
    assert steps[-1].endswith(" packages/verify/tests")
    assert not any(tool in line for line in steps for tool in ("ruff", "pyright", "mkdocs"))


@pytest.mark.parametrize("failing", [None, "python", "ruff", "pyright", "mkdocs"])
def test_each_part_of_make_test_counts(failing, tmp_path):
    """With programs that do nothing, one of which fails."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "ruff", "pyright", "mkdocs"):
        (programs / name).write_text(f"#!/bin/sh\necho ran {name}\nexit {int(name == failing)}\n")
        (programs / name).chmod(0o755)
    for mark in (".demo", ".installed"):
        (tmp_path / "venv" / mark).touch()
    done = subprocess.run(["make", f"VENV={tmp_path}/venv", "test"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode == 0) == (failing is None), done.stdout + done.stderr
    if failing != "ruff":  # which comes first and ends all
        assert all(f"ran {name}" in done.stdout for name in ("python", "pyright", "mkdocs"))


def test_transformers_is_bounded_by_its_next_major_version():
    """Where what it deprecates today ends; the tests run on the newest that is below."""
    needs = tomllib.loads((ROOT / "packages/rl/pyproject.toml").read_text())["project"]["dependencies"]
    (bound,) = (re.search(r"<(\d+)$", need) for need in needs if need.startswith("transformers"))
    assert bound is not None
    assert int(bound[1]) == int(VERSIONS["transformers"].split(".")[0]) + 1


def test_the_citation_and_the_release_name_the_version_of_the_code():
    import yaml

    from cooper_base import __version__

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    compare = next(
        step["run"] for step in release["jobs"]["build"]["steps"] if "GITHUB_REF_NAME" in step.get("run", "")
    )
    for tag, status in ((f"v{__version__}", 0), ("v999", 1)):
        environment = os.environ | {"GITHUB_REF_NAME": tag}
        assert subprocess.run(compare, shell=True, cwd=ROOT, env=environment).returncode == status, tag


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    import yaml

    for file in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(file.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        trusted = [name for name, job in workflow["jobs"].items() if "permissions" in job]
        assert trusted == (["publish"] if file.stem == "release" else []), file
