"""Over-optimisation of finished runs: gold and proxy reward against the distance from the start policy."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.overopt.best_of_n import best_of_n_curve, best_of_n_kl
from benchmarks.overopt.gap import Method, OveroptimisationFit, fit_over_optimisation
from jaxtyping import Float
from matplotlib.figure import Figure
from numpy import ndarray

from cooper_audit.run.run_record import read_groups
from cooper_base.files.owned_file import write_owned
from cooper_lab.figures import figure_svg
from cooper_rl import InputError, read_metrics

KL, LENGTH = "policy/reference_kl", "rollout/mean_length"
GOLD = "gold/accuracy"
PROXIES = ("reward_model/mean", "reward/mean")
"""The metrics that may serve as proxy, best first."""
COLUMNS = {"reward_model/mean": "reward_model", "reward/mean": "unshaped", "gold/accuracy": "gold"}
"""The number in the recorded completions whose mean a metric is. Without shaping, `unshaped` is the reward."""
COMMAND = "python -m benchmarks.overopt"
JSON, SVG = "overopt.json", "overopt.svg"


@dataclass(frozen=True)
class Curve:
    """Gold and proxy reward at K distances. A fit is None if there are fewer than three different distances."""

    method: Method
    distance: list[float]
    """sqrt(KL(policy || start policy)), with the KL of whole completions in nats."""
    gold: list[float]
    proxy: list[float]
    gold_fit: OveroptimisationFit | None
    proxy_fit: OveroptimisationFit | None


@dataclass(frozen=True)
class Overoptimisation:
    """The curves of one run: `rl` over its steps, `best_of_n` from the completions of its first step, if recorded."""

    run: str
    proxy: str
    gold: str
    rl: Curve
    best_of_n: Curve | None


def read_overoptimisation(directory: Path, proxy: str | None = None, gold: str = GOLD) -> Overoptimisation:
    """The curves of the run in `directory`. `proxy` and `gold` name metrics of `metrics.jsonl`.

    `proxy` defaults to the first of `PROXIES` that the run has. The KL of a completion is the mean KL per token times
    the mean number of tokens. KL, gold and proxy of a step all belong to the same samples, those before its update.
    Raises InputError if the folder holds no run, or a run without KL, gold or proxy.
    """
    rows = [row for row in read_metrics(directory) if row["step"] > 0]
    if not rows:
        raise InputError(f"{directory / 'metrics.jsonl'}: holds no step of a run; name the folder of a run")
    names = {name for row in rows for name in row}
    if KL not in names:
        raise InputError(
            f"{directory / 'metrics.jsonl'}: no {KL}, because the run kept no reference policy; train with a KL term "
            "(algorithm.kl.coefficient above 0, however small)"
        )
    if gold not in names:
        raise InputError(
            f"{directory / 'metrics.jsonl'}: no {gold}; train with problems.gold, or name another metric with --gold "
            "(rule/accuracy is the share that the rule accepts)"
        )
    proxy = proxy or next((name for name in PROXIES if name in names), PROXIES[0])
    if proxy not in names:
        near = ", ".join(sorted(name for name in names if name.endswith("/mean")))
        raise InputError(f"{directory / 'metrics.jsonl'}: no {proxy}; name a metric with --proxy, such as {near}")
    kept = [row for row in rows if all(row.get(name) is not None for name in (KL, LENGTH, gold, proxy))]
    table = np.array([[row[KL] * row[LENGTH], row[gold], row[proxy]] for row in kept], dtype=float).reshape(-1, 3)
    table = table[np.isfinite(table).all(axis=1)]
    rl = _curve("rl", np.sqrt(np.maximum(table[:, 0], 0.0)), table[:, 1], table[:, 2])
    return Overoptimisation(directory.name, proxy, gold, rl, _best_of_n(directory, proxy, gold))


def write_overoptimisation(curves: Sequence[Overoptimisation], output_dir: Path) -> None:
    """Write `overopt.json` and the picture `overopt.svg`."""
    write_owned(output_dir / JSON, json.dumps([_as_json(run) for run in curves], indent=2) + "\n", COMMAND)
    write_owned(output_dir / SVG, picture(curves), COMMAND)


def picture(curves: Sequence[Overoptimisation]) -> str:
    """Gold (filled) and proxy (hollow) against the distance, with the fits as lines, as SVG. RL left, best-of-n right.

    The right half is missing if no run has a best-of-n curve.
    """
    panels = ["rl"] + ["best_of_n"] * any(run.best_of_n is not None for run in curves)
    figure = Figure(figsize=(5.2 * len(panels), 3.8), layout="constrained")
    for axes, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        for number, run in enumerate(curves):
            curve: Curve | None = getattr(run, panel)
            if curve is not None:
                _draw(axes, curve, run, f"C{number}")
        axes.set_title({"rl": "reinforcement learning", "best_of_n": "best of n, first step"}[panel], fontsize=9)
        axes.set_xlabel("sqrt(KL from the start), nats", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)
    return figure_svg(figure)


def _draw(axes: Any, curve: Curve, run: Overoptimisation, colour: str) -> None:
    for name, values, fit, filled in (
        (run.gold, curve.gold, curve.gold_fit, True),
        (run.proxy, curve.proxy, curve.proxy_fit, False),
    ):
        face = colour if filled else "none"
        axes.scatter(curve.distance, values, s=14, color=colour, facecolor=face, label=f"{run.run}: {name}")
        if fit is not None:
            distance = np.linspace(0, max(curve.distance), 200)
            axes.plot(distance, fit(distance), color=colour, linestyle="-" if filled else "--", linewidth=1.2)


def _curve(method: Method, distance: Any, gold: Any, proxy: Any) -> Curve:
    can_fit = len(np.unique(distance)) >= 3
    gold_fit = fit_over_optimisation(distance, gold, method) if can_fit else None
    proxy_fit = fit_over_optimisation(distance, proxy, method) if can_fit else None
    return Curve(method, distance.tolist(), gold.tolist(), proxy.tolist(), gold_fit, proxy_fit)


def _best_of_n(directory: Path, proxy: str, gold: str) -> Curve | None:
    """The curve for n up to half the completions of a problem, from the first step, whose policy is the start."""
    path = directory / "rollouts" / "000001.jsonl"
    if not path.is_file() or proxy not in COLUMNS or gold not in COLUMNS:
        return None
    groups = [group["completions"] for group in read_groups(path)]
    groups = [[{"unshaped": row.get("reward", np.nan), **row} for row in group] for group in groups]
    sizes = {len(group) for group in groups}
    needed = (COLUMNS[proxy], COLUMNS[gold])
    if len(sizes) != 1 or not all(name in row for group in groups for row in group for name in needed):
        return None
    proxies, golds = (_column(groups, name) for name in needed)
    if not np.isfinite(proxies).all():
        return None
    most = max(1, sizes.pop() // 2)
    distance = np.sqrt(best_of_n_kl(np.arange(1, most + 1)))
    return _curve(
        "best_of_n", distance, best_of_n_curve(proxies, golds)[:most], best_of_n_curve(proxies, proxies)[:most]
    )


def _column(groups: Sequence[Sequence[dict[str, Any]]], name: str) -> Float[ndarray, "P N"]:
    return np.array([[row[name] for row in group] for group in groups], dtype=float)


def _as_json(run: Overoptimisation) -> dict[str, Any]:
    values = asdict(run)
    for curve, points in ((values["rl"], run.rl), (values["best_of_n"], run.best_of_n)):
        if points is not None:
            for name, fit in (("gold_fit", points.gold_fit), ("proxy_fit", points.proxy_fit)):
                if fit is not None:
                    curve[name]["peak"] = fit.peak
    return values
