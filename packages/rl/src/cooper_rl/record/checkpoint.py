"""Checkpoints: one folder per step. It is written under a hidden name and then renamed, so every folder with a step's
name is complete.

A crash can only leave hidden folders behind: `.000120.partial` is half written, `.000120.deleted` half deleted, and
`.000120.replaced` an old checkpoint whose replacement has not been renamed yet. A manifest of hashes reveals damage.
"""

import errno
import json
import logging
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from cooper_base.config.base import Config
from cooper_base.errors import InputError
from cooper_base.files.durable import REFUSED, by_step, delete, read_regular, sync, sync_tree, write_text
from cooper_base.files.hashes import file_hash

if TYPE_CHECKING:
    from cooper_audit.run.watch_rules import Firing
    from cooper_rl.engines.base import Metrics

logger = logging.getLogger(__name__)

OF_RUN, OF_SERVICE = "conditions", "digest"
"""The keys by which the state of a run's checkpoint, and of a service's, is known."""
MANIFEST, STATE = "manifest.json", "state.json"
FULL = (errno.ENOSPC, errno.EDQUOT)
ROLLBACKS = 3
"""Most rollbacks in one run. Instead of another one the run stops."""


class CheckpointConfig(Config):
    """Checkpoints of both models, both optimizers, the random states and the data cursor."""

    every: int = Field(default=50, ge=0)
    """Steps between checkpoints; 0 writes only the one at the end."""
    keep: int = Field(default=2, ge=1)
    """Number of newest checkpoints to keep."""
    keep_best: str | None = None
    """A metric such as `test/rule_avg`. A step with a new highest value gets a checkpoint, which is kept until a better
    one comes."""


