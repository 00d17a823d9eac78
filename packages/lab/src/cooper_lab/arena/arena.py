"""One arena: which runs it has, running them, and writing the results of its folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cooper_base.config.checking import read_settings
from cooper_base.files.owned_file import check_file, write_owned
from cooper_lab.arena.cells import CELLS, COMMAND, PAGE, RESULTS, SUMMARY, Plan
from cooper_lab.arena.hole import Hole
from cooper_lab.arena.holes import HOLES, read_hole
from cooper_rl import InputError


def built_in_holes() -> dict[str, Hole]:
    """Every hole of the package with its default recipe; the held-out ones last."""
    holes = {kind: read_hole({"kind": kind}) for kind in HOLES.records}
    return dict(sorted(holes.items(), key=lambda item: item[1].held_out))


def read_holes(path: Path) -> dict[str, Hole]:
    """The holes of a user's YAML file: names, and under each name `kind` and the settings of the recipe.

    Raises InputError, which names the file and the hole, for a hole that does not fit.
    """
    holes = {}
    for name, values in read_settings(path).values.items():
        try:
            holes[name] = read_hole(values)
        except ValueError as error:
            raise InputError(f"{path}: hole {name}: {error}") from error
    return holes


def choose(available: Mapping[str, Any], wanted: Sequence[str], noun: str) -> dict[str, Any]:
    """The named holes or designs, or all of them. Raises InputError for an unknown name."""
    for name in wanted:
        if name not in available:
            raise InputError(f"no {noun} {name!r}; there are {', '.join(available)}")
    return {name: available[name] for name in wanted} if wanted else dict(available)


def check_results(plan: Plan) -> None:
    """Raises InputError for a file that `write_summary` may not write, before anything runs."""
    for name in RESULTS:
        check_file(plan.output_dir / name, COMMAND)


def write_summary(plan: Plan) -> dict[str, Any]:
    """Write `cells.jsonl`, `summary.json` and `arena.html` from the cells of the plan that are finished.

    Returns the summary; see `comparison.summarise`.
    """
    from cooper_lab.arena.comparison import block_of, summarise  # noqa: PLC0415 - torch, once something has run
    from cooper_lab.arena.page import write_page  # noqa: PLC0415
    from cooper_lab.arena.run_cells import read_results  # noqa: PLC0415

    planned = {(cell.hole, cell.design, cell.planting, cell.seed) for cell in plan.cells}
    results = [r for r in read_results(plan.output_dir) if (r["hole"], r["design"], *block_of(r)[1:]) in planned]
    summary = summarise(results, list(plan.designs)) | {
        "missing": len(plan.cells) - len(results),
        "holes": _planted(plan),
    }
    write_owned(plan.output_dir / CELLS, "".join(json.dumps(result) + "\n" for result in results), COMMAND)
    write_owned(plan.output_dir / SUMMARY, json.dumps(summary, indent=2) + "\n", COMMAND)
    about = {name: design.about for name, design in plan.designs.items()}
    about |= {name: hole.about for name, hole in plan.holes.items()}
    write_page(plan.output_dir / PAGE, summary, results, about)
    return summary


def _planted(plan: Plan) -> dict[str, Any]:
    """The measurements of each hole from when it was planted."""
    measured = {}
    for name, hole in plan.holes.items():
        planted = min((model for model in plan.models if model.hole == hole), key=lambda model: model.seed)
        if planted.exists:
            manifest = planted.manifest
            measured[name] = {key: manifest[key] for key in ("policy", "reward_model", "rule", "cpu_s")}
            measured[name]["where"] = hole.where
    return measured
