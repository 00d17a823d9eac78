"""The arena's table in Markdown, from its folder or from the saved results.

    python -m benchmarks.arena.arena_table runs/arena --save benchmarks/results/arena.json
    python -m benchmarks.arena.arena_table benchmarks/results/arena.json \\
        --page packages/lab/src/cooper_lab/arena/README.md
    python -m benchmarks.arena.arena_table benchmarks/results/arena.json --against rule --design hybrid --design cooper

A row for each design, a column for each hole: mean gold at the end, and how many of the runs are hacked. Below it, what
the alarm found, with and without co-training, in how many holes each design is hacked, and which designs the
permutation test over holes tells apart. `--design` and `--left-out` (a hole) narrow what is compared.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml
from benchmarks.arena.alarm_roc import alarm_report

from cooper_lab.arena.comparison import compare
from cooper_lab.arena.designs import BUILT_IN
from cooper_lab.arena.measures import is_hacked
from cooper_lab.arena.run_cells import read_results

SHELF = Path(__file__).parents[2] / "examples/shelf/designs.yaml"
LEVEL = 0.05
LEFT_OUT = ("fingerprint",)
DIGITS = 4
BEGIN, END = "<!-- table of benchmarks/results/arena.json -->\n", "<!-- end of the table -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The table of an arena in Markdown.")
    parser.add_argument("source", type=Path, help="output folder of an arena, or saved results")
    parser.add_argument("--page", type=Path, help="write the table into this page, between its two marks")
    parser.add_argument("--save", type=Path, help="write the results of all cells here")
    parser.add_argument("--design", action="append", default=[], help="compare these only; repeat for several")
    parser.add_argument("--against", help="compare each design with this one only")
    parser.add_argument("--by-model", action="store_true", help="the unit is the planted model, not the hole")
    parser.add_argument("--left-out", action="append", default=[], help="a hole that the comparison leaves out")
    arguments = parser.parse_args()
    if arguments.source.is_dir():
        results = [small(result) for result in read_results(arguments.source)]
    else:
        results = json.loads(arguments.source.read_text(encoding="utf-8"))
    if arguments.save:
        lines = ",\n".join(json.dumps(result) for result in results)
        arguments.save.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    lines = table(results)
    if arguments.page:
        before, rest = arguments.page.read_text(encoding="utf-8").split(BEGIN)
        _, after = rest.split(END)
        arguments.page.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, encoding="utf-8")
    designs = arguments.design or sorted({result["design"] for result in results})
    compared = [result for result in results if result["hole"] not in arguments.left_out]
    found = [*alarm(results), *alarm_by_kind(results), "", *hacked_holes(results)]
    print("\n".join([*lines, "", *found, "", *told_apart(compared, designs, arguments)]))


def alarm(results: Sequence[dict[str, Any]]) -> list[str]:
    """What the alarm's strength and its signs are worth over all runs."""
    report = alarm_report(results)
    areas = {"strongest sign": report["auc"], **report["signs"]}
    areas |= {f"disagreement, {name}": report["disagreement"][name] for name in ("fall", "rise")}
    now, others = report["today"], report["cross_validated"]
    return [
        f"{report['hacked']} of {report['runs']} runs are hacked",
        *(f"area of {name}: {'none' if area is None else f'{area:.3f}'}" for name, area in areas.items()),
        f"alarm as it is: {now['hits']} found, {now['false_alarms']} false",
        f"thresholds of the other holes: {others['hits']} found, {others['false_alarms']} false",
        *(f"{name}: {', '.join(report[name]) or 'none'}" for name in ("missed", "false_alarms", "late")),
    ]


