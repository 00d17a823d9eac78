"""What `make` and `pip` install: the build of torch that fits the machine, and the versions that were tested."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from repository import PACKAGES, ROOT

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
VERSIONS = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
HAS_GPU = any(Path(device).exists() for device in ("/dev/nvidia0", "/dev/dxg", "/dev/kfd"))


def _steps(tmp_path: Path, *arguments: str, programs: Path | None = None) -> list[str]:
    """The commands that `make` would run in a fresh clone. `programs` is searched for programs first."""
    path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
    make = ["make", "-n", "-B", "--no-print-directory", f"VENV={tmp_path}/venv", *arguments]
    return subprocess.run(
        make, cwd=ROOT, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize("target", ["demo", "test", "test-vllm", "test-trackers"])
def test_without_a_gpu_the_build_for_cpus_comes_before_everything_that_needs_torch(target, tmp_path):
    steps = [line for line in _steps(tmp_path, target) if " pip install" in line and "--upgrade pip" not in line]
    assert CPU_INDEX in steps[0]
    assert f"torch=={VERSIONS['torch']}" in steps[0]


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
def test_with_a_gpu_or_without_an_index_the_usual_build_is_installed(tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert not any(CPU_INDEX in line for line in _steps(tmp_path, "demo", programs=tmp_path))
    assert not any(CPU_INDEX in line for line in _steps(tmp_path, "demo", "TORCH_INDEX="))


def test_an_index_that_does_not_answer_is_reported_and_the_installation_goes_on(tmp_path):
    install = next(line for line in _steps(tmp_path, "demo", f"TORCH_INDEX={CPU_INDEX}") if CPU_INDEX in line)
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to("/bin/false")
    done = subprocess.run(install, shell=True, capture_output=True, text=True)
    assert done.returncode == 0
    assert f"{CPU_INDEX} does not offer torch=={VERSIONS['torch']} now" in done.stdout


@pytest.mark.parametrize("target", ["demo", "test", "test-vllm", "test-trackers"])
def test_one_call_of_pip_installs_the_five_packages(target, tmp_path):
    installs = [line for line in " ".join(_steps(tmp_path, target)).split(" pip install ") if "--editable" in line]
    for line in installs:
        named = re.findall(r"--editable \./packages/(\w+)", line)
        assert sorted(named) == sorted(package.name for package in PACKAGES)
    assert ("--group dev" in installs[-1]) == (target in ("test", "test-trackers"))


def test_one_package_is_tested_alone(tmp_path):
    steps = _steps(tmp_path, "test", "PKG=verify")
    assert steps[-1].endswith("pytest -n auto --dist loadgroup packages/verify/tests")
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


def test_transformers_is_bounded_by_the_minor_version_that_was_tested():
    needs = tomllib.loads((ROOT / "packages/rl/pyproject.toml").read_text())["project"]["dependencies"]
    bound = next(re.search(r"<(\d+)\.(\d+)", need) for need in needs if need.startswith("transformers"))
    major, minor = VERSIONS["transformers"].split(".")[:2]
    assert bound is not None
    assert bound.groups() == (major, str(int(minor) + 1))


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
