"""The wheels and the sdists are whole, and what is installed from them works outside the checkout."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from release_check import faults_of, metadata_of
from repository import PACKAGES, ROOT

pytestmark = pytest.mark.xdist_group("packages")  # one worker builds them
NAMES = [package.name for package in PACKAGES]
ENTRIES = {
    "base": ["[console_scripts]", "cooper = cooper_base.cli:start"],
    "verify": ["[cooper.commands]", "verify = cooper_verify.cli.verify:verify"],
    "audit": ["[cooper.commands]", "audit = cooper_audit.cli.audit:audit_rollouts"],
    "rl": ["[cooper.commands]", "train = cooper_rl.cli.train:train", "[cooper.attack]"],
    "lab": ["[cooper.commands]", "demo = cooper_lab.cli.demo:demo", "[cooper.kinds]"],
}
"""Some lines of each package's entry points."""


def _run(*command: object, cwd: Path, stream: str = "stdout") -> str:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return getattr(done, stream)


def _tracked(package: str) -> list[str]:
    """The files of a package that git has, below its folder."""
    folder = ROOT / "packages" / package
    return [file for file in _run("git", "ls-files", cwd=folder).splitlines() if (folder / file).exists()]


def _settings(package: str) -> dict:
    return tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]


def test_the_packages_have_one_version_and_need_each_other_in_it():
    import cooper_base

    for package in NAMES:
        project = _settings(package)
        assert project["name"] == f"cooper-{package}"
        assert project["version"] == cooper_base.__version__, package
        assert project["requires-python"] == ">=3.11"
        needs = [need for needs in project.get("optional-dependencies", {}).values() for need in needs]
        own = [need for need in project["dependencies"] + needs if need.startswith("cooper-")]
        assert all(need.endswith(f"=={cooper_base.__version__}") for need in own if need in project["dependencies"])
        for need in own:  # an extra may leave the version to the package that needs it
            name, _, version = re.sub(r"\[.*\]", "", need).partition("==")
            assert name.removeprefix("cooper-") in NAMES
            assert version in ("", cooper_base.__version__), need


def test_every_package_has_the_licence_of_the_repository():
    texts = {(package / "LICENSE").read_text() for package in PACKAGES}
    assert texts == {(ROOT / "LICENSE").read_text()}


@pytest.mark.slow
@pytest.mark.parametrize("package", NAMES)
def test_a_wheel_has_its_package_its_data_its_entry_points_and_the_licence(package, built):
    (path,) = built.glob(f"cooper_{package}-*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        about, entries = (
            next(wheel.read(name).decode() for name in names if name.endswith(end))
            for end in (".dist-info/METADATA", ".dist-info/entry_points.txt")
        )
    files = {file.removeprefix("src/") for file in _tracked(package) if file.startswith("src/")}
    assert files <= names
    assert f"cooper_{package}/py.typed" in names
    assert [name for name in names if not name.startswith((f"cooper_{package}/", f"cooper_{package}-"))] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for line in ("License-Expression: Apache-2.0", "Requires-Python: >=3.11", f"# cooper-{package}"):
        assert line in about.splitlines(), line
    assert set(ENTRIES[package]) <= set(entries.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("package", NAMES)
def test_an_sdist_has_the_whole_package(package, built):
    (path,) = built.glob(f"cooper_{package}-*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", f"src/cooper_{package}/__init__.py"} <= names
    assert set(_tracked(package)) <= names


@pytest.mark.slow
def test_what_the_wheels_install_runs_outside_the_checkout(built, tmp_path):
    import cooper_base

    venv.create(tmp_path / "environment", with_pip=False)
    home = next((tmp_path / "environment" / "lib").glob("python*")) / "site-packages"
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    (home / "libraries.pth").write_text(f"{libraries}\n")  # its .pth files, such as this checkout's, are not read
    programs = tmp_path / "environment" / "bin"
    _run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--no-deps", "--no-index",
         *built.glob("*.whl"), cwd=tmp_path)  # fmt: skip
    for name in NAMES:
        code = f"import cooper_{name}; print(cooper_{name}.__file__)"
        assert Path(_run(programs / "python", "-c", code, cwd=tmp_path).strip()).is_relative_to(home)
    cooper = programs / "cooper"
    assert _run(cooper, "--version", cwd=tmp_path) == f"cooper {cooper_base.__version__}\n"
    assert "rollout.n" in _run(cooper, "config", cwd=tmp_path)
    # The embedded models, the templates, the picture.
    table = _run(cooper, "demo", "--steps", "1", cwd=tmp_path, stream="stderr")
    assert "Cooper as published" in table  # whole in a terminal of 80 columns
    assert (tmp_path / "runs" / "demo" / "picture.png").stat().st_size > 10_000


def test_the_check_of_a_release_names_what_an_index_would_show_wrongly():
    described = "# cooper-x\n\n[a](https://x.org) [b](#b) [c](../../docs/c.md)\n"
    head = "Metadata-Version: 2.4\nName: cooper-x\nVersion: 0.1.0\nSummary: x\nKeywords: x\nRequires-Python: >=3.11\n"
    kind = "Description-Content-Type: text/markdown\n"
    about = Metadata.from_email(f"{head}{kind}\n{described}")
    assert faults_of(about, "0.2.0") == [
        "no license_expression",
        "no classifiers",
        "no project_urls",
        "version 0.1.0, and the code has 0.2.0",
        "the description links to ../../docs/c.md",
    ]


@pytest.mark.slow
def test_an_index_would_show_each_package_as_it_should(built):
    for wheel in built.glob("*.whl"):
        assert faults_of(metadata_of(wheel), _settings("base")["version"]) == []
