"""Cells of the arena: one design, one hole, one seed; which runs they are and in which order."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_lab.arena.cache import START_SAMPLES, Planted
from cooper_lab.arena.designs import Design, fill_in, members, needs_start_samples
from cooper_lab.arena.hole import Hole
from cooper_lab.arithmetic.world import run_settings
from cooper_rl import __version__
from cooper_rl.config.settings import merge
from cooper_rl.config_loading import build_config

SETTINGS: dict[str, Any] = {"test_problems": {"limit": 256}, "checkpoint": {"every": 10}}
"""What a run of the arena has besides the settings of the demo: more test problems, and checkpoints to go on from."""
COSTS = {"rule": 1.0, "static": 1.2, "cooper": 1.8, "hybrid": 1.8}
"""Relative CPU time of a cell by the `kind` of its run, for the order and the estimate."""
OTHER_COST = 1.8


@dataclass(frozen=True)
class Cell:
    """One run of the arena."""

    design: str
    hole: str
    seed: int
    held_out: bool
    settings: dict[str, Any]
    """Of the run, complete."""
    fingerprint: str
    """A digest of everything that the result depends on, wherever the folders are."""
    cost: float

    @property
    def directory(self) -> Path:
        """The folder of the run."""
        return Path(self.settings["output_dir"]) / self.settings["name"]

    @property
    def result_path(self) -> Path:
        """Written when the cell is finished."""
        return self.directory / "cell.json"


@dataclass(frozen=True)
class Plan:
    """Everything an arena runs: its cells in the order in which they run, and the models that they need."""

    output_dir: Path
    designs: Mapping[str, Design]
    holes: Mapping[str, Hole]
    cells: Sequence[Cell]
    models: Sequence[Planted]


def plan(
    designs: Mapping[str, Design],
    holes: Mapping[str, Hole],
    seeds: Sequence[int],
    output_dir: Path,
    cache: Path,
    overrides: Mapping[str, Any],
) -> Plan:
    """Cheap cells first: seed by seed, within a seed by cost. Held-out holes come after all others.

    `overrides` are settings of every run, on top of the design's.
    """
    cells: list[Cell] = []
    models: dict[str, Planted] = {}
    for hole_name, hole in holes.items():
        for design_name, design in designs.items():
            others = [Planted(hole.of_member(), seed, cache) for seed in members(design)]
            needed = [Planted(hole, 0, cache, needs_start_samples(design)), *others]
            # A model that several designs name is made once, with its samples if any of them needs those.
            models |= {one.key: one for one in needed if one.start_samples or one.key not in models}
            cells += [
                _cell(design_name, design, hole_name, hole, seed, output_dir, needed, overrides) for seed in seeds
            ]
    cells.sort(key=lambda cell: (cell.held_out, seeds.index(cell.seed), cell.cost))
    return Plan(output_dir, designs, holes, cells, list(models.values()))


def check_settings(cells: Sequence[Cell]) -> None:
    """Raises InputError for settings that no run could have."""
    for cell in cells:
        build_config(cell.settings)


def _cell(
    design_name: str,
    design: Design,
    hole_name: str,
    hole: Hole,
    seed: int,
    output_dir: Path,
    models: Sequence[Planted],
    overrides: Mapping[str, Any],
) -> Cell:
    folders = {f"$reward_model_{planted.seed}": str(planted.folder / "reward_model") for planted in models}
    folders["$reward_model"] = str(models[0].folder / "reward_model")
    folders["$start_samples"] = str(models[0].folder / START_SAMPLES)
    rule = {} if hole.rule is None else {"rule": hole.rule}
    chosen = merge(merge(merge(SETTINGS, design.settings), rule), dict(overrides))
    name = f"{hole_name}/{design_name}/{seed}"
    made_from = {"chosen": chosen, "seed": seed, "models": [m.key for m in models], "version": __version__}
    return Cell(
        design_name,
        hole_name,
        seed,
        hole.held_out,
        run_settings(name, output_dir, seed, fill_in(chosen, folders), models[0].folder),
        hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16],
        COSTS.get(chosen.get("kind", ""), OTHER_COST),
    )
