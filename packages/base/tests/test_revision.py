"""The record of a run names the revision of Cooper and, separately, that of the user's working folder."""

import subprocess
from pathlib import Path

import pytest

from cooper_base import revisions
from cooper_rl import CooperTrainer, build_config


def _checkout(folder: Path) -> str:
    """Make the folder a git checkout with one file; returns its revision."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text("")
    for arguments in (["init", "-q"], ["add", "mine.py"], [*identity, "commit", "-qm", "mine"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return head.stdout.strip()


@pytest.fixture
def users_revision(tmp_path, monkeypatch) -> str:
    """The revision of the checkout that the user works in."""
    found = _checkout(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return found


def test_the_users_revision_is_kept_apart_from_coopers(settings, users_revision):
    CooperTrainer.from_config(build_config({**settings, "kind": "rule"})).close()
    head = (Path(settings["output_dir"]) / "run" / "config.yaml").read_text().split("\nname:")[0]
    found = dict(line.removeprefix("# ").split(": ") for line in head.splitlines() if line.startswith("# "))
    assert found.keys() >= {"cooper_version", "working_folder_revision"}
    assert found["working_folder_revision"] == users_revision
    assert found.get("cooper_revision") != users_revision


def test_a_package_installed_inside_the_users_checkout_has_no_revision(tmp_path, users_revision):
    installed = tmp_path / "work" / "venv" / "revision.py"
    installed.parent.mkdir()
    installed.write_text("")
    assert revisions._checkout_revision(installed) == ""
    assert revisions._checkout_revision(tmp_path / "work" / "mine.py") == users_revision


def test_outside_a_checkout_only_the_version_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "working_folder_revision" not in revisions.revisions()
