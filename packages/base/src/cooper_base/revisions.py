"""Which version of Cooper and which revision of the working folder made a file."""

import subprocess
from pathlib import Path

from cooper_base import __version__


def revisions() -> dict[str, str]:
    """Cooper's version, its git revision if it runs from a checkout, and the revision of the working folder, if any."""
    versions = {"cooper_version": __version__, "cooper_revision": _checkout_revision(Path(__file__))}
    versions["working_folder_revision"] = _git(Path.cwd(), "rev-parse", "HEAD")
    return {name: value for name, value in versions.items() if value}


def _checkout_revision(file: Path) -> str:
    """The revision of the checkout that `file` belongs to; empty for an installed file, even inside a checkout."""
    return _git(file.parent, "rev-parse", "HEAD") if _git(file.parent, "ls-files", file.name) else ""


def _git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder. Empty if git fails, for example outside a checkout, or is not on this machine."""
    try:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