class CheckpointStore:
    """The newest checkpoints of one run, and the best: `<directory>/000120/{policy/,reward_model/,state.json,…}`.

    A folder with a step's name is somebody else's, and not deleted, if its state has no key `holds`, or if it has
    neither state nor manifest. A damaged checkpoint is the store's own.
    """

    def __init__(self, directory: Path, config: CheckpointConfig, holds: str):
        self.directory = directory
        self.config = config
        self.holds = holds

    def check(self) -> None:
        """Raises InputError if a folder with a step's name is somebody else's."""
        for folder in self.list():
            if not self._owns(folder):
                raise InputError(REFUSED.format(path=folder, what="is a checkpoint of something else, or none"))

    def _owns(self, folder: Path) -> bool:
        state = _read_state(folder)
        return any((folder / name).exists() for name in (MANIFEST, STATE)) if state is None else self.holds in state

    def save(self, step: int, write: Callable[[Path], dict[str, Any]], metrics: "Metrics | None" = None) -> Path:
        """Write the checkpoint of `step`. All of it is on disk when this returns.

        `write(folder)` puts the models into the folder and returns the rest of the state as JSON values. Raises OSError
        if the checkpoint cannot be written; earlier ones stay as they are. On a full disk, those that this one replaces
        are deleted before it is written, but never the newest.
        """
        try:
            return self._written(step, write, metrics)
        except OSError as error:
            earlier, kept = self.list(), max(1, self.config.keep - 1)
            if error.errno not in FULL or len(earlier) <= kept or find_damage(earlier[-1]):
                raise
            logger.warning("step %d: no room for a checkpoint; the oldest, which it replaces, goes first", step)
            self._tidy(kept)
            return self._written(step, write, metrics)

    def _written(self, step: int, write: Callable[[Path], dict[str, Any]], metrics: "Metrics | None") -> Path:
        metric = self.config.keep_best
        best = {metric: metrics[metric]} if metric and metrics and self.is_best(metrics) else {}
        target, aside = self.directory / f"{step:06d}", self._hidden(step, "partial")
        delete(aside)
        try:
            aside.mkdir(parents=True)
            state = write(aside) | {"step": step}
            write_text(aside / STATE, json.dumps(state, indent=1), durable=False)
            files = {path.relative_to(aside).as_posix(): path for path in sorted(aside.rglob("*")) if path.is_file()}
            manifest = {"best": best, "files": {name: _describe(path) for name, path in files.items()}}
            write_text(aside / MANIFEST, json.dumps(manifest, indent=1), durable=False)
            sync_tree(aside)
            if target.exists():
                os.replace(target, self._hidden(step, "replaced"))
            os.replace(aside, target)
            sync(self.directory)
            sync(self.directory.parent)
        finally:
            delete(aside)
        self._tidy(self.config.keep)
        return target

    def list(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return [*by_step(self.directory).values()]

    def drop_after(self, step: int) -> None:
        """Delete the checkpoints of later steps, because the run continues differently from this step."""
        for folder in reversed(self.list()):
            if int(folder.name) > step:
                self._delete(folder)

    def latest(self) -> tuple[Path, dict[str, Any]] | None:
        """The newest undamaged checkpoint and its state, or None for a run without checkpoints.

        Damaged ones are logged and renamed to `<step>.damaged`. Raises InputError if all are damaged.
        """
        for replaced in self._leftovers("replaced"):  # a crash came between the two renames of a replacement
            target = self.directory / replaced.name.split(".")[1]
            if not target.exists():
                os.replace(replaced, target)
        damages: dict[Path, str] = {}
        for folder in reversed(self.list()):
            damage, state = find_damage(folder), _read_state(folder)
            if damage or state is None:
                damages[folder] = damage or f"{STATE} is not that of a step"
                continue
            for damaged, damage in damages.items():
                logger.warning("%s is damaged (%s); going back to %s", damaged, damage, folder.name)
                target = damaged.with_name(f"{damaged.name}.damaged")
                delete(target)
                os.replace(damaged, target)
            self._tidy(self.config.keep)
            return folder, state
        if not damages:
            return None
        found = "\n".join(f"{folder}: damaged, {damage}" for folder, damage in damages.items())
        raise InputError(
            f"{found}\nno checkpoint is left to resume from; restore one of them from a copy, "
            f"or delete {self.directory} and resume to train from the beginning"
        )

    def newest_state(self) -> dict[str, Any] | None:
        """The state of the newest checkpoint whose `state.json` is as it was written. No large file is read."""
        states = (_read_state(folder) for folder in reversed(self.list()) if not find_damage(folder, [STATE]))
        return next((state for state in states if state is not None), None)

    def is_best(self, metrics: "Metrics") -> bool:
        """Whether the metric `keep_best` is higher in a step's metrics than in the best checkpoint on disk."""
        value = metrics.get(self.config.keep_best or "", math.nan)
        if not math.isfinite(value):
            return False
        best = self.best()
        return best is None or value > best[1]

    def best(self) -> tuple[Path, float] | None:
        """The best checkpoint and its value. Several were the best when they were written; this is the newest of
        them."""
        for folder in reversed(self.list()):
            manifest = read_manifest(folder)
            if manifest is not None and self.config.keep_best in manifest["best"]:
                return folder, manifest["best"][self.config.keep_best]
        return None

    def _tidy(self, keep: int) -> None:
        """Delete all but the newest `keep` checkpoints and the best, and hidden folders that a crash left behind."""
        best = self.best()
        for old in self.list()[:-keep]:
            if best is None or old != best[0]:
                self._delete(old)
        for leftover in self._leftovers("partial|deleted|replaced"):
            delete(leftover)

    def _leftovers(self, states: str) -> Sequence[Path]:
        """The hidden folders of these states, which a crash has left. Other hidden files belong to somebody else."""
        return [path for path in self.directory.glob(".*") if re.fullmatch(rf"\.\d{{6,}}\.({states})", path.name)]

    def _delete(self, folder: Path) -> None:
        """Rename the folder before deleting it, so that a half-deleted one never has the name of a whole one. One of
        somebody's stays."""
        if not self._owns(folder):
            logger.warning("%s: a checkpoint of something else, or none, so it is not deleted", folder)
            return
        hidden = self._hidden(int(folder.name), "deleted")
        os.replace(folder, hidden)
        delete(hidden)

    def _hidden(self, step: int, state: str) -> Path:
        return self.directory / f".{step:06d}.{state}"


def rollback_target(firings: "Sequence[Firing]", checkpoints: Sequence[int], tried: Sequence[int]) -> int | None:
    """The step of the newest checkpoint from before the fault, to which the run returns; None to continue or to stop.

    `tried` are the steps to which the run has returned already: such a checkpoint may contain the cause of the fault. A
    rule that stops the run takes precedence over one that rolls it back.
    """
    actions = {firing.rule.action for firing in firings}
    if "rollback" not in actions or "stop" in actions:
        return None
    since = min(firing.since for firing in firings if firing.rule.action == "rollback")
    good = [step for step in checkpoints if step < since and step not in tried]
    if good and len(tried) < ROLLBACKS:
        return max(good)
    reason = f"{ROLLBACKS} rollbacks did not help" if good else "no other checkpoint from before the fault"
    logger.error("cannot roll back (%s), so the run stops", reason)
    return None


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a checkpoint: `files`, with the size and hash of each, and `best`, the metric by which it was the
    best one, with its value. None if it is missing, unreadable or not a manifest."""
    manifest = _read_object(folder / MANIFEST) or {}
    best, files = manifest.get("best"), manifest.get("files")
    if not isinstance(best, dict) or not isinstance(files, dict):
        return None
    sound = all(type(value) in (int, float) for value in best.values())
    sound = sound and all(isinstance(written, dict) for written in files.values())
    outside = any(Path(name).is_absolute() or ".." in Path(name).parts for name in files)
    return manifest if sound and not outside else None


def find_damage(folder: Path, only: Sequence[str] = ()) -> str | None:
    """A description of the first damaged file, or None if all files (or those in `only`) are as they were written."""
    manifest = read_manifest(folder)
    if manifest is None:
        return f"{MANIFEST} is missing or unreadable"
    if missing := next((name for name in only if name not in manifest["files"]), None):
        return f"{missing}: not in {MANIFEST}"
    for name, written in manifest["files"].items():
        if only and name not in only:
            continue
        if not (folder / name).is_file():  # a pipe would keep the reader waiting
            return f"{name}: No such file or directory"
        try:
            found = _describe(folder / name)
        except OSError as error:  # on a failing disk
            return f"{name}: {error.strerror}"
        if found != written:
            changed = "its length" if found["bytes"] != written.get("bytes") else "its contents (sha256)"
            return f"{name}: {changed} changed since it was written"
    return None


def _describe(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_hash(path)}


def _read_state(folder: Path) -> dict[str, Any] | None:
    state = _read_object(folder / STATE)
    return state if state is not None and state.get("step") == int(folder.name) else None


def _read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None for a file that is missing, unreadable, or something else."""
    try:
        value = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
