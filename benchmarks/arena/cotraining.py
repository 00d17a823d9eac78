"""Ways to learn a reward beside the policy, on one measure: the runs and the tables of docs/co-training-measured.md.

    export PYTHONPATH=.:benchmarks/arena                                    # where `spelled_hole.py` is
    python benchmarks/arena/cotraining.py run B tune                        # its settings and a grid, on two cells
    python benchmarks/arena/cotraining.py run B report                      # with the tuned settings
    python benchmarks/arena/cotraining.py run B pilot --plantings 3 --methods rule cooper prime
    python benchmarks/arena/cotraining.py run A deeper --plantings 3        # with the tuned settings, in deeper holes
    python benchmarks/arena/cotraining.py table B report
    python benchmarks/arena/cotraining.py picture B report --out docs/co-training.png

`cotraining.yaml` is the plan: tables, methods, cells, budgets. `run` makes what is missing, one run at a time, planting
by planting, so that what is there is always a whole comparison but for its last planting; it can be killed at any time,
and the same command goes on. Results are appended to `benchmarks/results/cotraining-TABLE-PHASE.json` after each run.
`table` compares each method with Cooper by a sign-flip test over the planted models, with Holm's correction: after the
same steps, after the same CPU seconds, and by the worst family of questions; `--page` writes it between the marks of
docs/co-training-measured.md. `picture` draws the courses of gold, a panel for each cell.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml
from benchmarks.arena.one_cell import one_by_one, plan_cell

from cooper_base.files.durable import write_text
from cooper_lab.arena.arena import built_in_holes, read_holes
from cooper_lab.arena.cache import default_cache
from cooper_lab.arena.cells import Cell, Plan
from cooper_lab.arena.comparison import Result, block_of, compare
from cooper_lab.arena.designs import Design, built_in_designs
from cooper_lab.arena.measures import is_hacked
from cooper_lab.arena.run_cells import read_result
from cooper_lab.arena.statistics import holm
from cooper_rl import InputError, merge

HERE = Path(__file__).parent
PLAN = HERE / "cotraining.yaml"
AT = "~"
"""Separates a method's name from the number of its setting in the tuning."""
AGAINST = "cooper"
COLOURS = {
    **{"rule": "#7a828e", "static": "#d9480f", "cooper": "#2b8a3e", "iterated_5": "#2f7ed8"},
    **{"prime": "#9c36b5", "prime_frozen": "#d69ee6", "paper": "#e8a838"},
}
MEANS = ("gold_end", "gold_silent_end", "worst_family", "hacked_share", "kl_end", "cpu_s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "table", "picture"])
    parser.add_argument("table", choices=["A", "B", "C"])
    parser.add_argument("phase", choices=["tune", "report", "pilot", "deeper", "sampled", "convention", "longer"])
    parser.add_argument("--methods", nargs="*", default=[], help="these alone")
    parser.add_argument("--plantings", type=int, help="how many planted models a hole has")
    parser.add_argument("--out", type=Path, default=Path("runs/cotraining"))
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where planted models are kept")
    parser.add_argument("--page", type=Path, help="write the table into this page, between its two marks")
    arguments = parser.parse_args()
    protocol = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    saved = HERE.parent / "results" / f"cotraining-{arguments.table}-{arguments.phase}.json"
    if arguments.command == "run":
        run(planned(protocol, arguments, saved.parent), saved)
    results = json.loads(saved.read_text(encoding="utf-8"))
    if arguments.command == "picture":
        draw(results, arguments.out)
        return
    lines = table(results, protocol["tables"][arguments.table]["methods"], arguments.phase)
    if arguments.page:
        write_into(arguments.page, saved.name, lines)
    print("\n".join(lines))


def planned(protocol: Mapping[str, Any], arguments: argparse.Namespace, results: Path) -> list[Plan]:
    """A plan for each planting and cell, in the order in which they run."""
    of_table, phase = protocol["tables"][arguments.table], arguments.phase
    methods = {name: of_table["methods"][name] for name in arguments.methods or of_table["methods"]}
    designs = {}
    for name, method in methods.items():
        for label, settings in variants(name, method, phase, tuned(results, arguments.table, name, phase)):
            base = built_in_designs()[method["design"]]
            chosen = merge(merge(base.settings, of_table["settings"]), merge(method.get("settings", {}), settings))
            designs[label] = Design(about=base.about, settings=chosen)
    steps = protocol["longer_steps" if phase == "longer" else "steps"]
    overrides = {"steps": steps, "evaluation": protocol["evaluation"]}
    holes = built_in_holes() | read_holes(Path(protocol["holes"]))
    count = 1 if phase == "tune" else arguments.plantings or protocol["plantings"]
    seeds, out = [protocol["tuning_seed"]], arguments.out / arguments.table / phase
    return [
        plan_cell(designs, cell, holes, seeds, out, arguments.cache, overrides, planting)
        for planting in range(count)
        for cell in protocol["cells"][phase]
    ]


def variants(
    name: str, method: Mapping[str, Any], phase: str, chosen: Mapping[str, Any] | None
) -> list[tuple[str, dict[str, Any]]]:
    """The names and settings under which a method runs: as it is, and in the tuning each point of its grid."""
    if phase != "tune":
        return [(name, dict(chosen or {}))]
    return [(name, {}), *((f"{name}{AT}{i}", point) for i, point in enumerate(points(method.get("grid", {}))))]


def points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, as settings."""
    return [nested(dict(zip(grid, values, strict=True))) for values in product(*grid.values())] if grid else []


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """`{"a.b": 1}` as `{"a": {"b": 1}}`."""
    settings: dict[str, Any] = {}
    for key, value in flat.items():
        for part in reversed(key.split(".")):
            value = {part: value}
        settings = merge(settings, value)
    return settings


def tuned(results: Path, table_name: str, name: str, phase: str) -> dict[str, Any] | None:
    """The point of the grid with the highest mean gold at the end over the cells of the tuning; only for what is
    reported, and of a method that has a grid.

    Raises InputError for a report before the tuning.
    """
    grid = yaml.safe_load(PLAN.read_text(encoding="utf-8"))["tables"][table_name]["methods"][name].get("grid", {})
    if phase in ("tune", "pilot") or not grid:
        return None
    path = results / f"cotraining-{table_name}-tune.json"
    if not path.is_file():
        raise InputError(f"{path}: no tuning yet; run it first, or run the pilot, which takes the settings as they are")
    ends: dict[str, list[float]] = {}
    for result in json.loads(path.read_text(encoding="utf-8")):
        if result["design"].partition(AT)[0] == name:
            ends.setdefault(result["design"], []).append(result["gold_end"])
    best = max(ends, key=lambda design: fmean(ends[design]))
    return points(grid)[int(best.partition(AT)[2])] if AT in best else {}


def run(plans: Sequence[Plan], saved: Path) -> None:
    """Make missing models and run missing cells, one after the other; what is saved from the same settings stays."""
    rows = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else []
    there = {row["fingerprint"] for row in rows}
    for of_cell in plans:
        for cell in one_by_one(of_cell.only(lambda cell: cell.fingerprint not in there)):
            save(cell, saved)


def save(cell: Cell, saved: Path) -> None:
    """Add a finished cell to the saved results, in the place of an earlier one of the same name."""
    rows = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else []
    result = read_result(cell.result_path)
    key = ("design", "hole", "planting", "seed")
    rows = [row for row in rows if any(row[name] != result[name] for name in key)] + [result]
    rows.sort(key=lambda row: [str(row[name]) for name in key])
    write_text(saved, "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def table(results: Sequence[dict[str, Any]], methods: Mapping[str, Any], phase: str) -> list[str]:
    """The table in Markdown: a row for each method and cell, then the comparisons."""
    titles = ["method", "cell", "models", "gold", "silent", "worst family", "hacked share", "KL", "CPU s", "hacked"]
    titles += ["J start", "J end", "hack accepted, start", "end"]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for hole in dict.fromkeys(result["hole"] for result in results):
        for name in dict.fromkeys(result["design"] for result in results):
            rows = [result for result in results if (result["hole"], result["design"]) == (hole, name)]
            if rows:
                lines.append("| " + " | ".join(_row(name, hole, rows)) + " |")
    for title, what in COMPARED.items():
        lines += ["", f"{title}, over all planted models:", *comparisons(results, methods, what)]
    if phase != "tune":
        counting = [result for result in results if counts(result, results, methods)]
        title = "Gold after the same steps, over those with which a method's frozen version is hacked:"
        lines += ["", title, *comparisons(counting, methods, after_the_same_steps)]
    return [re.sub(r"(?<= )-(?=\d)", "−", line) for line in lines]


def write_into(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put the table in the place of the one of these saved results on a page."""
    begin, end = f"<!-- table of benchmarks/results/{name} -->\n", "<!-- end of that table -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    write_text(page, before + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])


def comparisons(
    results: Sequence[Result],
    methods: Mapping[str, Any],
    what: Callable[[Sequence[Result], str], Sequence[Result]],
) -> list[str]:
    """Each method less Cooper, with the planted model as the unit, by what `what` puts in the place of gold. Holm's
    correction is over the methods that were planned."""
    lines = ["", f"| method less {AGAINST} | models | difference | 95 % interval | p | p (Holm) |", "|---" * 6 + "|"]
    names = [name for name in dict.fromkeys(result["design"] for result in results) if name != AGAINST]
    pairs = {name: pair for name in names for pair in compare(what(results, name), [(name, AGAINST)], by_model=True)}
    in_plan = [name for name in pairs if not methods[name].get("unplanned")]
    corrected = dict(zip(in_plan, holm([pairs[name]["p"] for name in in_plan]), strict=True))
    for name, pair in pairs.items():
        sign = 1 if pair["better"] == name else -1
        ends = sorted(sign * end for end in (pair["low"], pair["high"]) if end is not None)
        interval = f"{ends[0]:.3f} to {ends[1]:.3f}" if ends else "one model"
        p_holm = f"{corrected[name]:.3f}" if name in corrected else "not planned"
        figures = [f"{sign * pair['difference']:.3f}", interval, f"{pair['p']:.3f}", p_holm]
        lines.append("| " + " | ".join([f"`{name}`", str(pair["holes"]), *figures]) + " |")
    return lines


def after_the_same_steps(results: Sequence[Result], name: str) -> list[Result]:
    """Gold at the end: every run has the same samples."""
    return [*results]


def after_the_same_cpu_seconds(results: Sequence[Result], name: str) -> list[Result]:
    """Gold of a method and of Cooper when both have used the CPU seconds of the cheaper of the two with this model.

    A run's seconds, those of loading and measuring among them, count as spread evenly over its steps; gold is
    interpolated between evaluations. A run that was interrupted does not know its seconds and is left out.
    """
    runs = {(run["design"], block_of(run)): run for run in results if run["cpu_s"] is not None}
    pairs = [
        (run, runs[AGAINST, block])
        for (design, block), run in runs.items()
        if design == name and (AGAINST, block) in runs
    ]
    return [
        run | {"gold_end": _gold_at(run, min(one["cpu_s"], other["cpu_s"]) / run["cpu_s"])}
        for one, other in pairs
        for run in (one, other)
    ]


def in_the_worst_family(results: Sequence[Result], name: str) -> list[Result]:
    """Gold at the end on the family of questions that is worst in this run."""
    return [result | {"gold_end": result["worst_family"]} for result in results]


COMPARED = {
    "Gold after the same steps": after_the_same_steps,
    "Gold after the same CPU seconds": after_the_same_cpu_seconds,
    "Gold of the worst family after the same steps": in_the_worst_family,
}
"""What the methods are compared by."""


def draw(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Gold over the steps of each method, a panel for each cell: the mean over the planted models, and each of them."""
    from matplotlib.figure import Figure

    holes = list(dict.fromkeys(result["hole"] for result in results))
    columns = min(4, len(holes))
    rows = -(-len(holes) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for panel, hole in zip(panels, holes, strict=False):
        for method, colour in COLOURS.items():
            runs = [result["gold_curve"] for result in results if (result["hole"], result["design"]) == (hole, method)]
            for run in runs:
                panel.plot(*zip(*run, strict=True), color=colour, linewidth=0.6, alpha=0.5)
            if runs:
                means = [fmean(gold for _, gold in at_step) for at_step in zip(*runs, strict=True)]
                panel.plot([step for step, _ in runs[0]], means, color=colour, label=method)
        panel.set_title(hole, fontsize=9, loc="left")
        panel.set_ylim(0, 1)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("gold on test problems")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    for panel in figure.axes[len(holes) :]:
        panel.set_axis_off()
    figure.axes[-1].legend(handles, labels, frameon=False, fontsize=9, loc="center" if len(holes) % columns else "best")
    figure.supxlabel("step", fontsize=9)
    figure.savefig(path, dpi=150)


def counts(result: Mapping[str, Any], results: Sequence[Mapping[str, Any]], methods: Mapping[str, Any]) -> bool:
    """Whether the method's frozen version, if it names one, has run with the same planted model and was hacked."""
    frozen = methods[result["design"]].get("frozen")
    same = [
        is_hacked(other)
        for other in results
        if other["design"] == frozen and all(other[name] == result[name] for name in ("hole", "planting", "seed"))
    ]
    return frozen is None or (bool(same) and all(same))


def _row(name: str, hole: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [f"`{name}`", f"`{hole}`", str(len(rows)), *(_mean([row[key] for row in rows]) for key in MEANS)]
    cells.append(f"{sum(map(is_hacked, rows))} of {len(rows)}")
    for what in ("j", "hacks"):
        for when in ("reward_model_start", "reward_model_end_accepts"):
            cells.append(_mean([row[when][what] if row[when] else None for row in rows]))
    return cells


def _gold_at(run: Result, share: float) -> float:
    """Gold on the test problems when this share of the run's steps is done."""
    steps, gold = zip(*run["gold_curve"], strict=True)
    return float(np.interp(share * steps[-1], steps, gold))


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.2f}" if known else "–"


if __name__ == "__main__":
    main()
