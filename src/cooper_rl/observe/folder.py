"""Checks that a run can use its folder, before anything is loaded."""

from pathlib import Path

from cooper_rl.errors import InputError


def check_folder(directory: Path, resume: bool) -> None:
    """Raises InputError if a new run would overwrite an old one, or if there is no run to resume."""
    if resume and not directory.exists():
        raise InputError(f"{directory}: no run to resume; start it without --resume")
    if not resume and ((directory / "metrics.jsonl").exists() or (directory / "checkpoints").exists()):
        raise InputError(f"{directory}: holds a run already; choose another name, add --resume, or delete the folder")
