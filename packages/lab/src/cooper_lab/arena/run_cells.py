"""Runs the cells of an arena: finished cells are skipped, interrupted ones continue."""

import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cooper_base.files.durable import read_fields, write_text
from cooper_base.packages import set_log_level
from cooper_lab.arena.cache import Planted, make
from cooper_lab.arena.cells import Cell, Plan
from cooper_lab.arena.measures import measures
from cooper_lab.arithmetic.arms import steps_done
from cooper_lab.arithmetic.pool import run_in_processes
from cooper_rl import InputError, build_config

STARTED = "fingerprint"
"""File of a run that has begun, with its cell's fingerprint."""
AT_START = "at_start.json"
"""File of a run with what its reward model accepted before the first step."""
RESULT = {
    **dict.fromkeys(("design", "hole", "fingerprint"), str),
    **dict.fromkeys(("seed", "planting", "steps"), int),
    **dict.fromkeys(("gold_start", "gold_end", "gold_best", "heard", "drawdown"), int | float),
    **dict.fromkeys(("gold_heard_end", "gold_silent_end", "reward_end", "reward_model_end"), int | float | None),
    **dict.fromkeys(("hacked_at", "half_lost", "alarm", "kl_end", "cpu_s"), int | float | None),
    **{"held_out": bool, "alarm_strength": dict, "disagreement": dict | None, "gold_curve": list},
}
"""The fields of a cell's result that the arena's page reads."""

Progress = Callable[[int, int], None]
"""Called with the number of steps done in all cells together, and the cells that are finished."""


def check_finished(cells: Sequence[Cell]) -> None:
    """Raises InputError for a finished cell that ran with other settings than it would have now."""
    for cell in cells:
        if cell.result_path.exists() and read_result(cell.result_path)["fingerprint"] != cell.fingerprint:
            raise InputError(
                f"{cell.directory}: finished with other settings, models or another version; choose another "
                "--out, or delete the folder to run the cell again"
            )


def plant_missing(models: Sequence[Planted], workers: int, on_planted: Callable[[int], None]) -> None:
    """Make the models that the cache does not have; `on_planted` is called with how many of `models` it has."""
    for planted in models:
        planted.cache.mkdir(parents=True, exist_ok=True)
    missing = [planted for planted in models if not planted.exists]
    run_in_processes(make, missing, workers, lambda: on_planted(sum(planted.exists for planted in models)))


def run_cells(plan: Plan, workers: int, progress: Progress) -> None:
    """Run the cells that are not finished, one process per worker and one thread each."""
    waiting = [cell for cell in plan.cells if not _is_finished(cell)]
    reported = (-1, 0)

    def report() -> None:
        nonlocal reported
        steps = sum(steps_done(cell.directory) for cell in plan.cells)
        finished = sum(map(_is_finished, plan.cells))
        if reported != (steps, finished):
            progress(steps, finished)
        reported = steps, finished

    run_in_processes(run_cell, waiting, workers, report)


def _is_finished(cell: Cell) -> bool:
    return cell.result_path.exists()


def run_cell(cell: Cell) -> None:
    """Run one cell to its end and write its result; after an interrupt it has a checkpoint and no result.

    Its checkpoints are deleted once the result is there.
    """
    set_log_level(logging.ERROR)  # faults are what the arena studies, and its table shows them
    from cooper_lab.arena.ends import at_end, at_start  # noqa: PLC0415 - torch, in the run's own process
    from cooper_rl import CooperTrainer  # noqa: PLC0415

    started = cell.directory / STARTED
    checkpoints = cell.directory / "checkpoints"
    if not (started.exists() and started.read_text(encoding="utf-8") == cell.fingerprint and checkpoints.is_dir()):
        shutil.rmtree(cell.directory, ignore_errors=True)
    resumed, before = cell.directory.exists(), _cpu_seconds()
    with CooperTrainer.from_config(build_config(cell.settings), resume=resumed) as trainer:
        write_text(started, cell.fingerprint)
        at, start = (cell.recipe, trainer, cell.planting), cell.directory / AT_START
        if not start.exists():
            write_text(start, json.dumps(at_start(*at)))
        trainer.fit()
        if trainer.interrupted:
            return
        ends = json.loads(start.read_text(encoding="utf-8")) | at_end(*at)
    result: dict[str, Any] = {"design": cell.design, "hole": cell.hole, "seed": cell.seed}
    result |= {"planting": cell.planting, "held_out": cell.held_out}
    result |= measures(cell.directory) | ends
    result |= {"cpu_s": None if resumed else round(_cpu_seconds() - before, 1), "fingerprint": cell.fingerprint}
    write_text(cell.result_path, json.dumps(result) + "\n")
    shutil.rmtree(checkpoints, ignore_errors=True)


def read_result(path: Path) -> dict[str, Any]:
    """The result of one cell. Raises InputError for a file that is not a result."""
    return read_fields(path, RESULT, "delete it to run the cell again")


def read_results(output_dir: Path) -> list[dict[str, Any]]:
    """The results of all finished cells in the folder, by hole, design, seed and planting."""
    return [read_result(path) for path in sorted(output_dir.glob("*/*/*/cell.json"))]


def _cpu_seconds() -> float:
    """User and system time of this process and of its children that have ended, the rule's workers among them."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
