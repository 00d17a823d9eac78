"""The arena's table and ranking, from the results of its cells."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import isnan
from typing import Any

from cooper_audit.statistics import mean_interval
from cooper_lab.arena.cells import UNDER
from cooper_lab.arena.measures import is_hacked
from cooper_lab.arena.statistics import holm, sign_flip_p
from cooper_lab.arithmetic.families import least_family

Result = dict[str, Any]
"""The contents of `cell.json`."""
Block = tuple[str, int, int]
"""Hole, planting, seed."""

AVERAGED = ("gold_end", "gold_best", "drawdown", "reward_end", "reward_model_end", "kl_end", "cpu_s")
LEVEL = 0.05


def summarise(results: Sequence[Result], designs: Sequence[str] = ()) -> dict[str, Any]:
    """`standings`: see `standings`, of `designs` or those that have run. `table`: a row for each hole and design.
    `ranking`, `held_out`: see `rank`, over tuned and held-out holes."""
    return {
        "standings": standings(results, designs or list(dict.fromkeys(result["design"] for result in results))),
        "cells": len(results),
        "cpu_hours": round(sum(result["cpu_s"] or 0.0 for result in results) / 3600, 3),
        "table": [_row(hole, design, of_group) for (hole, design), of_group in _grouped(results, "hole", "design")],
        "ranking": rank([result for result in results if not result["held_out"]]),
        "held_out": rank([result for result in results if result["held_out"]]),
    }


def standings(results: Sequence[Result], designs: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each of `designs`, whatever is finished of it: by how far it ends above `rule`, those not run last.

    `models`, `runs`: the planted models and the runs that are finished. `gold_end`: mean over the planted models, which
    compares only designs with the same ones. `over_rule`, `over_static`: by how much gold ends above that design's over
    the planted models of both, with its 95 % interval by Student's t; null without any. `hacked`: runs.
    `least_family`: see `families.least_family`. `cpu_s`: mean over the runs that know it.
    """
    rows = [_standing(results, design, [r for r in results if r["design"] == design]) for design in designs]
    return sorted(rows, key=lambda row: (not row["runs"], -row["over_rule"]["mean"] if row["over_rule"] else 0.0))


def rank(results: Sequence[Result]) -> dict[str, Any]:
    """Designs by their mean gold at the end, over the holes in which all of them have finished a block.

    A block is a hole with a planting and a seed; the runs of a block share models, problems and random numbers. The
    blocks of a hole share its idea, and those of one planting its models, so they are no independent evidence: the unit
    of every claim is the hole, with the mean of its blocks. `designs`: mean over the holes, its 95 % interval by
    Student's t over the holes, the least family of any hole, the share of hacked runs, and the holes in which a run was
    hacked. `pairs`: see
    `compare`, for every two designs.
    """
    designs = list(dict.fromkeys(result["design"] for result in results))
    by_block: dict[Block, dict[str, Result]] = {}
    for result in results:
        by_block.setdefault(block_of(result), {})[result["design"]] = result
    blocks = {block: of_block for block, of_block in by_block.items() if len(of_block) == len(designs)}
    if not blocks:
        return {"holes": [], "blocks": [], "left_out": sorted(map(list, by_block)), "designs": [], "pairs": []}
    shared = [result for of_block in blocks.values() for result in of_block.values()]
    rows = [_ranked(design, [result for result in shared if result["design"] == design]) for design in designs]
    rows.sort(key=lambda row: -row["gold_end"])
    return {
        "holes": sorted({hole for hole, _, _ in blocks}),
        "blocks": sorted(map(list, blocks)),
        "left_out": sorted(map(list, by_block.keys() - blocks.keys())),
        "designs": rows,
        "pairs": compare(shared, list(combinations([row["design"] for row in rows], 2))),
    }


def compare(
    results: Sequence[Result], pairs: Sequence[tuple[str, str]], by_model: bool = False
) -> list[dict[str, Any]]:
    """Each pair of designs over the holes in which both have finished a block, the better one first.

    With `by_model` the unit is not the hole but the planted model: the plantings of a hole are drawn one by one, and
    the claim is about models with these holes, not about other holes.

    `difference`: the mean over the holes of the mean difference of gold at the end over a hole's shared blocks, with
    its 95 % interval by Student's t over the holes. `p`: of the sign-flip permutation test over the holes. `p_holm`:
    adjusted by Holm's method for all of `pairs`, so name only what is to be compared. Pairs without a shared block are
    left out.
    """
    rows = []
    for first, other in pairs:
        by_hole = list(differences(results, first, other, by_model).values())
        if not by_hole:
            continue
        mean, low, high = mean_interval(by_hole)
        row = {"better": first, "worse": other, "difference": mean, "low": _or_none(low), "high": _or_none(high)}
        if mean < 0:
            row |= {
                "better": other,
                "worse": first,
                "difference": -mean,
                "low": _or_none(-high),
                "high": _or_none(-low),
            }
        rows.append(row | {"holes": len(by_hole), "p": sign_flip_p(by_hole)})
    adjusted = holm([row["p"] for row in rows])
    return [row | {"p_holm": p_holm, "significant": p_holm < LEVEL} for row, p_holm in zip(rows, adjusted, strict=True)]


