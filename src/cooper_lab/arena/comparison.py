"""The arena's table and ranking, from the results of its cells."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import isnan
from typing import Any

from cooper_lab.arena.measures import HACKED
from cooper_lab.arena.statistics import holm, sign_flip_p
from cooper_rl.evaluation.estimates import mean_interval

Result = dict[str, Any]
"""What `cell.json` holds."""

AVERAGED = ("gold_end", "gold_best", "drawdown", "reward_end", "reward_model_end", "kl_end", "cpu_s")
LEVEL = 0.05


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """`table`: a row for each hole and design. `ranking`, `held_out`: see `rank`, over tuned and held-out holes."""
    return {
        "cells": len(results),
        "cpu_hours": round(sum(result["cpu_s"] or 0.0 for result in results) / 3600, 3),
        "table": [_row(hole, design, found) for (hole, design), found in _grouped(results, "hole", "design")],
        "ranking": rank([result for result in results if not result["held_out"]]),
        "held_out": rank([result for result in results if result["held_out"]]),
    }


def rank(results: Sequence[Result]) -> dict[str, Any]:
    """Designs by their mean gold at the end, over the blocks that all of them have finished.

    A block is a hole with a seed; the runs of a block share models, problems and random numbers. `designs`: mean over
    the blocks, its 95 % interval by Student's t over the seeds (each seed's mean over its holes), share of hacked runs.
    `pairs`: every two designs, their mean difference over blocks, and the p-value of the paired sign-flip permutation
    test, as it is and adjusted by Holm's method for all the pairs.
    """
    designs = list(dict.fromkeys(result["design"] for result in results))
    by_block: dict[tuple[str, int], dict[str, Result]] = {}
    for result in results:
        by_block.setdefault((result["hole"], result["seed"]), {})[result["design"]] = result
    blocks = {block: found for block, found in by_block.items() if len(found) == len(designs)}
    if not blocks:
        return {"blocks": [], "left_out": sorted(map(list, by_block)), "designs": [], "pairs": []}
    rows = [_ranked(design, {block: found[design] for block, found in blocks.items()}) for design in designs]
    rows.sort(key=lambda row: -row["gold_end"])
    return {
        "blocks": sorted(map(list, blocks)),
        "left_out": sorted(map(list, by_block.keys() - blocks.keys())),
        "designs": rows,
        "pairs": _pairs([row["design"] for row in rows], list(blocks.values())),
    }


def _ranked(design: str, runs: dict[tuple[str, int], Result]) -> dict[str, Any]:
    seeds = sorted({seed for _, seed in runs})
    by_seed = [_mean(run["gold_end"] for (_, seed), run in runs.items() if seed == wanted) for wanted in seeds]
    _, low, high = mean_interval(by_seed)
    return {
        "design": design,
        "gold_end": _mean(run["gold_end"] for run in runs.values()),
        "low": _or_none(low),
        "high": _or_none(high),
        "worst": min(run["gold_end"] for run in runs.values()),
        "hacked": _mean(run["drawdown"] > HACKED for run in runs.values()),
    }


def _pairs(designs: Sequence[str], blocks: Sequence[dict[str, Result]]) -> list[dict[str, Any]]:
    """Every two designs, the better one first."""
    rows = []
    for better, worse in combinations(designs, 2):
        differences = [block[better]["gold_end"] - block[worse]["gold_end"] for block in blocks]
        p = sign_flip_p(differences)
        rows.append({"better": better, "worse": worse, "difference": _mean(differences), "blocks": len(blocks), "p": p})
    adjusted = holm([row["p"] for row in rows])
    return [row | {"p_holm": p_holm, "significant": p_holm < LEVEL} for row, p_holm in zip(rows, adjusted, strict=True)]


def _row(hole: str, design: str, results: Sequence[Result]) -> dict[str, Any]:
    """Means over seeds with their intervals; of steps that not every run reaches, how many runs did."""
    row: dict[str, Any] = {"hole": hole, "design": design, "held_out": results[0]["held_out"], "runs": len(results)}
    for name in AVERAGED:
        values = [result[name] for result in results if result[name] is not None]
        mean, low, high = mean_interval(values) if values else (float("nan"),) * 3
        row[name] = {"mean": _or_none(mean), "low": _or_none(low), "high": _or_none(high)}
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
