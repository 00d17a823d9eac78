"""The cells of the arena (one design, one hole, one seed, one planting): which runs they are, and in which order they
run."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from cooper_base import __version__
from cooper_lab.arena.cache import Planted
from cooper_lab.arena.designs import Design, fill_in, members, needs_start_samples, twins
from cooper_lab.arena.hole import Hole
from cooper_lab.arena.silence import Silence
from cooper_lab.arithmetic.calculator import ENVIRONMENT, MAX_INPUT_TOKENS
from cooper_lab.arithmetic.world import START_SAMPLES, run_settings
from cooper_rl import InputError, build_config, merge
from cooper_rl.policy.advantages import ADVANTAGES, AdvantageConfig

COMMAND = "cooper arena"
RESULTS = CELLS, SUMMARY, PAGE = "cells.jsonl", "summary.json", "arena.html"
"""The files of an arena's results."""
SETTINGS: dict[str, Any] = {"test_problems": {"limit": 256}, "checkpoint": {"every": 10}}
"""Settings of the arena's runs besides those of the demo: more test problems, and checkpoints to resume from."""
COSTS = {"rule": 1.0, "static": 1.2}
"""Relative CPU time of a cell by the `kind` of its run, for the order and the estimate."""
OTHER_COST = 1.8
UNDER = "@"
"""Separates the name of a hole from that of the silence under which it runs."""
PLANTINGS_APART = 1000
"""Distance between the seeds of two plantings. Within a planting, an ensemble's members are planted with 0, 1, 2, …"""


@dataclass(frozen=True)
class Cell:
    """One run of the arena."""

    design: str
    hole: str
    seed: int
    planting: int
    """Which of the hole's plantings the models come from: planted with other seeds, by the same recipe."""
    held_out: bool
    recipe: Hole
    """The hole itself."""
    settings: dict[str, Any]
    """The complete settings of the run."""
    fingerprint: str
    """A digest of everything that the result depends on, except the place of the folders."""
    cost: float
    models: Sequence[Planted]
    """What has to be planted before it runs."""

    @property
    def directory(self) -> Path:
        """The folder of the run."""
        return Path(self.settings["output_dir"]) / self.settings["name"]

    @property
    def result_path(self) -> Path:
        """The file that is written when the cell is finished."""
        return self.directory / "cell.json"


@dataclass(frozen=True)
class Plan:
    """Everything an arena runs: its cells in the order in which they run, and the models that they need."""

    output_dir: Path
    designs: Mapping[str, Design]
    holes: Mapping[str, Hole]
    cells: Sequence[Cell]
    models: Sequence[Planted]

    @property
    def waves(self) -> list["Plan"]:
        """The plan in parts, each with the models that it needs: planting by planting, and in each first the cells
        that need the hole's own model alone, so that much has run before everything is planted."""

        def wave(cell: Cell) -> tuple[bool, int, bool]:
            return cell.held_out, cell.planting, len(cell.models) > 1

        return [self.only(lambda cell, part=part: wave(cell) == part) for part in sorted({*map(wave, self.cells)})]

    def only(self, wanted: Callable[[Cell], bool]) -> "Plan":
        """The part of the plan with these cells and the models that they need."""
        cells = [cell for cell in self.cells if wanted(cell)]
        needed = {model.key for cell in cells for model in cell.models}
        return replace(self, cells=cells, models=[model for model in self.models if model.key in needed])


