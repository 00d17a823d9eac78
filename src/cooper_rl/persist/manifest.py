"""The manifest of a checkpoint: the size and SHA-256 hash of every file, by which damage is found."""

import hashlib
import json
from pathlib import Path
from typing import Any

NAME = "manifest.json"


def write_manifest(folder: Path, best: dict[str, float]) -> None:
    """List every file of the folder in `manifest.json`.

    `best` maps the metric by which this is the best checkpoint to its value; it is empty for any other checkpoint.
    """
    files = {
        path.relative_to(folder).as_posix(): _describe(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }
    (folder / NAME).write_text(json.dumps({"best": best, "files": files}, indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest that `write_manifest` wrote, or None if it is missing or unreadable."""
    try:
        manifest = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # damaged; `find_damage` reports it
        return None
    return manifest if isinstance(manifest, dict) and {"best", "files"} <= manifest.keys() else None


def find_damage(folder: Path) -> str | None:
    """A description of the first damaged file, or None if all files are as they were written."""
    manifest = read_manifest(folder)
    if manifest is None:
        return f"{NAME} is missing or unreadable"
    for name, written in manifest["files"].items():
        try:
            found = _describe(folder / name)
        except OSError as error:  # missing, or on a failing disk
            return f"{name}: {error.strerror}"
        if found != written:
            changed = "its length" if found["bytes"] != written.get("bytes") else "its contents (sha256)"
            return f"{name}: {changed} changed since it was written"
    return None


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}
