"""What the experiment trackers share: their settings, the run they continue, and the table of completions."""

import json
import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

from pydantic import Field

from cooper_rl.errors import MissingExtraError
from cooper_rl.observe.sinks import SinkConfig, SinkRun
from cooper_rl.persist.durable import write_text

TRACKERS_FILE = "trackers.json"
"""The file in a run's folder with the identifier of the run in every tracker."""


class TrackerConfig(SinkConfig):
    """The settings that every tracker has."""

    may_fail: ClassVar[bool] = True

    project: str = "cooper"
    """Project of the tracker that the run appears in."""
    run_name: str | None = None
    """Name of the run in the tracker. The default is the run's `name`."""
    rollouts_every: int = Field(default=20, ge=0)
    """Steps between tables of completions; the first step gets one too. 0 sends none."""
    rollouts_rows: int = Field(default=64, ge=1)
    """Most completions in a table. The rollout files in the run's folder hold all of them."""

    def shown_name(self, run: SinkRun) -> str:
        """The run's name in the tracker."""
        return self.run_name or str(run.settings["name"])

    def wants_rollouts(self, step: int) -> bool:
        """Whether this step gets a table of completions."""
        return self.rollouts_every > 0 and (step == 1 or step % self.rollouts_every == 0)

    def table(self, step: int, rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
        """Column names and cells of a step's first completions.

        Values that are lists or mappings are left out. One that is not finite becomes None.
        """
        completions = [
            {"step": step, "problem": row["problem"], "prompt": row["prompt"], "answer": row["answer"], **completion}
            for row in rows
            for completion in row["completions"]
        ][: self.rollouts_rows]
        columns = list(
            dict.fromkeys(
                name for row in completions for name, value in row.items() if not isinstance(value, list | dict)
            )
        )
        return columns, [[_cell(row.get(name)) for name in columns] for row in completions]

    def tracked_id(self, run: SinkRun) -> str | None:
        """The identifier of the run in this tracker; None for a new run."""
        return None if run.purge_step is None else _identifiers(run).get(self._place)

    def remember_id(self, run: SinkRun, identifier: str) -> None:
        """Write the identifier to the run's folder, for a resumed run."""
        found = _identifiers(run) | {self._place: identifier}
        write_text(run.directory / TRACKERS_FILE, json.dumps(found, indent=1) + "\n")

    @property
    def _place(self) -> str:
        return f"{getattr(self, 'kind')}/{self.project}"  # noqa: B009 - every tracker has a kind


def require(module: str, kind: str, library: str, package: str) -> None:
    """Raises MissingExtraError if the library of a tracker is not installed."""
    found = find_spec(module)
    if found is None or found.origin is None:  # without an origin it is a plain folder that a tracker writes, `wandb/`
        raise MissingExtraError(f"sinks: kind: {kind} needs {library} (the extra `{kind}`): pip install {package}")


def _identifiers(run: SinkRun) -> dict[str, str]:
    path = run.directory / TRACKERS_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _cell(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
