"""The version of the code behind a run: Cooper's own, and that of the user's working folder."""

import subprocess
from pathlib import Path

from cooper_rl import __version__


def revisions() -> dict[str, str]:
    """Cooper's version, its git revision if it runs from a checkout, and the revision of the working folder, if any."""
    cooper = _checkout_revision(Path(__file__))
    found = {"cooper_version": __version__, "cooper_revision": cooper}
    found["working_folder_revision"] = _git(Path.cwd(), "rev-parse", "HEAD")
    return {name: value for name, value in found.items() if value}


def _checkout_revision(file: Path) -> str:
    """The revision of the checkout that `file` belongs to; empty for an installed file, even inside a checkout."""
    tracked = _git(file.parent, "ls-files", file.name)
    return _git(file.parent, "rev-parse", "HEAD") if tracked else ""


def _git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder. Empty if git fails, for example outside a checkout."""
    try:
        finished = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git on this machine
        return ""
    return finished.stdout.strip() if finished.returncode == 0 else ""