def alarm_by_kind(results: Sequence[dict[str, Any]]) -> list[str]:
    """The alarm on runs of our designs: without co-training, with the published one, and with the policy's own
    wrong answers in it."""
    kinds = kinds_of_designs()
    lines = []
    for name in ("no reward model learns", "paper", "a reward model learns otherwise"):
        report = alarm_report([result for result in results if kinds.get(result["design"]) == name])
        now, area = report["today"], "none" if report["auc"] is None else f"{report['auc']:.3f}"
        counted = f"{report['hacked']} of {report['runs']} runs hacked, area {area}"
        lines.append(f"{name}: {counted}, {now['hits']} found, {now['false_alarms']} false")
    return lines


def kinds_of_designs() -> dict[str, str]:
    """Of every design of ours, whether a reward model learns in it. Their parts are not imported for this."""
    designs = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (BUILT_IN, SHELF))
    return {name: _kind(design["settings"]) for of_file in designs for name, design in of_file.items()}


def _kind(settings: dict[str, Any]) -> str:
    if settings["kind"] in ("rule", "static", "function"):
        return "no reward model learns"
    return "paper" if settings["kind"] == "paper" else "a reward model learns otherwise"


def hacked_holes(results: Sequence[dict[str, Any]]) -> list[str]:
    """Of every design, in how many holes a run was hacked."""
    found: dict[str, dict[str, bool]] = {}
    for result in results:
        holes = found.setdefault(result["design"], {})
        holes[result["hole"]] = holes.get(result["hole"], False) or is_hacked(result)
    return [f"{design}: hacked in {sum(holes.values())} of {len(holes)} holes" for design, holes in found.items()]


def told_apart(results: Sequence[dict[str, Any]], designs: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Every two of the designs, or each of them and `against`, over the holes that both have run: `comparison.compare`.

    First how many are told apart once Holm's method has corrected for all of them, then those with p below 0.05.
    """
    against, units = options.against, "planted models" if options.by_model else "holes"
    pairs = [(name, against) for name in designs if name != against] if against else list(combinations(designs, 2))
    rows = sorted(compare(results, pairs, options.by_model), key=lambda row: row["p"])
    found = sum(row["significant"] for row in rows)
    lines = [f"{len(rows)} pairs of designs; told apart at level {LEVEL} after Holm's correction: {found}"]
    for row in rows:
        if against or row["p"] < LEVEL:
            interval = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
            lines.append(
                f"{row['better']} above {row['worse']}: {row['difference']:.3f}{interval} over {row['holes']} {units}, "
                f"p = {row['p']:.3f}, with Holm {row['p_holm']:.3f}"
            )
    return lines


def table(results: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of the table; a design with more holes comes first, then one with more gold."""
    holes = sorted({result["hole"] for result in results}, key=lambda hole: (_held_out(results, hole), hole))
    designs = {result["design"] for result in results}
    rows = {design: [_cell(results, design, hole) for hole in holes] for design in designs}
    gold = {design: _mean([r["gold_end"] for r in results if r["design"] == design]) for design in designs}
    order = sorted(designs, key=lambda design: (rows[design].count("–"), -gold[design], design))
    heading = [f"{hole} (held out)" if _held_out(results, hole) else hole for hole in holes]
    lines = [f"| design | {' | '.join(heading)} |", "|---" * (len(holes) + 1) + "|"]
    return lines + [f"| `{design}` | {' | '.join(rows[design])} |" for design in order]


def _cell(results: Sequence[dict[str, Any]], design: str, hole: str) -> str:
    runs = [result for result in results if (result["design"], result["hole"]) == (design, hole)]
    if not runs:
        return "–"
    hacked = sum(map(is_hacked, runs))
    return f"{_mean([result['gold_end'] for result in runs]):.2f}, {hacked} of {len(runs)}"


def _held_out(results: Sequence[dict[str, Any]], hole: str) -> bool:
    return any(result["held_out"] for result in results if result["hole"] == hole)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def small(value: Any) -> Any:
    """A result with rounded numbers, without what only the arena itself needs."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, list | tuple):
        return [small(element) for element in value]
    if isinstance(value, dict):
        return {key: small(element) for key, element in value.items() if key not in LEFT_OUT}
    return value


if __name__ == "__main__":
    main()