def differences(results: Sequence[Result], first: str, other: str, by_model: bool = False) -> dict[Any, float]:
    """By hole, how much higher gold ends with `one` than with `other`: the mean over the blocks that both finished.

    The silences under which a hole runs share its models, so they are one hole. `by_model`: by hole and planting.
    """
    ends = {(result["design"], block_of(result)): result["gold_end"] for result in results}
    by_key: dict[Any, list[float]] = {}
    for (design, block), end in ends.items():
        if design == first and (other, block) in ends:
            hole = block[0].partition(UNDER)[0]
            by_key.setdefault((hole, block[1]) if by_model else hole, []).append(end - ends[other, block])
    return {hole: _mean(of_hole) for hole, of_hole in by_key.items()}


def block_of(result: Result) -> Block:
    """Hole, planting and seed. Results from before plantings were a setting have planting 0."""
    return result["hole"], result.get("planting", 0), result["seed"]


def _standing(results: Sequence[Result], design: str, runs: Sequence[Result]) -> dict[str, Any]:
    by_model: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        hole, planting, _ = block_of(run)
        by_model.setdefault((hole.partition(UNDER)[0], planting), []).append(run["gold_end"])
    seconds = [run["cpu_s"] for run in runs if run["cpu_s"] is not None]
    row: dict[str, Any] = {"design": design, "models": len(by_model), "runs": len(runs)}
    row |= {"gold_end": _mean(map(_mean, by_model.values())) if runs else None}
    row |= {f"over_{other}": _over(results, design, other) for other in ("rule", "static")}
    row |= {"hacked": sum(map(is_hacked, runs)), "least_family": least_family([run.get("families") for run in runs])}
    return row | {"cpu_s": _mean(seconds) if seconds else None}


def _over(results: Sequence[Result], design: str, other: str) -> dict[str, float | None] | None:
    by_model = {} if design == other else differences(results, design, other, by_model=True)
    if not by_model:
        return None
    mean, low, high = mean_interval([*by_model.values()])
    return {"mean": mean, "low": _or_none(low), "high": _or_none(high)}


def _ranked(design: str, runs: Sequence[Result]) -> dict[str, Any]:
    of_hole: dict[str, list[float]] = {}
    for run in runs:
        of_hole.setdefault(run["hole"].partition(UNDER)[0], []).append(run["gold_end"])
    mean, low, high = mean_interval([_mean(values) for values in of_hole.values()])
    return {
        "design": design,
        "gold_end": mean,
        "low": _or_none(low),
        "high": _or_none(high),
        "worst": min(run["gold_end"] for run in runs),
        "least_family": _least_of_holes(runs),
        "hacked": _mean(is_hacked(run) for run in runs),
        "hacked_holes": sorted({run["hole"] for run in runs if is_hacked(run)}),
    }


def _least_of_holes(runs: Sequence[Result]) -> dict[str, Any] | None:
    """The least family of any hole, with the hole's name; None if no result has families."""
    leasts = [
        least | {"hole": hole}
        for (hole,), of_hole in _grouped(runs, "hole")
        if (least := least_family([run.get("families") for run in of_hole]))
    ]
    return min(leasts, key=lambda least: least["gold"], default=None)


def _row(hole: str, design: str, results: Sequence[Result]) -> dict[str, Any]:
    """Means over seeds with their intervals; of steps that not every run reaches, how many runs did."""
    row: dict[str, Any] = {"hole": hole, "design": design, "held_out": results[0]["held_out"], "runs": len(results)}
    for name in AVERAGED:
        values = [result[name] for result in results if result[name] is not None]
        mean, low, high = mean_interval(values) if values else (float("nan"),) * 3
        row[name] = {"mean": _or_none(mean), "low": _or_none(low), "high": _or_none(high)}
    row["least_family"] = least_family([result.get("families") for result in results])
    for name in ("hacked_at", "half_lost", "alarm"):
        row[name] = sorted(result[name] for result in results if result[name] is not None)
    return row


def _grouped(results: Sequence[Result], *keys: str) -> list[tuple[tuple[Any, ...], list[Result]]]:
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(tuple(result[key] for key in keys), []).append(result)
    return list(groups.items())


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value