def plan(
    designs: Mapping[str, Design],
    holes: Mapping[str, Hole],
    seeds: Sequence[int],
    output_dir: Path,
    cache: Path,
    overrides: Mapping[str, Any],
    plantings: Sequence[int] = (0,),
    silences: Mapping[str, Silence] | None = None,
) -> Plan:
    """Cheap cells first: planting by planting and seed by seed, then by cost. Held-out holes come after all others.

    `overrides` are settings of every run, on top of the design's. Every seed runs with the models of every planting,
    and every hole under every silence; a hole under a silence is named `hole@silence`. Designs are left out of holes in
    which they cannot run. Raises InputError if nothing is left.
    """
    cells: list[Cell] = []
    models: dict[str, Planted] = {}
    for hole_name, hole in holes.items():
        fitting = [(name, design) for name, design in designs.items() if _fits(design, hole)]
        for (design_name, design), planting in product(fitting, plantings):
            first = PLANTINGS_APART * planting
            others = [Planted(hole.of_member(), first + seed, cache) for seed in members(design)]
            others += [Planted(hole, first, cache, twin=twin) for twin in twins(design)]
            needed = [Planted(hole, first, cache, needs_start_samples(design)), *others]
            # A model that several designs name is made once, with its samples if any of them needs those.
            models |= {model.key: model for model in needed if model.start_samples or model.key not in models}
            cells += [
                _cell(design_name, design, name, hole, seed, output_dir, needed, merge(rule, dict(overrides)), held_out)
                for name, rule, held_out in _under(hole_name, hole, silences)
                for seed in seeds
            ]
    if not cells:
        raise InputError(
            "no design fits a hole: steps of a text (process credit) and a calculator exclude each other, and a "
            "reward model from scratch has no twins; choose other designs or holes"
        )
    cells.sort(key=lambda cell: (cell.held_out, plantings.index(cell.planting), seeds.index(cell.seed), cell.cost))
    return Plan(output_dir, designs, holes, cells, list(models.values()))


def check_settings(cells: Sequence[Cell]) -> None:
    """Raises InputError for settings that a run cannot have."""
    for cell in cells:
        build_config(cell.settings)


def _fits(design: Design, hole: Hole) -> bool:
    """Credit of single tokens is of one text, not of a run with calls; a reward model from scratch has no twins."""
    kind = design.settings.get("algorithm", {}).get("advantages", {}).get("kind")
    estimator = AdvantageConfig if kind is None else ADVANTAGES.record(kind)
    credits_tokens = getattr(estimator, "token_credit", None) is not AdvantageConfig.token_credit
    return not (credits_tokens and hole.calculator) and not (twins(design) and hole.from_scratch)


def _under(
    hole_name: str, hole: Hole, silences: Mapping[str, Silence] | None
) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The hole under each silence: its name, settings of the world and the rule, and whether it is held out."""
    has_gold_of_hole = hole.gold != Hole.gold
    truth: dict[str, Any] = (
        {name: {"gold": hole.gold} for name in ("problems", "test_problems")} if has_gold_of_hole else {}
    )
    if hole.calculator:
        truth |= {"rollout": ENVIRONMENT, "reward_model": {"max_input_tokens": MAX_INPUT_TOKENS}}
    rule = truth if hole.rule is None else {**truth, "rule": hole.rule}
    if silences is None:
        yield hole_name, rule, hole.held_out
    for name, silence in (silences or {}).items():
        partial = {"rule": {"kind": "partial", "rule": hole.rule or {"kind": "figures"}, "only": silence.only}}
        yield f"{hole_name}{UNDER}{name}", truth | partial, hole.held_out or silence.held_out


def _cell(
    design_name: str,
    design: Design,
    hole_name: str,
    hole: Hole,
    seed: int,
    output_dir: Path,
    models: Sequence[Planted],
    overrides: Mapping[str, Any],
    held_out: bool,
) -> Cell:
    first = models[0].seed
    planting = first // PLANTINGS_APART
    folders = {f"$reward_model_{m.twin or m.seed - first}": str(m.folder / "reward_model") for m in models}
    folders["$reward_model"] = str(models[0].folder / "reward_model")
    folders["$start_samples"] = str(models[0].folder / START_SAMPLES)
    chosen = merge(merge(SETTINGS, design.settings), dict(overrides))
    name = f"{hole_name}/{design_name}/{seed}" + (f"-planting-{planting}" if planting else "")
    made_from = {"seed": seed, "models": [m.key for m in models], "version": __version__}
    made_from |= {"chosen": _with_defaults(json.dumps(chosen, sort_keys=True))}
    return Cell(
        design_name,
        hole_name,
        seed,
        planting,
        held_out,
        hole,
        run_settings(name, output_dir, seed, fill_in(chosen, folders), models[0].folder),
        hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16],
        COSTS.get(chosen.get("kind", ""), OTHER_COST),
        models,
    )


@cache
def _with_defaults(chosen: str) -> dict[str, Any]:
    """The settings of a run, given as JSON, with all defaults of its kind and parts: a result depends on those too."""
    return build_config(run_settings("run", Path("runs"), 0, json.loads(chosen), Path("models"))).model_dump(
        mode="json"
    )
