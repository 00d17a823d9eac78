"""One cell of a table of runs: its plan, and running it in this process, so that whole comparisons grow one by one."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cooper_lab.arena.arena import choose
from cooper_lab.arena.cache import make
from cooper_lab.arena.cells import UNDER, Cell, Plan, plan
from cooper_lab.arena.designs import Design
from cooper_lab.arena.hole import Hole
from cooper_lab.arena.run_cells import run_cell
from cooper_lab.arena.silence import SILENCES


def plan_cell(
    designs: Mapping[str, Design],
    name: str,
    holes: Mapping[str, Hole],
    seeds: Sequence[int],
    output_dir: Path,
    cache: Path,
    overrides: Mapping[str, Any],
    planting: int = 0,
) -> Plan:
    """The plan of one cell of a table, `hole` or `hole@silence`, with the models of one planting; see `cells.plan`.

    Raises InputError for a hole or a silence that is not there.
    """
    hole, _, silence = name.partition(UNDER)
    silences = choose(SILENCES, [silence], "silence") if silence else None
    return plan(designs, choose(holes, [hole], "hole"), seeds, output_dir, cache, overrides, [planting], silences)


def one_by_one(plan: Plan) -> Iterator[Cell]:
    """Make the missing models and run the missing cells in this process; each cell of the plan once it is finished.

    Raises KeyboardInterrupt after a cell that was interrupted, which has a checkpoint then.
    """
    for model in plan.models:
        model.cache.mkdir(parents=True, exist_ok=True)
        if not model.exists:
            make(model)
    for cell in plan.cells:
        if not cell.result_path.exists():
            run_cell(cell)
        if not cell.result_path.exists():
            raise KeyboardInterrupt
        yield cell
