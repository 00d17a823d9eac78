"""Checkpoints: one folder per step. It is written under a hidden name and then renamed, so every named folder is whole.

A crash can only leave hidden folders behind: `.000120.partial` is half written, `.000120.deleted` half deleted, and
`.000120.replaced` is the old checkpoint of a step whose new checkpoint has not been renamed yet.
"""

import json
import logging
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cooper_rl.engines.base import Metrics
from cooper_rl.errors import InputError
from cooper_rl.persist.durable import sync, sync_tree
from cooper_rl.persist.manifest import find_damage, read_manifest, write_manifest

if TYPE_CHECKING:
    from cooper_rl.run_config import CheckpointConfig

logger = logging.getLogger(__name__)


class CheckpointStore:
    """The checkpoints of one run: `<directory>/000120/{policy/,reward_model/,state.json,manifest.json}`.

    It keeps the newest ones and, if `keep_best` names a metric, the best one.
    """

    def __init__(self, directory: Path, config: "CheckpointConfig"):
        self.directory = directory
        self.config = config

    def save(self, step: int, write: Callable[[Path], dict[str, Any]], metrics: Metrics | None = None) -> Path:
        """Write the checkpoint of `step`. All of it is on disk when this returns.

        `write(folder)` puts the models into the folder and returns the rest of the state as JSON values. `metrics` are
        those of the step. Raises OSError if the checkpoint cannot be written; earlier checkpoints stay as they are.
        """
        metric = self.config.keep_best
        best = {metric: metrics[metric]} if metric and metrics and self.is_best(metrics) else {}
        target, aside = self.directory / f"{step:06d}", self._hidden(step, "partial")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            aside.mkdir(parents=True)
            state = write(aside) | {"step": step}
            (aside / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
            write_manifest(aside, best)
            sync_tree(aside)
            if target.exists():
                os.replace(target, self._hidden(step, "replaced"))
            os.replace(aside, target)
            sync(self.directory)
            sync(self.directory.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._tidy()
        return target

    def list(self) -> list[Path]:
        """The checkpoints, oldest first."""
        folders = {int(path.name): path for path in self.directory.glob("*") if path.name.isdigit()}
        return [folders[step] for step in sorted(folders)]

    def drop_after(self, step: int) -> None:
        """Delete the checkpoints of later steps, because the run takes another path from here."""
        for folder in reversed(self.list()):
            if int(folder.name) > step:
                self._delete(folder)

    def latest(self) -> tuple[Path, dict[str, Any]] | None:
        """The newest undamaged checkpoint and its state, or None for a run without checkpoints.

        Newer but damaged checkpoints are logged and renamed to `<step>.damaged`. Raises InputError if all are damaged;
        the message says what is wrong with each.
        """
        self._finish_replacing()
        damaged: list[tuple[Path, str]] = []
        for folder in reversed(self.list()):
            damage = find_damage(folder)
            if damage is None:
                self._set_aside(damaged, folder)
                self._tidy()
                return folder, json.loads((folder / "state.json").read_text(encoding="utf-8"))
            damaged.append((folder, damage))
        if damaged:
            found = "\n".join(f"{folder}: damaged, {damage}" for folder, damage in damaged)
            raise InputError(
                f"{found}\nno checkpoint is left to resume from; restore one of them from a copy, "
                f"or delete {self.directory} and resume to train from the beginning"
            )
        return None

    def newest_state(self) -> dict[str, Any] | None:
        """The state of the newest checkpoint whose `state.json` can be read. No other file is read."""
        for folder in reversed(self.list()):
            try:
                return json.loads((folder / "state.json").read_text(encoding="utf-8"))
            except (OSError, ValueError):  # damaged; `latest` reports it
                continue
        return None

    def is_best(self, metrics: Metrics) -> bool:
        """Whether the metric `keep_best` is better in a step's metrics than in the best checkpoint on disk."""
        value = metrics.get(self.config.keep_best or "", math.nan)
        if not math.isfinite(value):
            return False
        best = self.best()
        return best is None or (value > best[1] if self.config.best == "max" else value < best[1])

    def best(self) -> tuple[Path, float] | None:
        """The best checkpoint and its value. It is the newest of those that were the best when they were written."""
        for folder in reversed(self.list()):
            manifest = read_manifest(folder)
            if manifest is not None and self.config.keep_best in manifest["best"]:
                return folder, manifest["best"][self.config.keep_best]
        return None

    def _set_aside(self, damaged: "list[tuple[Path, str]]", used: Path) -> None:
        for folder, damage in damaged:
            logger.warning("%s is damaged (%s); going back to %s", folder, damage, used.name)
            target = folder.with_name(f"{folder.name}.damaged")
            shutil.rmtree(target, ignore_errors=True)
            os.replace(folder, target)

    def _finish_replacing(self) -> None:
        """Give an old checkpoint its name back if a crash came between the two renames of a replacement."""
        for replaced in self.directory.glob(".*.replaced"):
            target = self.directory / replaced.name.split(".")[1]
            if not target.exists():
                os.replace(replaced, target)

    def _tidy(self) -> None:
        """Delete the checkpoints that are no longer kept, and hidden folders that a crash left behind."""
        best = self.best()
        for old in self.list()[: -self.config.keep]:
            if best is None or old != best[0]:
                self._delete(old)
        for leftover in self.directory.glob(".*.*"):
            shutil.rmtree(leftover)

    def _delete(self, folder: Path) -> None:
        """Rename the folder before deleting it, so that a half-deleted one never has the name of a whole one."""
        hidden = self._hidden(int(folder.name), "deleted")
        os.replace(folder, hidden)
        shutil.rmtree(hidden)

    def _hidden(self, step: int, state: str) -> Path:
        return self.directory / f".{step:06d}.{state}"
