"""The dose: gold at the end against the share of completions that the rule judges, for each design.

    python -m benchmarks.arena.dose runs/dose    # the folder of `cooper arena --silence …`

Writes `dose.json` and `dose.svg` into the working directory.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cooper_audit.report.palette import COLOURS
from cooper_audit.statistics import mean_interval
from cooper_lab.arena.cells import UNDER
from cooper_lab.arena.measures import is_hacked
from cooper_lab.arena.run_cells import read_results

Result = Mapping[str, Any]
PARTS = ("gold_end", "gold_heard_end", "gold_silent_end")


def dose_of(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row for each silence, from the most to the least heard, and for each design in it.

    `gold_end`, `gold_heard_end` and `gold_silent_end` are means over units, a unit being a planting of a hole: its runs
    share their models. `low` and `high` are the 95 % interval of `gold_end` (Student's t over the units), null for one.
    """
    rows = []
    for silence in _silences(results):
        of_silence = [result for result in results if _silence_of(result) == silence]
        for design in dict.fromkeys(result["design"] for result in of_silence):
            runs = [result for result in of_silence if result["design"] == design]
            units = {name: _by_unit(runs, name) for name in PARTS}
            means = {name: sum(values) / len(values) if values else None for name, values in units.items()}
            _, low, high = mean_interval(units["gold_end"])
            interval = {"low": low, "high": high} if len(units["gold_end"]) > 1 else {"low": None, "high": None}
            hacked = sum(is_hacked(run) for run in runs)
            counts = {"runs": len(runs), "units": len(units["gold_end"]), "hacked": hacked}
            heard = sum(run["heard"] for run in runs) / len(runs)
            rows.append({"silence": silence, "heard": heard, "design": design, **means, **interval, **counts})
    return rows


def dose_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Gold at the end over the share that the rule judges: a line for each design, a bar for each interval."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.add_subplot()
    for number, design in enumerate(dict.fromkeys(row["design"] for row in rows)):
        of_design = sorted((row for row in rows if row["design"] == design), key=lambda row: row["heard"])
        heard, gold = ([100 * row[name] for row in of_design] for name in ("heard", "gold_end"))
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(heard, gold, "o-", markersize=3, color=colour, label=design)
        for row in of_design:
            if row["low"] is not None:
                axes.vlines(100 * row["heard"], 100 * row["low"], 100 * row["high"], color=colour, alpha=0.4)
    axes.set_xlabel("answers that the rule judges, %")
    axes.set_ylabel("gold at the end, %")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _silence_of(result: Result) -> str:
    return result["hole"].partition(UNDER)[2]


def _silences(results: Sequence[Result]) -> list[str]:
    """From the most to the least heard."""
    heard: dict[str, list[float]] = {}
    for result in results:
        heard.setdefault(_silence_of(result), []).append(result["heard"])
    return sorted(heard, key=lambda silence: -sum(heard[silence]) / len(heard[silence]))


def _by_unit(runs: Sequence[Result], name: str) -> list[float]:
    units: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if run[name] is not None:
            units.setdefault((run["hole"].partition(UNDER)[0], run["planting"]), []).append(run[name])
    return [sum(values) / len(values) for values in units.values()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arena", type=Path, help="output folder of an arena")
    rows = dose_of([result for result in read_results(parser.parse_args().arena) if UNDER in result["hole"]])
    Path("dose.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    dose_figure(rows).savefig("dose.svg")
