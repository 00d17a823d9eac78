"""The manifest of a checkpoint: size and sha256 of every file, to find damage."""

import hashlib
import json
from pathlib import Path
from typing import Any

NAME = "manifest.json"


def write_manifest(folder: Path, best: dict[str, float]) -> None:
    """List every file of the folder in `manifest.json`; `best` is the metric by which this is the best checkpoint."""
    files = {
        path.relative_to(folder).as_posix(): _describe(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }
    (folder / NAME).write_text(json.dumps({"best": best, "files": files}, indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What `write_manifest` wrote, or None where it is missing or unreadable."""
    try:
        manifest = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # this is what damage looks like; `find_damage` names it
        return None
    return manifest if isinstance(manifest, dict) and {"best", "files"} <= manifest.keys() else None


def find_damage(folder: Path) -> str | None:
    """What is wrong with the folder's files, in words; None where all are as they were written."""
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
